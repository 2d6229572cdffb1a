// The indexes of few rows are used by the statements that say their conditions, and by no other. By implication they were used for rows that a
// statement names by id, whenever statistics knew of nothing that waits (docs/decisions/0018-indexes.md).
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const only = (column: string, values: string): string => `where case when ${column} in (${values}) then true end`
const PENDING = only('status', `'PENDING'`)
const UNDELIVERED = only('status', `'WAITING'`)

const statements = [
  `drop index operation_pending, operation_due, activation_due, activation_ended, webhook_delivery_due, webhook_delivery_object`,
  `create index operation_pending on operation (application_id, user_id, created_at desc) ${PENDING}`,
  `create index operation_due on operation (expires_at) ${PENDING}`,
  `create index activation_due on activation (expires_at) ${only('state', `'CREATED', 'PENDING_COMMIT'`)}`,
  `create index activation_ended on activation (application_id, state, created_at, activation_id)
    ${only('state', `'BLOCKED', 'REMOVED'`)}`,
  `create index webhook_delivery_due on webhook_delivery (webhook_id, next_attempt_at, sequence) ${UNDELIVERED}`,
  `create index webhook_delivery_object on webhook_delivery (webhook_id, object_id, sequence) ${UNDELIVERED}`,
]
