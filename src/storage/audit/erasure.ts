// Finds the rows of the audit logs about a user, and replaces their fields when the user is erased (docs/decisions/0019-erasure.md). Callers hold
// the lock of the log.
import { type RawBuilder, sql } from 'kysely'
import { toHex } from '../../lib/bytes.ts'
import type { Tx } from '../database/database.ts'
import type { AuditLogName } from './chain.ts'
import { type FieldColumns, fieldsOf, type SealedRow, toSealable, USER_KEY_OF } from './rows.ts'

/** The user to erase. */
export interface Person {
  readonly userId: string
  /** Ids of the user's activations. */
  readonly phones: readonly string[]
  /** Names of the users for whose activations the user acted. */
  readonly actedFor: readonly string[]
}

/** A sealed row about a user. */
export interface ToldRow extends SealedRow {
  readonly chainId: number
  readonly seal: Uint8Array
  /** The seal of the previous row; null when that row is missing. */
  readonly previousSeal: Uint8Array | null
}

/** Finds up to `limit` sealed rows about a user. Rows whose fields were replaced are not found again. */
export async function findTold(tx: Tx, log: AuditLogName, person: Person, limit: number): Promise<readonly ToldRow[]> {
  const { table, chainId } = SEALED[log]
  const { rows } = await sql<FieldColumns & { chainId: number; position: string; seal: Buffer; occurredAt: Date }>`
    select ${chainId} as "chainId", e.sequence, e.position, e.seal, e.occurred_at as "occurredAt", ${fieldsOf(log)},
      ${USER_KEY_OF[log]} as "userKey"
    from ${table} e where e.position is not null and ${isTold(log, person)} limit ${sql.lit(limit)}`.execute(tx)
  // Read separately, because the previous row may be on another database node (docs/decisions/0020-spreading.md).
  const previous = await sql<{ chainId: number; position: string; seal: Buffer }>`
    select ${chainId} as "chainId", e.position, e.seal
    from unnest(${rows.map((row) => row.chainId)}::int[], ${rows.map(({ position }) => Number(position) - 1)}::bigint[]) as g (chain_id, position)
      join ${table} e on e.position = g.position and ${chainId} = g.chain_id`.execute(tx)
  const seals = new Map(previous.rows.map((row) => [`${row.chainId} ${row.position}`, row.seal]))
  return rows.map((row) => ({
    ...toSealable(row),
    chainId: row.chainId,
    position: Number(row.position),
    seal: row.seal,
    previousSeal: seals.get(`${row.chainId} ${Number(row.position) - 1}`) ?? null,
    occurredAt: row.occurredAt,
  }))
}

const SEALED: Record<AuditLogName, { readonly table: RawBuilder<unknown>; readonly chainId: RawBuilder<number> }> = {
  devices: { table: sql`audit_log`, chainId: sql`e.chain_id` },
  administrators: { table: sql`admin_event`, chainId: sql`0` },
}

/** True when the row `e` is about the user. Only pawl writes the data and texts of administrators, so the forms of a user id in them are known. */
export function isTold(log: AuditLogName, { userId, phones, actedFor }: Person): RawBuilder<unknown> {
  const inJson = (name: string): RawBuilder<unknown> => sql`${`"${name}":${JSON.stringify(userId)}`}::text`
  if (log === 'devices')
    return sql`(e.user_id = ${userId} or (e.user_id = any(${actedFor}::text[])
      and strpos(e.event_data, ${inJson('externalUserId')}) > 0))`
  const mentions = (text: RawBuilder<unknown>): RawBuilder<unknown> => sql`(strpos(${text}, ${inJson('userId')}) > 0)`
  const targets = [`registration of ${userId} in `, `claims about ${userId} in `]
  // With the whole name of an application: the beginning alone is also that of a user whose id goes on with ` in `.
  return sql`(e.target in (select t || p.application_id from application p, unnest(${targets}::text[]) as t)
    or e.target like any(${phones.map((id) => `%activation ${id}`)}::text[])
    or ${mentions(sql`coalesce(e.before, '')`)} or ${mentions(sql`coalesce(e.after, '')`)})`
}

/** The fields that replace those of a row. */
interface ErasedRow extends Pick<ToldRow, 'chainId' | 'position' | 'fields'> {}

/** Replaces the fields of sealed rows; their seals stay. */
export async function replaceFields(tx: Tx, log: AuditLogName, rows: readonly ErasedRow[]): Promise<void> {
  const field = (index: 1 | 2 | 3 | 4) => rows.map(({ fields }) => fields[index])
  const given = sql`unnest(${rows.map(({ chainId }) => chainId)}::int[], ${rows.map(({ position }) => position)}::bigint[],
    ${field(1)}::text[], ${field(2)}::text[], ${field(3)}::text[], ${field(4)}::text[]) as g (chain_id, position, f1, f2, f3, f4)`
  await (log === 'devices'
    ? sql`update audit_log e set user_id = g.f1, event_data = g.f4 from ${given}
        where e.chain_id = g.chain_id and e.position = g.position`
    : sql`update admin_event e set target = g.f2, before = g.f3, after = g.f4 from ${given} where e.position = g.position`
  ).execute(tx)
}

/** Replaces the data about a user in rows that wait for their seal; returns the number of rows. */
export async function replacePending(tx: Tx, person: Person, pseudonym: string): Promise<number> {
  const devices = await sql`
    update audit_pending e set event_data = '{}', user_id = case when e.user_id = ${person.userId} then ${pseudonym}::text else e.user_id end
    where ${isTold('devices', person)} returning 1`.execute(tx)
  const administrators = await sql`
    update admin_event e set target = ${pseudonym}, before = null, after = null
    where e.position is null and ${isTold('administrators', person)} returning 1`.execute(tx)
  return devices.rows.length + administrators.rows.length
}

/** Returns the random key of each user for seals, from the table audit_user_key. A user without a key gets the key in `fresh`. */
export async function provideUserKeys(tx: Tx, fresh: ReadonlyMap<string, Uint8Array>): Promise<ReadonlyMap<string, Uint8Array>> {
  if (fresh.size === 0) return fresh
  const keys = [...fresh.values()].map(toHex)
  const { rows } = await sql<{ userId: string; userKey: Buffer }>`
    with given as (
      select user_id, decode(user_key, 'hex') as user_key from unnest(${[...fresh.keys()]}::text[], ${keys}::text[]) as g (user_id, user_key)
    ), known as (
      select k.user_id, k.user_key from given g join audit_user_key k on k.user_id = g.user_id
    ), added as (
      insert into audit_user_key (user_id, user_key)
      select user_id, user_key from given where user_id not in (select user_id from known)
      returning user_id, user_key
    )
    select user_id as "userId", user_key as "userKey" from known
    union all select user_id, user_key from added`.execute(tx)
  return new Map(rows.map(({ userId, userKey }) => [userId, userKey]))
}

/** Deletes the key of a user. The seals then reveal nothing about the user any more. */
export async function deleteUserKey(tx: Tx, userId: string): Promise<void> {
  await sql`delete from audit_user_key where user_id = ${userId}`.execute(tx)
}
