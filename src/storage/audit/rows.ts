// Seals rows of the audit logs, and reads them for their verification. Rows of devices wait in audit_pending, and move to audit_log with their
// seal. Rows of administrators stay in admin_event and get their seal there.
//
// Only the place of a row says that it waits. So the sealer finds every committed row, whatever the order of the commits, and the statement that
// seals a row also takes it from the waiting ones. A chain counts its own positions, without gaps, in the order in which the rows were found.
import { sql, type RawBuilder } from 'kysely'
import { toHex } from '../../lib/bytes.ts'
import { ADMINISTRATION, type AuditLogName, type ChainPlace } from './chain.ts'
import type { Db, Tx } from '../database/database.ts'

/** The content of a row that its seal covers; the seal also covers the row's place in the chain. */
export interface SealableRow {
  readonly sequence: number
  /** Every column but the sequence, as text; the time is the hex of the bytes that PostgreSQL would send. */
  readonly fields: RowFields
  /** 32 bytes that stand for the user in the seal; null for rows without a user, and for rows that were sealed before user keys existed. */
  readonly userKey: Uint8Array | null
  /** User name of the credential that asked for the verification or change, else null. A seal covers the name only when there is one. */
  readonly verifiedBy: string | null
}

/** Devices: application, user, activation, type of the event, its data, time. Administrators: name, action, target, before, after, time. */
export type RowFields = readonly [string | null, string | null, string | null, string | null, string | null, string | null]

export interface UnsealedRow extends SealableRow {
  /** Name of the chain to which the row belongs. */
  readonly chain: string
  /** Id of the activation; empty for rows of administrators. */
  readonly activationId: string
}

/** Finds up to `limit` rows that wait for their seal, without those of the chains `except`, in order of their sequence. */
export async function findUnsealed(db: Db, log: AuditLogName, limit: number, except: readonly string[]): Promise<UnsealedRow[]> {
  // Sorted after the limit: waiting rows are found roughly in order of insertion, and an index for the exact order would cost every request.
  const { rows } = await sql<Omit<FieldColumns, 'userKey'> & { chain: string; activationId: string }>`
    select ${CHAIN_OF[log]} as chain, e.sequence, ${ACTIVATION_OF[log]} as "activationId", ${fieldsOf(log)}
    from (select * from ${UNSEALED[log]} and ${CHAIN_OF[log]} <> all(${except}::text[]) limit ${sql.lit(limit)}) e
    order by e.sequence`.execute(db)
  return rows.map((row) => ({ ...toSealable({ ...row, userKey: null }), chain: row.chain, activationId: row.activationId }))
}

/** Counts the rows that wait for their seal, by name of the chain. */
export async function countUnsealed(db: Db, log: AuditLogName): Promise<Map<string, number>> {
  const { rows } = await sql<{ chain: string; count: string }>`
    select chain, count(*) as count from (select ${CHAIN_OF[log]} as chain from ${UNSEALED[log]}) as waiting group by chain`.execute(
    db,
  )
  return new Map(rows.map(({ chain, count }) => [chain, Number(count)]))
}

/** A row with its place in a chain. */
export interface PlacedRow extends ChainPlace {
  readonly chainId: number
  readonly row: UnsealedRow
}

/** Seals rows in one statement. Throws when one of them does not wait any more. */
export async function placeRows(tx: Tx, log: AuditLogName, placed: readonly PlacedRow[], sealedAt: Date): Promise<void> {
  const { rows } = await sql<{ count: number }>`
    with given as (
      select chain_id, position, activation_id, sequence, decode(seal, 'hex') as seal
      from unnest(${placed.map(({ chainId }) => chainId)}::int[], ${placed.map(({ position }) => position)}::bigint[],
        ${placed.map(({ row }) => row.activationId)}::text[], ${placed.map(({ row }) => row.sequence)}::bigint[],
        ${/* As hex text, because the drivers encode an array of bytes differently. */ placed.map(({ seal }) => toHex(seal))}::text[])
        as g (chain_id, position, activation_id, sequence, seal)
    ), ${log === 'devices' ? moveRows(sealedAt) : MARK_ROWS}
    select count(*)::int as count from placed`.execute(tx)
  if (rows[0]?.count !== placed.length) throw new Error('a row that waited for its seal is gone')
}

