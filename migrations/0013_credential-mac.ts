// The MAC of a credential: a role or password that was changed in the database by hand is noticed (cloud §2).
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // Over the row and its passwords. Of what is there already it is written by the first start that knows it.
  `alter table credential add column mac bytea`,
]
