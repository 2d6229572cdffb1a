// Composes conditions that make PostgreSQL use a partial index over few rows: those that wait, and those that have ended
// (docs/decisions/0018-indexes.md). PostgreSQL may use a partial index for every statement whose conditions imply the index's condition. While its
// statistics know no such row it takes the index for empty, and reads the whole index to find one row by its id. So each of these indexes has a
// condition `case … end` that no other condition implies, and a statement repeats it to use the index. The plain condition beside it lets
// PostgreSQL estimate the number of rows.
import { type RawBuilder, sql } from 'kysely'

const define =
  (column: string, values: string): ((table: string) => RawBuilder<boolean>) =>
  (table) => {
    const value = sql.ref(`${table}.${column}`)
    const listed = sql.raw(values)
    return sql`(${value} in (${listed}) and case when ${value} in (${listed}) then true end)`
  }

/** The operation is PENDING: uses operation_pending or operation_due. */
export const amongPending = define('status', `'PENDING'`)

/** The activation waits for its phone or its commit: uses activation_due. */
export const amongWaiting = define('state', `'CREATED', 'PENDING_COMMIT'`)

/** The activation is BLOCKED or REMOVED: uses activation_ended. */
export const amongEnded = define('state', `'BLOCKED', 'REMOVED'`)

/** The row of history records that an activation became REMOVED: uses activation_history_removed. */
export const amongRemovals = define('to_state', `'REMOVED'`)

/** The message for a webhook is WAITING: uses webhook_delivery_due or webhook_delivery_object. */
export const amongUndelivered = define('status', `'WAITING'`)

/** The user id of the activation begins with `prefix`, where A to Z equal a to z: uses activation_user_prefix. */
export const beginsWith = (table: string, prefix: string): RawBuilder<boolean> => {
  const name = sql`lower(${sql.ref(`${table}.user_id`)} collate "C")`
  const beginning = sql`lower(${prefix}::text collate "C")`
  return sql<boolean>`${name} >= ${beginning} and ${name} < ${beginning} || chr(1114111)`
}
