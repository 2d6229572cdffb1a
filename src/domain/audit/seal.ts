// The background sealer of the audit log and its retention (cloud §7). Rows are written unsealed, so that no request waits for another's
// place in a chain; a few seconds later they are chained here, by one process at a time.
import type { KeyObject } from 'node:crypto'
import { equalConstantTime } from '../../lib/bytes.ts'
import type { Events } from '../../lib/events.ts'
import type { Platform } from '../../lib/platform.ts'
import { startRounds } from '../../lib/rounds.ts'
import {
  AUDIT_SOURCES,
  type AuditSource,
  type ChainRow,
  deleteSealed,
  findChains,
  findChainsToShorten,
  findSealed,
  findStretchEnd,
  findUnsealed,
  insertChain,
  insertSeals,
  lockSource,
  type NewSeal,
  observeSequences,
  type SequenceObservation,
  settleSource,
  type UnsealedRow,
  updateChain,
} from '../../storage/audit-chain.ts'
import { inTransaction, type Pool, type Tx } from '../../storage/database.ts'
import { authenticateChain, CHAIN_BEGINNING, isChainAuthentic, sealRow } from './mac.ts'

export interface AuditSealParts {
  readonly db: Pool
  readonly platform: Platform
  readonly events: Events
  readonly installationKeys: { readonly auditSeal: KeyObject }
  readonly settings: { readonly auditRetentionDays: number; readonly adminAuditRetentionDays: number }
}

/** Starts the timer; the returned function stops it and waits for a round that runs. */
export const startAuditSealing = (parts: AuditSealParts): (() => Promise<void>) =>
  startRounds(createAuditSealer(parts), INTERVAL_MS, {
    onFailure: (err) => parts.events.auditSealingFailed({ err }),
    onDone: (ms) => parts.events.roundDone({ work: 'audit_sealing', ms }),
  })

/** The sealer of this process. Each call is one round: seals what can be seen, then removes what retention ends. */
export function createAuditSealer(parts: AuditSealParts): () => Promise<void> {
  const reported = new Set<string>()
  const report = (chain: string): void => {
    if (reported.has(chain)) return
    reported.add(chain)
    parts.events.auditChainBroken({ chain })
  }
  const watches = AUDIT_SOURCES.map((source): Watch => ({ source, ...NOTHING_SEEN }))
  return async () => {
    for (const watch of watches) {
      await sealSource(parts, watch, report)
      await shortenChains(parts, watch.source, report)
    }
  }
}

interface Watch {
  readonly source: AuditSource
  /** An earlier look: when its transactions have ended, everything up to its newest row can be seen or will never be. */
  candidate: SequenceObservation | undefined
  /** What this process knows to be settled. */
  settled: number | undefined
  /** The last row that this process has looked at. */
  reached: number
}

const NOTHING_SEEN = { candidate: undefined, settled: undefined, reached: 0 }

/**
 * Numbers went back: a backup was restored under this process, or retention removed the newest rows, and nothing that it knows holds any
 * more.
 */
const isAnotherPast = ({ candidate, reached }: Watch, seen: SequenceObservation): boolean =>
  seen.newest < reached || (candidate !== undefined && seen.transaction < candidate.transaction)

type Report = (chain: string) => void

async function sealSource(parts: AuditSealParts, watch: Watch, report: Report): Promise<void> {
  const seen = await observeSequences(parts.db, watch.source)
  if (isAnotherPast(watch, seen)) Object.assign(watch, NOTHING_SEEN)
  const { candidate } = watch
  const isDecided = candidate !== undefined && candidate.transaction <= seen.oldestTransaction
  if (candidate === undefined || isDecided) watch.candidate = seen
  if (seen.newest === watch.settled) return
  // Rows behind are looked at once more when they are decided, and only then. Otherwise a transaction that stays open for hours, of any
  // program, would have all rows since its begin looked at every few seconds.
  let after = isDecided ? 0 : watch.reached
  if (seen.newest === after) return
  for (;;) {
    const batch = await inTransaction(parts.db, (tx) =>
      sealBatch(parts, tx, { source: watch.source, after, decided: isDecided ? candidate.newest : 0, report }),
    )
    // Another process seals.
    if (batch === undefined) return
    watch.settled = batch.settled
    if (batch.last === undefined) return
    after = batch.last
    watch.reached = Math.max(watch.reached, after)
  }
}

interface Batch {
  readonly source: AuditSource
  /** The last row that this round has looked at. */
  readonly after: number
  /** Every row up to this one can be seen or will never be. */
  readonly decided: number
  readonly report: Report
}

