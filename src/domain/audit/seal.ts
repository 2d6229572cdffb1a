// Seals the audit logs in the background (cloud §7). Requests write rows without a seal, so that no request waits for the place of another one's
// row in a chain. A few seconds later one process at a time chains the rows here.
import type { KeyObject } from 'node:crypto'
import type { Clocked } from '../../lib/clock.ts'
import type { Platform } from '../../lib/platform.ts'
import { runEach, startRounds } from '../../lib/rounds.ts'
import {
  AUDIT_LOGS,
  type AuditLogName,
  findChains,
  insertChain,
  lockLog,
  noteSealing,
  updateChain,
} from '../../storage/audit/chain.ts'
import { addPartition, findPartitions } from '../../storage/audit/partitions.ts'
import { findUnsealed, type PlacedRow, placeRows, type UnsealedRow } from '../../storage/audit/rows.ts'
import { takeOverEvents } from '../../storage/audit/takeover.ts'
import { provideUserKeys } from '../../storage/audit/erasure.ts'
import { type Database, inTransaction, isAnswered, type Tx } from '../../storage/database/database.ts'
import type { AuditParts } from './audit.ts'
import { authenticateChain, CHAIN_BEGINNING, isExtensible, sealRow } from './mac.ts'
import { createRetention, type ReportChain } from './retention.ts'

/** Starts the timer; the returned function stops it and waits for a round that runs. */
export const startAuditSealing = (parts: AuditParts & Clocked): (() => Promise<void>) =>
  startRounds(createAuditSealer(parts), INTERVAL_MS, {
    onFailure: (err) => parts.events.auditSealingFailed({ err }),
    onDone: (ms) => parts.events.roundDone({ work: 'audit_sealing', ms }),
    mayRun: parts.clock.isAgreed,
  })

/** Creates the sealer of this process. Each call is one round: it seals the rows that it can see, then deletes those that are old enough. */
export function createAuditSealer(parts: AuditParts): () => Promise<void> {
  const reported = new Set<string>()
  const report = (chain: string): void => {
    if (reported.has(chain)) return
    reported.add(chain)
    parts.events.auditChainBroken({ chain })
  }
  const retention = createRetention(parts, report)
  return async () => {
    const limit = BATCH_ROWS[parts.databaseKind]
    const takeOver = async (): Promise<void> => {
      for (let i = 0; i < TAKEN_OVER_BATCHES && (await takeOverEvents(parts.db, limit)) === limit; i += 1);
    }
    const tasks = [
      takeOver,
      () => inTransaction(parts.db, (tx) => providePartition(tx, parts.platform, parts.settings.auditPartitionDays)),
      ...AUDIT_LOGS.map((log) => () => sealLog(parts, log, report)),
      ...retention,
    ]
    await runEach(tasks, { goesOn: isAnswered, onFailure: (err) => parts.events.auditSealingFailed({ err }) })
  }
}

/**
 * Adds a partition when the newest one ends within a day. When several processes do this at once, the one with the sealer's lock adds it. After a
 * long pause one partition covers the whole time of the pause.
 */
export async function providePartition(tx: Tx, platform: Platform, partitionDays: number): Promise<void> {
  const lock = await lockLog(tx, 'devices')
  if (lock === undefined) return
  const sealing = Math.max(platform.now(), lock.sealedAt?.getTime() ?? 0)
  const newest = (await findPartitions(tx)).at(-1)
  const end = newest?.endsAt.getTime() ?? Number.NEGATIVE_INFINITY
  if (end - sealing > DAY_MS) return
  await addPartition(tx, newest?.endsAt, new Date(Math.max(end, sealing + DAY_MS) + partitionDays * DAY_MS))
}

const DAY_MS = 86_400_000

/** Seals rows until none is left that can be sealed. */
async function sealLog(parts: AuditParts, log: AuditLogName, report: ReportChain): Promise<void> {
  const broken = new Set<string>()
  const limit = BATCH_ROWS[parts.databaseKind]
  let found: number | undefined
  do {
    found = await inTransaction(parts.db, (tx) => sealBatch(parts, tx, { log, limit, broken }))
  } while (found === limit)
  for (const chain of broken) report(chain)
}

interface Batch {
  readonly log: AuditLogName
  readonly limit: number
  /** Chains that somebody altered, and that are therefore not extended. Their rows stay unsealed, and verification counts them. */
  readonly broken: Set<string>
}

/** Seals the next rows and returns their number; undefined while another process seals. */
async function sealBatch(parts: AuditParts, tx: Tx, { log, limit, broken }: Batch): Promise<number | undefined> {
  const lock = await lockLog(tx, log)
  if (lock === undefined) return undefined
  const rows = await findUnsealed(tx, log, limit, [...broken])
  const keyed = await giveUserKeys(tx, parts.platform, log, rows)
  const placed = await extendChains(tx, parts.installationKeys.auditSeal, keyed, broken)
  if (placed.length > 0) {
    // Never earlier than the batch before, whatever the clocks of the processes say. So a partition ends at the same place in each chain.
    const at = new Date(Math.max(parts.platform.now(), lock.sealedAt?.getTime() ?? 0))
    await placeRows(tx, log, placed, at)
    await noteSealing(tx, log, at)
  }
  return rows.length
}

/** Adds to each row the key of its user. Each batch reads the keys again, because a user may have been erased since the last one. */
async function giveUserKeys(
  tx: Tx,
  platform: Pick<Platform, 'randomBytes'>,
  log: AuditLogName,
  rows: readonly UnsealedRow[],
): Promise<readonly UnsealedRow[]> {
  if (log !== 'devices') return rows
  const users = new Set(rows.map(userOf).filter((user) => user !== null))
  const keys = await provideUserKeys(tx, new Map([...users].map((user) => [user, platform.randomBytes(USER_KEY_BYTES)])))
  return rows.map((row) => {
    const user = userOf(row)
    return { ...row, userKey: user === null ? null : (keys.get(user) ?? null) }
  })
}

const userOf = ({ fields: [, user] }: UnsealedRow): string | null => user

async function extendChains(
  tx: Tx,
  key: KeyObject,
  rows: readonly UnsealedRow[],
  broken: Set<string>,
): Promise<readonly PlacedRow[]> {
  const rowsByChain = Map.groupBy(rows, ({ chain }) => chain)
  const chains = new Map((await findChains(tx, [...rowsByChain.keys()])).map((chain) => [chain.name, chain]))
  const all: PlacedRow[] = []
  for (const [name, added] of rowsByChain) {
    const chain = chains.get(name)
    // A new head would make the alteration of the chain authentic.
    if (chain && !isExtensible(key, chain)) {
      broken.add(name)
      continue
    }
    const start = chain?.start ?? CHAIN_BEGINNING
    let head = chain?.head ?? CHAIN_BEGINNING
    const places = added.map((row) => {
      head = sealRow(key, name, head, row)
      return { ...head, row }
    })
    const state = authenticateChain(key, { name, start, head })
    const chainId = chain?.chainId ?? (await insertChain(tx, state))
    if (chain) await updateChain(tx, chainId, state)
    for (const place of places) all.push({ ...place, chainId })
  }
  return all
}

const INTERVAL_MS = 5_000
const USER_KEY_BYTES = 32
// A round takes at most so many batches out of the table of the version before. The newest rows come first: running processes of that version write
// them.
const TAKEN_OVER_BATCHES = 10
// The embedded database answers nothing else while a batch is sealed, which takes about 20 ms.
const BATCH_ROWS: Record<Database['kind'], number> = { embedded: 250, postgresql: 2_000 }
