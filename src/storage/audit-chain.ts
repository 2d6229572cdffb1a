// The tables audit_chain, audit_seal and audit_source: seals over the rows of audit_event and admin_event (cloud §7).
//
// Sequence numbers are handed out before the commit, so a lower one may become visible after a higher one was sealed, and some never
// do. A chain therefore counts positions of its own, without gaps, in the order in which rows were found; and a row counts as looked for
// (settled) only when every transaction that could hold a lower number has ended.
import { sql, type RawBuilder } from 'kysely'
import type { Db, Tx } from './database.ts'

/** A table whose rows are sealed. */
export type AuditSource = 'audit_event' | 'admin_event'

/** The tables whose rows are sealed. */
export const AUDIT_SOURCES: readonly AuditSource[] = ['audit_event', 'admin_event']

/** What can be known about unfinished transactions at one moment. */
export interface SequenceObservation {
  /** The highest sequence number that could be seen; 0 for an empty table. */
  readonly newest: number
  /** Transactions that hold a lower number have lower ids than this one. */
  readonly transaction: bigint
  /** All transactions with lower ids have ended. */
  readonly oldestTransaction: bigint
}

/** Looks at a table without a lock. */
export async function observeSequences(db: Db, source: AuditSource): Promise<SequenceObservation> {
  // The snapshot is older than the id that the statement itself takes: whatever took a number before has a lower id.
  const { rows } = await sql<{ newest: string; transaction: string; oldest: string }>`
    select coalesce((select max(sequence) from ${sql.table(source)}), 0) as newest, pg_current_xact_id()::text as transaction,
      pg_snapshot_xmin(pg_current_snapshot())::text as oldest`.execute(db)
  const [row] = rows
  return {
    newest: Number(row?.newest ?? 0),
    transaction: BigInt(row?.transaction ?? 0),
    oldestTransaction: BigInt(row?.oldest ?? 0),
  }
}

/** Takes the right to seal a table until the end of the transaction; undefined when another process has it. Returns the settled sequence. */
export async function lockSource(tx: Tx, source: AuditSource): Promise<number | undefined> {
  const row = await tx
    .selectFrom('audit_source')
    .select('settled_sequence as settled')
    .where('source', '=', source)
    .forUpdate()
    .skipLocked()
    .executeTakeFirst()
  return row && Number(row.settled)
}

/** Notes that every row up to this one is sealed. */
export async function settleSource(tx: Tx, source: AuditSource, sequence: number): Promise<void> {
  await tx.updateTable('audit_source').set({ settled_sequence: sequence }).where('source', '=', source).execute()
}

/** What a seal covers, beside its place in the chain. */
export interface SealableRow {
  readonly sequence: number
  /** Every column but the sequence, as text; the time as the bytes that PostgreSQL would send. */
  readonly fields: readonly (string | null)[]
}

export interface UnsealedRow extends SealableRow {
  /** Name of the chain it belongs to. */
  readonly chain: string
}

/** The last of the next `limit` rows above `after`, sealed or not; undefined when there is none. */
export async function findStretchEnd(db: Db, source: AuditSource, after: number, limit: number): Promise<number | undefined> {
  // The limit is part of the text here and below: the planner must know that few rows are wanted, and reads them by their key.
  const { rows } = await sql<{ last: string | null }>`
    select max(sequence) as last
    from (select sequence from ${sql.table(source)} where sequence > ${after} order by sequence limit ${sql.lit(limit)}) as stretch`.execute(
    db,
  )
  const last = rows[0]?.last ?? null
  return last === null ? undefined : Number(last)
}

/** The rows above `after` up to `last` that have no seal in their chain, in order. */
export async function findUnsealed(db: Db, source: AuditSource, after: number, last: number): Promise<UnsealedRow[]> {
  const { rows } = await sql<FieldColumns & { chain: string; sequence: string }>`
    select ${CHAIN_OF[source]} as chain, e.sequence, ${fieldsOf(source)}
    from ${sql.table(source)} e
    where e.sequence > ${after} and e.sequence <= ${last} and ${sealOf(source)} is null
    order by e.sequence`.execute(db)
  return rows.map((row) => ({ chain: row.chain, sequence: Number(row.sequence), fields: toFields(row) }))
}

/** A place in a chain. */
export interface ChainPlace {
  /** 0 before the first row. */
  readonly position: number
  /** 32 bytes. */
  readonly seal: Uint8Array
}

