// For each activation that is deleted PostgreSQL looks for rows that refer to it. Without an index it read all temporary keys, and all items of
// configuration, each time.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // Each new key would pay for an index. The statement that inserts it locks its activation instead, as the reference did
  // (docs/decisions/0024-references-of-many-rows.md).
  `alter table temporary_key drop constraint temporary_key_activation_id_fkey`,
  `create index config_item_activation on config_item (activation_id) where activation_id is not null`,
]
