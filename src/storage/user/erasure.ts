// Erases a user from every table but the sealed audit logs (audit/erasure.ts). Meanwhile the table user_erasure lists the user id as closed:
// triggers refuse the commit of rows that name it (migrations/0031_user-erasures.ts, docs/decisions/0019-erasure.md).
import { type RawBuilder, sql } from 'kysely'
import { deleteBatch } from '../database/bulk-statement.ts'
import { type Db, onlyRow, type Tx } from '../database/database.ts'
import { CHILDREN } from '../retention.ts'

/** The number of deleted rows of each kind. */
export interface ErasedRows {
  readonly registrations: number
  readonly operations: number
  readonly messages: number
  readonly claims: number
  readonly webhookDeliveries: number
}

/**
 * Deletes the rows about a user in all applications: activations with all rows that refer to them, operations, inbox messages, claims, and messages
 * for webhooks. In the history of other users' activations, a pseudonym replaces the user id. The caller must have locked the user's activations
 * and operations, so that rows of other transactions are seen, and must have closed the user id.
 */
export async function deleteUserRows(tx: Tx, userId: string, pseudonym: string): Promise<ErasedRows> {
  // Joined with `application`, because the indexes begin with the application.
  const { rows } = await sql<ErasedRows>`
    with phones as materialized (
      select a.activation_id from application p join activation a on a.application_id = p.application_id where a.user_id = ${userId}
    ), decided as materialized (
      select operation_id from ${operationsOf(userId, sql`phones`)} as o
    ), ${sql.join(CHILDREN.map((table) => deleteOf(table, 'activation_id', 'phones')))},
    ${deleteOf('operation_nonce', 'operation_id', 'decided')},
    ${deleteOf('idempotency_key', 'operation_id', 'decided')},
    ${deleteOf('operation', 'operation_id', 'decided')},
    ${deleteOf('activation', 'activation_id', 'phones')},
    acted as (
      update activation_history set external_user_id = ${pseudonym}
      where external_user_id = ${userId} and activation_id not in (select activation_id from phones)
    ),
    of_inbox as (delete from inbox_message where user_id = ${userId} returning 1),
    of_claims as (delete from user_claims where user_id = ${userId} returning 1),
    told as (
      delete from webhook_delivery d
      where d.object_id in (select activation_id from phones union all select operation_id from decided)
        or d.activation_id in (select activation_id from phones) or ${tellsOf(userId, sql`phones`)}
      returning 1
    )
    select (select count(*)::int from of_activation) as registrations, (select count(*)::int from of_operation) as operations,
      (select count(*)::int from of_inbox) as messages, (select count(*)::int from of_claims) as claims,
      (select count(*)::int from told) as "webhookDeliveries"`.execute(tx)
  return onlyRow(rows)
}

/**
 * Selects the operations of a user, and unclaimed ones that are for one of these phones alone, with the columns of `operation`. In two parts, because
 * PostgreSQL reads all operations where `or` stands between the two conditions.
 */
export const operationsOf = (userId: string, phones: RawBuilder<unknown>): RawBuilder<unknown> => sql`(
        select o.* from application p join operation o on o.application_id = p.application_id where o.user_id = ${userId}
        union all
        select o.* from application p join operation o on o.application_id = p.application_id
        where o.user_id is null and o.activation_id in (select activation_id from ${phones} a)
      )`

/**
 * True when the payload of a message `d` for a webhook names the user, or one of these phones. The payload is searched as text, because a payload
 * that was altered and is no JSON would fail the statement. The triggers write JSON without spaces, and escape quotation marks within texts. The id
 * of the one phone that a message names is cut out, so that each message is searched once, however many phones there are.
 */
export const tellsOf = (userId: string, phones: RawBuilder<unknown>): RawBuilder<unknown> => sql`(
        strpos(d.payload, '"userId":' || to_json(${userId}::text)::text) > 0
        or split_part(split_part(d.payload, '"registrationId":"', 2), '"', 1) in (select activation_id from ${phones} a)
      )`

const deleteOf = (table: string, column: string, named: string): RawBuilder<unknown> =>
  sql`${sql.ref(`of_${table}`)} as (
      delete from ${sql.table(table)} c using ${sql.table(named)} n where c.${sql.ref(column)} = n.${sql.ref(column)} returning 1
    )`