/** The state of a chain: rows after `start` up to `head` are sealed. */
export interface ChainState {
  readonly name: string
  readonly start: ChainPlace
  readonly head: ChainPlace
  /** MAC over the members above, 32 bytes. */
  readonly authentication: Uint8Array
}

export interface ChainRow extends ChainState {
  readonly chainId: number
  /** Position of the last seal there is; that of the start when the chain has no seal. */
  readonly lastPosition: number
}

/** The chains of these names, or all of them, by name. */
export async function findChains(db: Db, names?: readonly string[]): Promise<ChainRow[]> {
  const { rows } = await sql<Record<'start' | 'head' | 'last', string> & ChainColumns>`
    select c.chain_id as "chainId", c.name, c.start_position as start, c.start_seal as "startSeal", c.head_position as head,
      c.head_seal as "headSeal", c.authentication,
      coalesce((select max(s.position) from audit_seal s where s.chain_id = c.chain_id), c.start_position) as last
    from audit_chain c where ${names ?? null}::text[] is null or c.name = any(${names ?? null}::text[])
    order by c.name`.execute(db)
  return rows.map(({ chainId, name, start, startSeal, head, headSeal, authentication, last }) => ({
    chainId,
    name,
    start: { position: Number(start), seal: startSeal },
    head: { position: Number(head), seal: headSeal },
    authentication,
    lastPosition: Number(last),
  }))
}

/** Inserts a chain and returns its id. */
export async function insertChain(tx: Tx, { name, start, head, authentication }: ChainState): Promise<number> {
  const row = await tx
    .insertInto('audit_chain')
    .values({
      name,
      start_position: start.position,
      start_seal: start.seal,
      head_position: head.position,
      head_seal: head.seal,
      authentication,
    })
    .returning('chain_id as chainId')
    .executeTakeFirstOrThrow()
  return row.chainId
}

/** Moves start and head of a chain. */
export async function updateChain(tx: Tx, chainId: number, { start, head, authentication }: ChainState): Promise<void> {
  await tx
    .updateTable('audit_chain')
    .set({
      start_position: start.position,
      start_seal: start.seal,
      head_position: head.position,
      head_seal: head.seal,
      authentication,
    })
    .where('chain_id', '=', chainId)
    .execute()
}

export interface NewSeal extends ChainPlace {
  readonly chainId: number
  readonly sequence: number
}

/** Inserts seals, all in one statement. */
export async function insertSeals(tx: Tx, seals: readonly NewSeal[]): Promise<void> {
  const chainIds = seals.map(({ chainId }) => chainId)
  const positions = seals.map(({ position }) => position)
  const sequences = seals.map(({ sequence }) => sequence)
  // As text: the drivers differ in how they write an array of bytes.
  const texts = seals.map(({ seal }) => Buffer.from(seal).toString('hex'))
  await sql`
    insert into audit_seal (chain_id, position, sequence, seal)
    select chain_id, position, sequence, decode(seal, 'hex')
    from unnest(${chainIds}::int[], ${positions}::bigint[], ${sequences}::bigint[], ${texts}::text[])
      as i (chain_id, position, sequence, seal)`.execute(tx)
}

export interface SealedRow extends ChainPlace {
  readonly sequence: number
  /** Undefined when the row of this seal is gone. */
  readonly row: (SealableRow & { readonly occurredAt: Date }) | undefined
}

/** The first `limit` seals of a chain after a position, with the rows they seal. */
export async function findSealed(
  db: Db,
  source: AuditSource,
  chainId: number,
  after: number,
  limit: number,
): Promise<SealedRow[]> {
  const { rows } = await sql<SealedColumns>`
    select s.position, s.sequence, s.seal, e.sequence is not null as "isPresent", e.occurred_at as "occurredAt", ${fieldsOf(source)}
    from (
      select position, sequence, seal from audit_seal where chain_id = ${chainId} and position > ${after}
      order by position limit ${sql.lit(limit)}
    ) s
    left join ${sql.table(source)} e on e.sequence = s.sequence
    order by s.position`.execute(db)
  return rows.map((row) => {
    const { isPresent, occurredAt } = row
    const sequence = Number(row.sequence)
    const found = isPresent ? { sequence, fields: toFields(row), occurredAt } : undefined
    return { position: Number(row.position), sequence, seal: row.seal, row: found }
  })
}

/** The seal at a position of a chain. */
export async function findSeal(db: Db, chainId: number, position: number): Promise<Uint8Array | undefined> {
  const row = await db
    .selectFrom('audit_seal')
    .select('seal')
    .where('chain_id', '=', chainId)
    .where('position', '=', String(position))
    .executeTakeFirst()
  return row?.seal
}

