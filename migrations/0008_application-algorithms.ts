// Master keys of protocol 4.0, and which protocols and algorithms an application admits.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  `alter table application
    add column algorithms text not null default '', -- comma list of those of 4.0; empty: all
    add column is_protocol_3_admitted boolean not null default true,
    add column roles text not null default ''`, // comma list

  // Pairs that an older application lacks are made when they are first needed: of two that do it at once, the first is everybody's.
  `create unique index master_key_pair_algorithm on master_key_pair (application_id, algorithm)`,
  `drop index master_key_pair_newest`,
]
