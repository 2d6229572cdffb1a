// The background sealer of the audit logs (cloud §7). Requests write rows without a seal, so that none waits for another one's place in a
// chain. A few seconds later one process at a time chains them here.
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

/** The sealer of this process. Each call is one round: it seals the rows that it can see, then removes those that retention ends. */
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
 * Adds a partition when the newest one ends within a day. Several processes may do this at once: one of them has the lock of the sealer.
 * After a long pause one partition takes the whole time that was left out.
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
  /** Chains that are not extended, because somebody altered them. Their rows stay unsealed, and verification counts them. */
  readonly broken: Set<string>
}

/** Seals the next rows and returns how many were found; undefined while another process seals. */
async function sealBatch(parts: AuditParts, tx: Tx, { log, limit, broken }: Batch): Promise<number | undefined> {
  const lock = await lockLog(tx, log)
  if (lock === undefined) return undefined
  const rows = await findUnsealed(tx, log, limit, [...broken])
  const keyed = await giveUserKeys(tx, parts.platform, log, rows)
  const placed = await extendChains(tx, parts.installationKeys.auditSeal, keyed, broken)
  if (placed.length > 0) {
    // Never before the batch before, whatever the clock of the process that sealed it: partitions cut each chain in one place.
    const at = new Date(Math.max(parts.platform.now(), lock.sealedAt?.getTime() ?? 0))
    await placeRows(tx, log, placed, at)
    await noteSealing(tx, log, at)
  }
  return rows.length
}

/** Adds the keys of the users to rows. They are read for each batch, because a user may have been erased since the last one. */
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
    // To extend a chain that somebody altered would make the alteration authentic.
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
// What was copied to the log is deleted in the background; the rows of processes of the version before come first.
const TAKEN_OVER_BATCHES = 10
// The embedded database answers nobody else while a batch is sealed, which takes some 20 ms.
const BATCH_ROWS: Record<Database['kind'], number> = { embedded: 250, postgresql: 2_000 }