/** Names of the chains whose first row is older than `cutoff`. */
export async function findChainsToShorten(db: Db, source: AuditSource, cutoff: Date): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select c.name
    from audit_chain c
    join audit_seal s on s.chain_id = c.chain_id and s.position = c.start_position + 1
    join ${sql.table(source)} e on e.sequence = s.sequence
    where (c.name = ${ADMINISTRATION}) = ${source === 'admin_event'} and e.occurred_at < ${cutoff}
    order by c.name`.execute(db)
  return rows.map(({ name }) => name)
}

/** Deletes sealed rows together with their seals. */
export async function deleteSealed(tx: Tx, source: AuditSource, chainId: number, sequences: readonly number[]): Promise<void> {
  await sql`delete from audit_seal where chain_id = ${chainId} and sequence = any(${sequences}::bigint[])`.execute(tx)
  await sql`delete from ${sql.table(source)} where sequence = any(${sequences}::bigint[])`.execute(tx)
}

/** What a stretch of a table says about rows without a seal, for one chain. */
export interface UnsealedCount {
  readonly chain: string
  readonly count: number
  /** The lowest of them that should have one, because it is settled. */
  readonly firstSettled: number | undefined
}

/** Counts rows without a seal among the first `limit` rows above `after`. `last` is undefined at the end of the table. */
export async function countUnsealed(
  db: Db,
  source: AuditSource,
  after: number,
  limit: number,
): Promise<{ last: number | undefined; counts: readonly UnsealedCount[] }> {
  const { rows } = await sql<{ chain: string; last: string; count: string; first: string | null }>`
    select chain, max(sequence) as last, count(*) filter (where seal is null) as count,
      min(sequence) filter (where seal is null and sequence <= (select settled_sequence from audit_source where source = ${source}))
        as first
    from (
      select e.sequence, ${CHAIN_OF[source]} as chain, ${sealOf(source)} as seal
      from ${sql.table(source)} e where e.sequence > ${after} order by e.sequence limit ${sql.lit(limit)}
    ) as stretch
    group by chain`.execute(db)
  const counts = rows.map(({ chain, count, first }) => ({
    chain,
    count: Number(count),
    firstSettled: first === null ? undefined : Number(first),
  }))
  return { last: rows.length === 0 ? undefined : Math.max(...rows.map(({ last }) => Number(last))), counts }
}

/** The table whose rows a chain seals. */
export const sourceOfChain = (name: string): AuditSource => (name === ADMINISTRATION ? 'admin_event' : 'audit_event')

/** Undefined columns of a row that is gone come as null, too. */
type FieldColumns = Record<`f${0 | 1 | 2 | 3 | 4 | 5}`, string | null>

interface ChainColumns {
  readonly chainId: number
  readonly name: string
  readonly startSeal: Buffer
  readonly headSeal: Buffer
  readonly authentication: Buffer
}

interface SealedColumns extends FieldColumns {
  readonly position: string
  readonly sequence: string
  readonly seal: Buffer
  readonly isPresent: boolean
  readonly occurredAt: Date
}

const toFields = ({ f0, f1, f2, f3, f4, f5 }: FieldColumns): (string | null)[] => [f0, f1, f2, f3, f4, f5]

const ADMINISTRATION = 'administration'

const CHAIN_OF: Record<AuditSource, RawBuilder<string>> = {
  audit_event: sql`coalesce('application:' || e.application_id, 'no-application')`,
  admin_event: sql`'administration'`,
}

const TEXT_COLUMNS: Record<AuditSource, readonly string[]> = {
  audit_event: ['application_id', 'user_id', 'activation_id', 'event_type', 'event_data'],
  admin_event: ['username', 'action', 'target', 'before', 'after'],
}

// The bytes of a time are exact to the microsecond and the same whatever the session's settings.
const fieldsOf = (source: AuditSource): RawBuilder<unknown> =>
  sql`${sql.join(TEXT_COLUMNS[source].map((column, i) => sql`${sql.ref(`e.${column}`)} as ${sql.ref(`f${i}`)}`))},
      encode(timestamptz_send(e.occurred_at), 'hex') as f5`

// A scalar subquery is never turned into a join over the whole table of seals, whatever the planner estimates.
const sealOf = (source: AuditSource): RawBuilder<unknown> => sql`(
      select s.position from audit_chain c join audit_seal s on s.chain_id = c.chain_id
      where c.name = ${CHAIN_OF[source]} and s.sequence = e.sequence)`
