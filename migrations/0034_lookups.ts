// What people at the console look for: users by the beginning of their name, whatever its capitals of A to Z, and the deliveries about one operation or
// activation.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // In the order of code points, so that the beginning of a name is a range. The small letters of A to Z alone: those of a database may be Turkish.
  // A code changes neither column, so that it stays HOT.
  `create index activation_user_prefix on activation (application_id, lower(user_id collate "C"))`,
  `create index webhook_delivery_about on webhook_delivery (object_id, sequence)`,
]
