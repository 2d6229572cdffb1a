// A key for each user of the audit log, without which the seals of the user's rows say nothing about the user.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // Random bytes. Whoever erases a user deletes the row.
  `create table audit_user_key (
    user_id text primary key,
    user_key bytea not null
  )`,
]
