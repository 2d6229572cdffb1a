// Deletes old rows of the audit logs (cloud §7): rows of devices by whole partitions, rows of administrators one by one. Both are deleted from the
// start of their chains, and only when their seals are right. The start, which a MAC covers, moves behind them.
import {
  ADMINISTRATION,
  type ChainPlace,
  type ChainRow,
  findChains,
  lockLog,
  noteSealing,
  updateChain,
} from '../../storage/audit/chain.ts'
import { type AuditPartition, dropPartition, findPartitions } from '../../storage/audit/partitions.ts'
import { deleteAdminEvents, findSealed } from '../../storage/audit/rows.ts'
import { inTransaction, isLockTimeout, type Tx } from '../../storage/database/database.ts'
import { authenticateChain, isExtensible, isSealed } from './mac.ts'
import type { AuditParts } from './audit.ts'

/** Reports a chain that somebody altered. */
export type ReportChain = (chain: string) => void

/** Creates the retention of one process, one function for each log. Each call does a bounded part of the work. */
export function createRetention(parts: AuditParts, report: ReportChain): readonly (() => Promise<void>)[] {
  const check = createCheck(parts, report)
  const cutoffAfter = (days: number): Date => new Date(parts.platform.now() - days * DAY_MS)
  const endPartitions = async (): Promise<void> => {
    const cutoff = cutoffAfter(parts.settings.auditRetentionDays)
    for (const partition of await findPartitions(parts.db)) {
      const ended = partition.endsAt <= cutoff ? await check(partition, cutoff) : undefined
      if (ended === undefined || !(await endPartition(parts, partition, ended))) break
    }
  }
  const shorten = async (): Promise<void> => {
    while (await shortenAdministration(parts, cutoffAfter(parts.settings.adminAuditRetentionDays), report));
  }
  return [endPartitions, shorten]
}

/** The last place of each chain in a partition to be dropped. */
type Ends = ReadonlyMap<string, ChainPlace>

/**
 * Follows all chains through the oldest partition, a bounded number of rows a call. Returns their last places in it when all rows are right and
 * older than `cutoff`. A partition with an altered row stays for an investigation. The time of sealing, which decides the partition, is under no
 * seal. So a row that somebody moved into an old partition stays until it is old enough itself.
 */
function createCheck(
  { db, installationKeys: { auditSeal } }: AuditParts,
  report: ReportChain,
): (partition: AuditPartition, cutoff: Date) => Promise<Ends | undefined> {
  let followed: { readonly name: string; readonly ends: Map<string, ChainPlace> } | undefined
  return async (partition, cutoff) => {
    if (followed?.name !== partition.name) followed = { name: partition.name, ends: new Map() }
    const { ends } = followed
    let batches = 0
    for (const chain of await findChains(db)) {
      if (chain.name === ADMINISTRATION) continue
      if (!isExtensible(auditSeal, chain)) {
        report(chain.name)
        return undefined
      }
      let at = ends.get(chain.name) ?? chain.start
      // Another process may have moved the start meanwhile.
      if (at.position < chain.start.position) at = chain.start
      for (let isMore = true; isMore; ) {
        const query = { log: 'devices', chainId: chain.chainId, after: at.position, limit: BATCH_ROWS } as const
        const rows = await findSealed(db, { ...query, sealedBefore: partition.endsAt })
        // A chain without new rows does not count as a batch. So each call gets further, however many chains there are.
        if (rows.length > 0 && ++batches > CHECKED_BATCHES) return undefined
        for (const row of rows) {
          if (!isSealed(auditSeal, chain.name, at, row)) {
            report(chain.name)
            return undefined
          }
          if (!(row.occurredAt < cutoff)) return undefined
          at = row
        }
        ends.set(chain.name, at)
        isMore = rows.length === BATCH_ROWS
      }
    }
    return ends
  }
}

/** Drops a partition and moves the starts of its chains behind it. False when somebody reads the log or seals at the moment. */
async function endPartition(parts: AuditParts, { name, endsAt }: AuditPartition, ends: Ends): Promise<boolean> {
  return inTransaction(parts.db, async (tx) => {
    const lock = await lockLog(tx, 'devices')
    if (lock === undefined) return false
    const [oldest, ...younger] = await findPartitions(tx)
    // Another process has dropped the partition, or it is the last one and new rows need it.
    if (oldest?.name !== name || oldest.endsAt.getTime() !== endsAt.getTime() || younger.length === 0) return false
    await dropPartition(tx, name)
    // The sealer never uses an earlier time than this, even if its clock is set back: the partition of that time is gone.
    await noteSealing(tx, 'devices', new Date(Math.max(endsAt.getTime(), lock.sealedAt?.getTime() ?? 0)))
    for (const chain of await findChains(tx, [...ends.keys()])) {
      const end = ends.get(chain.name)
      if (end && end.position > chain.start.position) await moveStart(parts, tx, chain, end)
    }
    return true
  }).catch((error: unknown) => {
    if (isLockTimeout(error)) return false
    throw error
  })
}

/** Removes rows older than `cutoff` from the front of the chain of administrators; true when there may be more. */
async function shortenAdministration(parts: AuditParts, cutoff: Date, report: ReportChain): Promise<boolean> {
  const { auditSeal } = parts.installationKeys
  return inTransaction(parts.db, async (tx) => {
    if ((await lockLog(tx, 'administrators')) === undefined) return false
    const [chain] = await findChains(tx, [ADMINISTRATION])
    if (chain === undefined) return false
    const { chainId, name, start } = chain
    const [first] = await findSealed(tx, { log: 'administrators', chainId, after: start.position, limit: 1 })
    if (first === undefined || !(first.occurredAt < cutoff)) return false
    let at = start
    let isIntact = isExtensible(auditSeal, chain)
    const ended: number[] = []
    const query = { log: 'administrators', chainId, after: start.position, limit: BATCH_ROWS } as const
    for (const row of isIntact ? await findSealed(tx, query) : []) {
      if (!(row.occurredAt < cutoff)) break
      // An altered row stays. Otherwise somebody could make a row vanish by giving it an older time.
      isIntact = isSealed(auditSeal, name, at, row)
      if (!isIntact) break
      at = row
      ended.push(row.sequence)
    }
    if (!isIntact) report(name)
    if (ended.length === 0) return false
    await deleteAdminEvents(tx, ended)
    await moveStart(parts, tx, chain, at)
    return ended.length === BATCH_ROWS
  })
}

const moveStart = (
  { installationKeys: { auditSeal } }: AuditParts,
  tx: Tx,
  { chainId, name, head }: ChainRow,
  start: ChainPlace,
): Promise<void> => updateChain(tx, chainId, authenticateChain(auditSeal, { name, start, head }))

const DAY_MS = 86_400_000
const BATCH_ROWS = 500
// So many batches have 50,000 rows, which take about a second to read. Then sealing goes on.
const CHECKED_BATCHES = 100
