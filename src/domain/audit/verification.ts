// Verifies the audit logs (cloud §7): it recomputes every seal, and names the first row of each chain whose seal is wrong.
import type { KeyObject } from 'node:crypto'
import { equalConstantTime, toHex } from '../../lib/bytes.ts'
import { AUDIT_LOGS, type ChainPlace, type ChainRow, findChains, logOfChain } from '../../storage/audit/chain.ts'
import { countUnsealed, findBeforeStart, findSeal, findSealed, findStrays, type SealedRow } from '../../storage/audit/rows.ts'
import type { Db } from '../../storage/database/database.ts'
import { CHAIN_BEGINNING, isChainAuthentic, isSealed } from './mac.ts'
import type { SealParts } from './audit.ts'

export interface AuditReport {
  readonly isIntact: boolean
  /** The chains, sorted by name. */
  readonly chains: readonly ChainReport[]
}

export interface ChainReport {
  /** `application:` and its id, `no-application` or `administration`. */
  readonly chain: string
  readonly isIntact: boolean
  /** The number of rows whose seal is right, up to the fault if there is one. */
  readonly sealed: number
  /** The number of rows that wait for the sealer. */
  readonly unsealed: number
  /** The number of rows that retention has deleted. */
  readonly startPosition: number
  readonly headPosition: number
  /** 32 bytes in hexadecimal. A bank that notes position and seal of a head elsewhere can later see whether the log was cut or written anew. */
  readonly headSeal: string
  readonly fault?: ChainFault
}

interface ChainFault {
  readonly problem: string
  /** The position in the chain. */
  readonly position?: number
  /** The sequence number of the row in its table. */
  readonly sequence?: number
}

/** A head that the bank noted elsewhere. `seal` is in hexadecimal. */
export interface NotedHead {
  readonly chain: string
  readonly position: number
  readonly seal: string
}

/** Creates a verification for many callers. A caller that asks while one runs gets the report of that one. */
export function createAuditVerification(parts: SealParts): () => Promise<AuditReport> {
  let running: Promise<AuditReport> | undefined
  return () => {
    running ??= verifyAudit(parts).finally(() => {
      running = undefined
    })
    return running
  }
}

/** Verifies every chain in batches, without a lock. */
export async function verifyAudit(parts: SealParts, noted: readonly NotedHead[] = []): Promise<AuditReport> {
  const walks = new Map<string, Walk>()
  for (const chain of await findChains(parts.db)) walks.set(chain.name, await walkChain(parts, chain))
  const unsealed = new Map((await Promise.all(AUDIT_LOGS.map((log) => countUnsealed(parts.db, log)))).flatMap((map) => [...map]))
  const strays = new Map((await findStrays(parts.db)).map(({ chain, sequence }) => [chain, sequence]))
  const heads = Map.groupBy(noted, ({ chain }) => chain)
  const chains: ChainReport[] = []
  for (const name of [...new Set([...walks.keys(), ...unsealed.keys(), ...strays.keys(), ...heads.keys()])].toSorted()) {
    const walk = walks.get(name)
    const fault =
      walk?.fault ?? (await compareHeads(parts.db, walk?.chain, heads.get(name) ?? [])) ?? describeAdded(strays.get(name))
    const { position, seal } = walk?.chain.head ?? CHAIN_BEGINNING
    chains.push({
      chain: name,
      isIntact: fault === undefined,
      sealed: walk?.sealed ?? 0,
      unsealed: unsealed.get(name) ?? 0,
      startPosition: walk?.chain.start.position ?? 0,
      headPosition: position,
      headSeal: toHex(seal),
      ...(fault && { fault }),
    })
  }
  return { isIntact: chains.every(({ isIntact }) => isIntact), chains }
}

interface Walk {
  /** The state of the chain at the end of the walk. */
  readonly chain: ChainRow
  readonly sealed: number
  readonly fault: ChainFault | undefined
}