/** Seals the next rows; `last` is undefined when there are no more. */
async function sealBatch(
  { installationKeys: { auditSeal } }: AuditSealParts,
  tx: Tx,
  { source, after, decided, report }: Batch,
): Promise<{ settled: number; last: number | undefined } | undefined> {
  const settled = await lockSource(tx, source)
  if (settled === undefined) return undefined
  const begin = Math.max(settled, after)
  const last = await findStretchEnd(tx, source, begin, BATCH_ROWS)
  if (last !== undefined) await extendChains(tx, auditSeal, await findUnsealed(tx, source, begin, last), report)
  // Nothing of a broken chain is sealed any more: its rows stay behind, and verification counts them.
  const reached = Math.min(decided, last ?? decided)
  if (reached <= settled) return { settled, last }
  await settleSource(tx, source, reached)
  return { settled: reached, last }
}

async function extendChains(tx: Tx, key: KeyObject, rows: readonly UnsealedRow[], report: Report): Promise<void> {
  const rowsByChain = Map.groupBy(rows, ({ chain }) => chain)
  const chains = new Map((await findChains(tx, [...rowsByChain.keys()])).map((chain) => [chain.name, chain]))
  const seals: NewSeal[] = []
  for (const [name, added] of rowsByChain) {
    const chain = chains.get(name)
    // To extend a chain that somebody altered would make the alteration authentic.
    if (chain && !isExtensible(key, chain)) {
      report(name)
      continue
    }
    const start = chain?.start ?? CHAIN_BEGINNING
    let head = chain?.head ?? CHAIN_BEGINNING
    const places = added.map((row) => {
      head = sealRow(key, name, head, row)
      return { ...head, sequence: row.sequence }
    })
    const state = authenticateChain(key, { name, start, head })
    const chainId = chain?.chainId ?? (await insertChain(tx, state))
    if (chain) await updateChain(tx, chainId, state)
    seals.push(...places.map((place) => ({ ...place, chainId })))
  }
  if (seals.length > 0) await insertSeals(tx, seals)
}

/** Nobody altered the chain's state, cut its seals, or set its head back. */
const isExtensible = (key: KeyObject, chain: ChainRow): boolean =>
  isChainAuthentic(key, chain) && chain.lastPosition === chain.head.position

async function shortenChains(parts: AuditSealParts, source: AuditSource, report: Report): Promise<void> {
  const { auditRetentionDays, adminAuditRetentionDays } = parts.settings
  const days = source === 'audit_event' ? auditRetentionDays : adminAuditRetentionDays
  const cutoff = new Date(parts.platform.now() - days * DAY_MS)
  for (const name of await findChainsToShorten(parts.db, source, cutoff)) {
    while ((await inTransaction(parts.db, (tx) => shorten(parts, tx, { source, name, cutoff, report }))) === BATCH_ROWS);
  }
}

/** Removes rows older than `cutoff` from the front of a chain; returns how many. */
async function shorten(
  { installationKeys: { auditSeal } }: AuditSealParts,
  tx: Tx,
  { source, name, cutoff, report }: { source: AuditSource; name: string; cutoff: Date; report: Report },
): Promise<number> {
  if ((await lockSource(tx, source)) === undefined) return 0
  const [chain] = await findChains(tx, [name])
  if (chain === undefined) return 0
  let start = chain.start
  let isIntact = isExtensible(auditSeal, chain)
  const ended: number[] = []
  for (const { sequence, seal, row } of isIntact ? await findSealed(tx, source, chain.chainId, start.position, BATCH_ROWS) : []) {
    if (row && !(row.occurredAt < cutoff)) break
    // What was altered stays where it is: a row that was given an older time must not vanish as if its time had come.
    const place = row && sealRow(auditSeal, name, start, row)
    isIntact = place !== undefined && equalConstantTime(place.seal, seal)
    if (place === undefined || !isIntact) break
    start = place
    ended.push(sequence)
  }
  if (!isIntact) report(name)
  if (ended.length === 0) return 0
  await deleteSealed(tx, source, chain.chainId, ended)
  await updateChain(tx, chain.chainId, authenticateChain(auditSeal, { name, start, head: chain.head }))
  return ended.length
}

const INTERVAL_MS = 5_000
const DAY_MS = 86_400_000
// The embedded database answers nobody else while a batch is sealed, which takes some 20 ms.
const BATCH_ROWS = 250
