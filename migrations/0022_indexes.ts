// Searches by state are for states that few have. What most are in is found by age, and what waits has indexes of its own; an index of all
// states took an entry for every change of every row (docs/decisions/0018-indexes.md).
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  `drop index operation_status`,
  `create index operation_ended on operation (application_id, status, created_at desc, operation_id desc)
    where status in ('REJECTED', 'FAILED', 'CANCELED', 'EXPIRED')`,
  `drop index activation_state`,
  `create index activation_ended on activation (application_id, state, created_at, activation_id) where state in ('BLOCKED', 'REMOVED')`,
]
