// Stores the chains of seals over the rows of the audit logs (cloud §7). audit_chain holds the chains, and audit_sealer the locks for extending
// them. audit_delivery holds how far each chain was delivered, and audit_deliverer which process delivers.
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { type Db, onlyRow, type Tx } from '../database/database.ts'

/** A log whose rows are sealed. The log of devices has one chain per application; the log of administrators has one chain. */
export type AuditLogName = 'devices' | 'administrators'

/** The logs whose rows are sealed. */
export const AUDIT_LOGS: readonly AuditLogName[] = ['devices', 'administrators']

/** The name of the chain of administrators. */
export const ADMINISTRATION = 'administration'

/** The log whose rows a chain seals. */
export const logOfChain = (name: string): AuditLogName => (name === ADMINISTRATION ? 'administrators' : 'devices')

/**
 * Locks a log for sealing until the end of the transaction; undefined when another process holds the lock. A last sealing that was set to `infinity`
 * counts as none, because no partition would take the rows that are sealed after it.
 */
export async function lockLog(tx: Tx, log: AuditLogName): Promise<{ readonly sealedAt: Date | null } | undefined> {
  const { rows } = await sql<{ sealedAt: Date | null }>`
    select case when isfinite(sealed_at) then sealed_at end as "sealedAt" from audit_sealer where log = ${log}
    for update skip locked`.execute(tx)
  return rows[0]
}

/** Stores the time of the latest sealing of a log. */
export async function noteSealing(tx: Tx, log: AuditLogName, at: Date): Promise<void> {
  await sql`update audit_sealer set sealed_at = ${at} where log = ${log}`.execute(tx)
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
  /** Position of the last sealed row that exists; the start's position when the chain has no row. */
  readonly lastPosition: number
}

/**
 * Reads the chains with these names, or all of them, in order of name. Chains and rows may be on different database nodes, where one statement does
 * not see both at the same moment. So they are read separately, and again until they fit (docs/decisions/0020-spreading.md).
 */
export async function findChains(db: Db, names?: readonly string[]): Promise<ChainRow[]> {
  const found: ChainRow[] = []
  for (const chain of await readChains(db, names)) {
    const settled = await settle(db, chain)
    if (settled !== undefined) found.push(settled)
  }
  return found
}

/** Reads a chain, and the last position in its log while the chain did not move; undefined when the chain is gone. */
async function settle(db: Db, first: ChainColumns): Promise<ChainRow | undefined> {
  let chain = first
  for (let looks = 1; ; ) {
    const last = await findLastPosition(db, chain)
    const [now] = await readChains(db, [chain.name])
    if (now === undefined) return undefined
    const hasMoved = now.head !== chain.head || now.start !== chain.start
    chain = now
    if (hasMoved) continue
    const lastPosition = last ?? Number(chain.start)
    if (lastPosition === Number(chain.head) || looks === LOOKS) return { ...toChainState(chain), lastPosition }
    // Another node may commit its rows a moment after the head.
    looks += 1
    await sleep(PAUSE_MS)
  }
}

async function readChains(db: Db, names?: readonly string[]): Promise<ChainColumns[]> {
  const { rows } = await sql<ChainColumns>`
    select c.chain_id as "chainId", c.name, c.start_position as start, c.start_seal as "startSeal", c.head_position as head,
      c.head_seal as "headSeal", c.authentication
    from audit_chain c where ${names ?? null}::text[] is null or c.name = any(${names ?? null}::text[])
    order by c.name`.execute(db)
  return rows
}

/** Position of the last sealed row of a chain; undefined when it has none. */
export async function findLastPosition(
  db: Db,
  { name, chainId }: Pick<ChainRow, 'name' | 'chainId'>,
): Promise<number | undefined> {
  const { rows } = await (logOfChain(name) === 'administrators'
    ? sql<LastColumns>`select max(position) as last from admin_event`
    : sql<LastColumns>`select max(position) as last from audit_log where chain_id = ${chainId}`
  ).execute(db)
  return rows[0]?.last == null ? undefined : Number(rows[0].last)
}

const toChainState = ({ chainId, name, start, startSeal, head, headSeal, authentication }: ChainColumns) => ({
  chainId,
  name,
  start: { position: Number(start), seal: startSeal },
  head: { position: Number(head), seal: headSeal },
  authentication,
})

interface LastColumns {
  readonly last: string | null
}

const LOOKS = 3
const PAUSE_MS = 20

interface ChainColumns {
  readonly chainId: number
  readonly name: string
  readonly start: string
  readonly head: string
  readonly startSeal: Buffer
  readonly headSeal: Buffer
  readonly authentication: Buffer
}

/** Inserts a chain and returns its id. */
export async function insertChain(tx: Tx, { name, start, head, authentication }: ChainState): Promise<number> {
  const { rows } = await sql<{ chainId: number }>`
    insert into audit_chain (name, start_position, start_seal, head_position, head_seal, authentication)
    values (${name}, ${start.position}, ${start.seal}, ${head.position}, ${head.seal}, ${authentication})
    returning chain_id as "chainId"`.execute(tx)
  return onlyRow(rows).chainId
}

/** Moves start and head of a chain. */
export async function updateChain(tx: Tx, chainId: number, { start, head, authentication }: ChainState): Promise<void> {
  await sql`
    update audit_chain set start_position = ${start.position}, start_seal = ${start.seal}, head_position = ${head.position},
      head_seal = ${head.seal}, authentication = ${authentication}
    where chain_id = ${chainId}`.execute(tx)
}

interface DeliveryLease {
  readonly leaseId: string
  readonly at: Date
  readonly until: Date
}

/**
 * Takes the lease for deliveries, or extends it. False while another process holds it. A lease that ends more than a minute after `until` was made
 * by a clock that was set back since, and is taken over.
 */
export async function leaseDelivery(db: Db, { leaseId, at, until }: DeliveryLease): Promise<boolean> {
  const { rows } = await sql`
    update audit_deliverer set lease_id = ${leaseId}, leased_until = ${until}
    where lease_id = ${leaseId} or leased_until < ${at} or leased_until > ${until}::timestamptz + interval '1 minute' returning 1`.execute(
    db,
  )
  return rows.length > 0
}

/** Ends the lease. */
export async function endDeliveryLease(db: Db, leaseId: string): Promise<void> {
  await sql`update audit_deliverer set leased_until = '-infinity' where lease_id = ${leaseId}`.execute(db)
}

/** Returns the last delivered row of each chain, by chain id. */
export async function findDelivered(db: Db): Promise<ReadonlyMap<number, ChainPlace>> {
  const { rows } = await sql<{ chainId: number; position: string; seal: Buffer }>`
    select chain_id as "chainId", position, seal from audit_delivery`.execute(db)
  return new Map(rows.map(({ chainId, position, seal }) => [chainId, { position: Number(position), seal }]))
}

/** Stores the last delivered row of a chain. False when another process holds the lease by now. */
export async function noteDelivered(db: Db, leaseId: string, chainId: number, { position, seal }: ChainPlace): Promise<boolean> {
  const { rows } = await sql`
    insert into audit_delivery (chain_id, position, seal)
    select ${chainId}::int, ${position}::bigint, ${Buffer.from(seal)}::bytea from audit_deliverer where lease_id = ${leaseId}
    on conflict (chain_id) do update set position = excluded.position, seal = excluded.seal
    returning 1`.execute(db)
  return rows.length > 0
}
