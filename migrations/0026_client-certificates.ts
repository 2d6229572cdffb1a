// Client certificates that stand for a credential.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  `alter table credential add column certificates text not null default ''`, // comma list of SHA-256 fingerprints in lower case
]
