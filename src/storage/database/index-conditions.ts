// The conditions of indexes. Those of few rows: what waits, and what is over (docs/decisions/0018-indexes.md). PostgreSQL may use
// such an index for every statement whose conditions imply that of the index. While its statistics know of no such row it takes the index for
// empty, and reads all that waits to find one row by its id. So each of these indexes has a condition, `case … end`, that nothing implies: a
// statement that wants the index says it. What stands beside it tells PostgreSQL how many rows there are.
import { type RawBuilder, sql } from 'kysely'

const define =
  (column: string, values: string): ((table: string) => RawBuilder<boolean>) =>
  (table) => {
    const value = sql.ref(`${table}.${column}`)
    const listed = sql.raw(values)
    return sql`(${value} in (${listed}) and case when ${value} in (${listed}) then true end)`
  }

/** Of an operation: it is PENDING, by operation_pending or operation_due. */
export const amongPending = define('status', `'PENDING'`)

/** Of an activation: it waits for its phone or its commit, by activation_due. */
export const amongWaiting = define('state', `'CREATED', 'PENDING_COMMIT'`)

/** Of an activation: it is BLOCKED or REMOVED, by activation_ended. */
export const amongEnded = define('state', `'BLOCKED', 'REMOVED'`)

/** Of a row of history: an activation became REMOVED, by activation_history_removed. */
export const amongRemovals = define('to_state', `'REMOVED'`)

/** Of a message for a webhook: it is WAITING, by webhook_delivery_due or webhook_delivery_object. */
export const amongUndelivered = define('status', `'WAITING'`)

/** Of an activation: its user id begins so, whatever the capitals of A to Z, by activation_user_prefix. */
export const beginsWith = (table: string, prefix: string): RawBuilder<boolean> => {
  const name = sql`lower(${sql.ref(`${table}.user_id`)} collate "C")`
  const beginning = sql`lower(${prefix}::text collate "C")`
  return sql<boolean>`${name} >= ${beginning} and ${name} < ${beginning} || chr(1114111)`
}
