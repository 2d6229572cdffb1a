// Deletes old records: ended operations, removed activations, inbox messages. Each statement takes a batch, so that none holds many locks.
import { sql } from 'kysely'
import { deleteBatch } from './database/bulk-statement.ts'
import type { Db } from './database/database.ts'
import { amongRemovals } from './database/index-conditions.ts'

/** Deletes up to `limit` operations that are not PENDING and were created before `before`, with their nonces. */
export async function deleteOldOperations(db: Db, before: Date, limit: number): Promise<number> {
  const { rows } = await sql`
    with due as materialized (
      select o.operation_id
      from application p cross join lateral (
        select operation_id from operation
        where application_id = p.application_id and created_at < ${before} and status <> 'PENDING'
        order by created_at limit ${limit}
      ) o limit ${limit}
    ), nonces as (
      delete from operation_nonce n using due where n.operation_id = due.operation_id
    )
    delete from operation o using due where o.operation_id = due.operation_id returning o.operation_id`.execute(db)
  return rows.length
}

/** Deletes up to `limit` activations that were REMOVED before `before`, with the rows of the CHILDREN tables. Their audit rows stay. */
export async function deleteOldActivations(db: Db, before: Date, limit: number): Promise<number> {
  // Only the history has the time of the removal. Each REMOVED activation has such a row: the statement that removes writes it, and so does an
  // import. With several rows the first counts, because an import adds one of its own. A scalar subquery is looked up for each due row, so
  // PostgreSQL reads nothing else, whatever its statistics say.
  const { rows } = await sql`
    with due as materialized (
      select h.activation_id from activation_history h
      where ${amongRemovals('h')} and h.occurred_at < ${before}
        and (select a.state from activation a where a.activation_id = h.activation_id) = 'REMOVED'
        and h.activation_history_id = (
          select f.activation_history_id from activation_history f where f.activation_id = h.activation_id and f.to_state = 'REMOVED'
          order by f.occurred_at, f.activation_history_id limit 1
        )
      order by h.occurred_at limit ${limit}
    ), ${sql.join(
      CHILDREN.map(
        (table) =>
          sql`${sql.ref(`of_${table}`)} as (delete from ${sql.table(table)} c using due where c.activation_id = due.activation_id)`,
      ),
    )}
    delete from activation a using due where a.activation_id = due.activation_id returning a.activation_id`.execute(db)
  return rows.length
}

/** Deletes up to `limit` inbox messages created before `before`, read or not. A message that a phone marks at this moment is left for later. */
export const deleteOldMessages = (db: Db, before: Date, limit: number): Promise<number> =>
  deleteBatch(db, { table: 'inbox_message', key: ['message_id'] }, sql`created_at < ${before} order by created_at`, limit)

/** Tables whose rows refer to activations and are deleted with them. */
export const CHILDREN = [
  'activation_history',
  'token',
  'temporary_key',
  'config_item',
  'activation_upgrade',
  'push_registration',
  'door_verdict',
  'offline_challenge',
] as const