/** Returns the names of the users in the history of whose activations the user acted. Reads the whole history. */
export async function findActedFor(tx: Tx, userId: string): Promise<readonly string[]> {
  const { rows } = await sql<{ owner: string }>`
    select distinct a.user_id as owner from activation_history h join activation a on a.activation_id = h.activation_id
    where h.external_user_id = ${userId}`.execute(tx)
  return rows.map(({ owner }) => owner)
}

/**
 * Locks the user's activations and operations until the end of the transaction, and returns the ids of the activations. Rows about them, and audit
 * rows about the user, are written under a lock of the same rows: each is either visible already, or its writer finds no activation afterwards.
 */
export async function lockUser(tx: Tx, userId: string): Promise<readonly string[]> {
  const { rows } = await sql<{ activationId: string }>`
    select a.activation_id as "activationId" from application p join activation a on a.application_id = p.application_id
    where a.user_id = ${userId} order by a.activation_id for update of a`.execute(tx)
  const phones = rows.map(({ activationId }) => activationId)
  await sql`
    select from operation where operation_id in (
      select operation_id from ${operationsOf(userId, sql`(select unnest(${phones}::text[]) as activation_id)`)} as o
    ) order by operation_id for update`.execute(tx)
  return phones
}

export interface Closing {
  readonly erasureId: string
  /** Random bytes for the hash of the user id. */
  readonly salt: Uint8Array
}

/** Closes a user id for an hour, or extends the closing. */
export async function closeName(db: Db, { erasureId, salt }: Closing, userId: string): Promise<void> {
  await sql`
    insert into user_erasure (erasure_id, salt, user_hash, closed_until)
    select g.erasure_id, g.salt, sha256(g.salt || convert_to(${userId}::text, 'UTF8')), ${CLOSED_UNTIL}
    from (select ${erasureId}::text as erasure_id, ${salt}::bytea as salt) as g
    on conflict (erasure_id) do update set closed_until = excluded.closed_until`.execute(db)
}

/**
 * Waits for transactions that are within their commit and did not see that the user id is closed; afterwards their rows are visible. A transaction
 * that has written and not begun its commit is not waited for: its commit will be refused.
 */
export async function awaitCommits(tx: Tx): Promise<void> {
  await limitWaits(tx)
  await sql`select pg_advisory_xact_lock(hashtextextended('pawl.user_erasure', 0))`.execute(tx)
}

/** Limits how long each statement of the transaction waits for a lock to 500 ms, because other statements wait behind it. */
export async function limitWaits(tx: Tx): Promise<void> {
  await sql`set local lock_timeout = '500ms'`.execute(tx)
}

/** Prevents the opening of a user id until the end of the transaction; false when it is not closed any more. */
export async function holdName(tx: Tx, { erasureId }: Closing): Promise<boolean> {
  const { rows } = await sql`
    select from user_erasure where erasure_id = ${erasureId} and closed_until > clock_timestamp() for update`.execute(tx)
  return rows.length === 1
}

/** Opens a user id, whichever erasure closed it, to transactions that begin in `afterMs` milliseconds or later. */
export async function openName(db: Db, userId: string, afterMs: number): Promise<void> {
  await sql`
    update user_erasure set closed_until = clock_timestamp() + ${afterMs} * interval '1 millisecond'
    where user_hash = sha256(salt || convert_to(${userId}::text, 'UTF8'))`.execute(db)
}

/** Shortens up to `limit` closings to an hour. A closing lasts longer only when the clock was set back. */
export async function shortenClosings(db: Db, _at: Date, limit: number): Promise<number> {
  const { rows } = await sql`
    update user_erasure set closed_until = ${CLOSED_UNTIL} where erasure_id in (
      select erasure_id from user_erasure where closed_until > clock_timestamp() + interval '61 minutes' limit ${limit} for update skip locked
    ) returning erasure_id`.execute(db)
  return rows.length
}

/** Deletes up to `limit` closings that ended an hour ago. Until then a transaction that began before their end may be open. */
export const deleteOpenedNames = (db: Db, _at: Date, limit: number): Promise<number> =>
  deleteBatch(
    db,
    { table: 'user_erasure', key: ['erasure_id'] },
    sql`closed_until < clock_timestamp() - interval '1 hour'`,
    limit,
  )

// A user id is open again after this time when the process of its erasure was killed.
const CLOSED_UNTIL = sql`clock_timestamp() + interval '1 hour'`