const moveRows = (sealedAt: Date): RawBuilder<unknown> => sql`taken as (
      delete from audit_pending p using given g where p.activation_id = g.activation_id and p.sequence = g.sequence
      returning p.*, g.chain_id, g.position, g.seal
    ), placed as (
      insert into audit_log (position, sequence, sealed_at, occurred_at, chain_id, activation_id, application_id, user_id, event_type,
        event_data, verified_by, seal)
      select position, sequence, ${sealedAt}::timestamptz, occurred_at, chain_id, activation_id, application_id, user_id, event_type,
        event_data, verified_by, seal
      from taken
      returning 1
    )`

const MARK_ROWS = sql`placed as (
      update admin_event e set position = g.position, seal = g.seal from given g where e.sequence = g.sequence and e.position is null
      returning 1
    )`

export interface SealedRow extends ChainPlace, SealableRow {
  readonly occurredAt: Date
}

interface SealedQuery {
  readonly log: AuditLogName
  readonly chainId: number
  /** Exclusive. */
  readonly after: number
  readonly limit: number
  /** Exclusive; for rows of devices. */
  readonly sealedBefore?: Date
}

/** Finds the first rows of a chain after a position. */
export async function findSealed(db: Db, { log, chainId, after, limit, sealedBefore }: SealedQuery): Promise<SealedRow[]> {
  const isBefore = sealedBefore ? sql`e.sealed_at < ${sealedBefore}` : sql`true`
  // The limit is a literal, so that the planner knows that few rows are wanted, and reads them by their key.
  const { rows } = await sql<FieldColumns & { position: string; seal: Buffer; occurredAt: Date }>`
    select e.position, e.sequence, e.seal, e.occurred_at as "occurredAt", ${fieldsOf(log)}, ${USER_KEY_OF[log]} as "userKey"
    from ${sealedOf(log, chainId)} and e.position > ${after} and ${isBefore}
    order by e.position limit ${sql.lit(limit)}`.execute(db)
  return rows.map((row) => ({ ...toSealable(row), position: Number(row.position), seal: row.seal, occurredAt: row.occurredAt }))
}

/** Finds the seal at a position of a chain. */
export async function findSeal(db: Db, log: AuditLogName, chainId: number, position: number): Promise<Uint8Array | undefined> {
  const { rows } = await sql<{ seal: Buffer }>`
    select e.seal from ${sealedOf(log, chainId)} and e.position = ${position} limit 1`.execute(db)
  return rows[0]?.seal
}

/** Finds the sequence of the first row at or before the start of a chain, where no row may be any more. */
export async function findBeforeStart(db: Db, log: AuditLogName, chainId: number, start: number): Promise<number | undefined> {
  const { rows } = await sql<{ sequence: string }>`
    select e.sequence from ${sealedOf(log, chainId)} and e.position <= ${start} order by e.position limit 1`.execute(db)
  return rows[0] && Number(rows[0].sequence)
}

