// Addresses that a credential may be used from.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  `alter table credential add column allowed_addresses text not null default ''`, // comma list of addresses and ranges; empty: any
]