async function walkChain(parts: SealParts, found: ChainRow): Promise<Walk> {
  const { db, installationKeys } = parts
  const log = logOfChain(found.name)
  let chain = found
  let at = chain.start
  for (;;) {
    const rows = await findSealed(db, { log, chainId: chain.chainId, after: at.position, limit: BATCH_ROWS })
    const step = followSeals(installationKeys.auditSeal, chain, at, rows)
    at = step.at
    if (step.fault === undefined && rows.length > 0 && at.position < chain.head.position) continue
    // The sealer may have moved the head meanwhile, and retention the start.
    const [now] = await findChains(db, [chain.name])
    if (now === undefined) return { chain, sealed: 0, fault: { problem: 'the chain is gone' } }
    const isAuthentic = isChainAuthentic(installationKeys.auditSeal, now)
    if (isAuthentic && now.start.position > at.position) at = now.start
    else {
      const isCut = rows.length === 0 && at.position < chain.head.position
      const isEnd = isCut || now.head.position <= at.position
      const fault =
        step.fault ??
        (isAuthentic ? undefined : STATE_CHANGED) ??
        (isEnd ? (compareEnd(now, at) ?? (await findAddedBefore(db, now))) : undefined)
      if (isEnd || fault) return { chain: now, sealed: Math.max(0, at.position - now.start.position), fault }
    }
    chain = now
  }
}

/** Follows seals as long as they are right, up to the head. */
function followSeals(
  key: KeyObject,
  chain: ChainRow,
  start: ChainPlace,
  rows: readonly SealedRow[],
): { at: ChainPlace; fault: ChainFault | undefined } {
  let at = start
  for (const row of rows) {
    const { position, sequence } = row
    if (at.position === chain.head.position) break
    const next = at.position + 1
    if (position < next) return { at, fault: { problem: 'a row was added at a place that is taken', position, sequence } }
    if (position > next) return { at, fault: { problem: 'the row or its seal is missing', position: next } }
    if (!isSealed(key, chain.name, at, row)) return { at, fault: { problem: 'the row was changed or moved', position, sequence } }
    at = row
  }
  return { at, fault: undefined }
}

function compareEnd({ head, lastPosition }: ChainRow, at: ChainPlace): ChainFault | undefined {
  if (at.position < head.position) return { problem: 'the end of the chain is missing', position: at.position + 1 }
  if (lastPosition > head.position)
    return { problem: 'rows are sealed beyond the head of the chain', position: head.position + 1 }
  return equalConstantTime(head.seal, at.seal) ? undefined : STATE_CHANGED
}

/** Finds rows before the start of a chain. There must be none, because retention removes them in the transaction that moves the start. */
const findAddedBefore = async (db: Db, { name, chainId, start }: ChainRow): Promise<ChainFault | undefined> =>
  describeAdded(await findBeforeStart(db, logOfChain(name), chainId, start.position))

const describeAdded = (sequence: number | undefined): ChainFault | undefined =>
  sequence === undefined ? undefined : { problem: 'the row was added to rows that are sealed', sequence }

async function compareHeads(db: Db, chain: ChainRow | undefined, noted: readonly NotedHead[]): Promise<ChainFault | undefined> {
  for (const { position, seal } of noted) {
    if (position > (chain?.head.position ?? 0)) return { problem: 'the chain ends before the noted head', position }
    // Retention has deleted these rows, so their seals cannot be compared.
    if (chain === undefined || position < chain.start.position) continue
    const kept =
      position === chain.start.position ? chain.start.seal : await findSeal(db, logOfChain(chain.name), chain.chainId, position)
    if (kept === undefined || toHex(kept) !== seal) return { problem: 'the chain is not the one of the noted head', position }
  }
  return undefined
}

const STATE_CHANGED: ChainFault = { problem: 'start or head of the chain was changed' }
const BATCH_ROWS = 1_000