/** Returns one row of each chain that audit_chain lacks, with the chain's name according to the row. */
export async function findStrays(db: Db): Promise<{ chain: string; sequence: number }[]> {
  const administrators = await findBeforeStart(db, 'administrators', 0, Number.MAX_SAFE_INTEGER)
  const firsts = new Map<number, { chain: string; sequence: number }>()
  // Jumps over the index from one chain to the next, without reading the rows between.
  for (let after = BELOW_ALL; ; ) {
    const { rows } = await sql<{ chainId: number; chain: string; sequence: string }>`
      select e.chain_id as "chainId", ${CHAIN_OF.devices} as chain, e.sequence
      from audit_log e where e.chain_id > ${after}::bigint order by e.chain_id, e.position limit 1`.execute(db)
    const [row] = rows
    if (row === undefined) break
    firsts.set(row.chainId, { chain: row.chain, sequence: Number(row.sequence) })
    after = row.chainId
  }
  // Read after the rows, so that a chain that was inserted meanwhile is included.
  const { rows: chains } = await sql<{ chainId: number; name: string }>`
    select chain_id as "chainId", name from audit_chain`.execute(db)
  for (const { chainId } of chains) firsts.delete(chainId)
  const isStray = administrators !== undefined && chains.every(({ name }) => name !== ADMINISTRATION)
  return [...firsts.values(), ...(isStray ? [{ chain: ADMINISTRATION, sequence: administrators }] : [])]
}

// Lower than any value of the column, an int4.
const BELOW_ALL = -2_147_483_649

/** Deletes admin events by their sequence. */
export async function deleteAdminEvents(tx: Tx, sequences: readonly number[]): Promise<void> {
  await sql`delete from admin_event where sequence = any(${sequences}::bigint[])`.execute(tx)
}

/** A row as the statements here return it. */
export type FieldColumns = Record<`f${0 | 1 | 2 | 3 | 4 | 5}`, string | null> & {
  readonly sequence: string
  readonly userKey: Buffer | null
  readonly verifiedBy: string | null
}

/** Converts a row to the content that its seal covers. */
export const toSealable = ({ sequence, userKey, verifiedBy, f0, f1, f2, f3, f4, f5 }: FieldColumns): SealableRow => ({
  sequence: Number(sequence),
  fields: [f0, f1, f2, f3, f4, f5],
  userKey,
  verifiedBy,
})

// Each text ends with a condition, so that `and` can follow.
const UNSEALED: Record<AuditLogName, RawBuilder<unknown>> = {
  devices: sql`audit_pending e where true`,
  administrators: sql`admin_event e where e.position is null`,
}

const sealedOf = (log: AuditLogName, chainId: number): RawBuilder<unknown> =>
  log === 'devices' ? sql`audit_log e where e.chain_id = ${chainId}` : sql`admin_event e where e.position is not null`

const CHAIN_OF: Record<AuditLogName, RawBuilder<string>> = {
  devices: sql`coalesce('application:' || e.application_id, 'no-application')`,
  administrators: sql`'administration'`,
}

const ACTIVATION_OF: Record<AuditLogName, RawBuilder<string>> = { devices: sql`e.activation_id`, administrators: sql`''` }

// A subquery, so that it runs only for the rows that are returned after the limit.
export const USER_KEY_OF: Record<AuditLogName, RawBuilder<unknown>> = {
  devices: sql`(select k.user_key from audit_user_key k where k.user_id = e.user_id)`,
  administrators: sql`null::bytea`,
}

const VERIFIED_BY_OF: Record<AuditLogName, RawBuilder<string | null>> = {
  devices: sql`e.verified_by`,
  administrators: sql`null::text`,
}

const TEXT_COLUMNS: Record<AuditLogName, readonly string[]> = {
  devices: ['application_id', 'user_id', 'activation_id', 'event_type', 'event_data'],
  administrators: ['username', 'action', 'target', 'before', 'after'],
}

// timestamptz_send is exact to the microsecond, and independent of the session's settings.
export const fieldsOf = (log: AuditLogName): RawBuilder<unknown> =>
  sql`${sql.join(TEXT_COLUMNS[log].map((column, i) => sql`${sql.ref(`e.${column}`)} as ${sql.ref(`f${i}`)}`))},
      encode(timestamptz_send(e.occurred_at), 'hex') as f5, ${VERIFIED_BY_OF[log]} as "verifiedBy"`
