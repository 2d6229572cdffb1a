// Stores the changes by administrators in the table admin_event. Rows are only appended, in the transaction of the change.
import { sql } from 'kysely'
import { readJson } from '../database/columns.ts'
import type { Db, Tx } from '../database/database.ts'

interface AdminEvent {
  readonly username: string
  /** Method and path, `DELETE /admin/users/{name}`. */
  readonly action: string
  readonly target: string
  /** JSON without secrets; null when there was no value. */
  readonly before: string | null
  readonly after: string | null
  readonly occurredAt: Date
}

/** Makes the changes of administrators wait for each other, in all processes, until the end of the transaction. */
export async function lockAdministration(tx: Tx): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended('pawl.admin_event', 0))`.execute(tx)
}

/** Writes one row. */
export async function insertAdminEvent(tx: Tx, event: AdminEvent): Promise<void> {
  const { occurredAt, ...columns } = event
  await tx
    .insertInto('admin_event')
    .values({ ...columns, occurred_at: occurredAt })
    .execute()
}

interface AdminEventRow extends Omit<AdminEvent, 'before' | 'after'> {
  /** Undefined when there was no value. */
  readonly before: unknown
  readonly after: unknown
  /** Grows with each event. */
  readonly sequence: number
}

interface AdminEventQuery {
  readonly username: string | undefined
  readonly action: string | undefined
  /** Inclusive. */
  readonly from: Date | undefined
  /** Inclusive. */
  readonly to: Date | undefined
  /** Exclusive. */
  readonly beforeSequence: number | undefined
  readonly limit: number
}

/** Lists up to `limit` rows, newest first. */
export async function listAdminEvents(db: Db, query: AdminEventQuery): Promise<AdminEventRow[]> {
  const { username, action, from, to, beforeSequence, limit } = query
  const rows = await db
    .selectFrom('admin_event')
    .select(['sequence', 'username', 'action', 'target', 'before', 'after', 'occurred_at as occurredAt'])
    .$if(username !== undefined, (select) => select.where('username', '=', username ?? ''))
    .$if(action !== undefined, (select) => select.where('action', '=', action ?? ''))
    .$if(from !== undefined, (select) => select.where('occurred_at', '>=', from ?? null))
    .$if(to !== undefined, (select) => select.where('occurred_at', '<=', to ?? null))
    .$if(beforeSequence !== undefined, (select) => select.where('sequence', '<', String(beforeSequence)))
    .orderBy('sequence', 'desc')
    .limit(limit)
    .execute()
  return rows.map((row) => ({ ...row, sequence: Number(row.sequence), before: toValue(row.before), after: toValue(row.after) }))
}

/** Parses JSON. A stored text that was altered and is no JSON is shown unchanged. */
function toValue(json: string | null): unknown {
  if (json === null) return undefined
  const value = readJson(json)
  return value === undefined ? json : value
}
