// The MAC over the credentials of a webhook and the server that they are for: an address that was changed in the database by hand is noticed
// (cloud §9).
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // Null without credentials. Of what is there already it is written by the first start that knows it.
  `alter table webhook add column basic_mac bytea`,
]
