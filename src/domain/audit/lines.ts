// Writes rows of the audit logs as lines of JSON for a store outside of the database. Each line has its chain, its position and its seal. Lines
// with the head of a chain show later whether its end was cut off. An export has all lines, or those behind the end of an earlier export.
import { toHex } from '../../lib/bytes.ts'
import { ADMINISTRATION, type ChainPlace, type ChainRow, findChains, logOfChain } from '../../storage/audit/chain.ts'
import { findSeal, findSealed, type SealedRow } from '../../storage/audit/rows.ts'
import type { SealParts } from './audit.ts'
import { isChainAuthentic, isSealed } from './mac.ts'
import type { NotedHead } from './verification.ts'

/**
 * Reads up to `limit` rows of a chain behind `after`. It stops before a row with a wrong seal, and then says that this row `isAltered`. Rows beyond
 * the head of the chain are not read.
 */
export async function readVerified(
  { db, installationKeys: { auditSeal } }: SealParts,
  chain: ChainRow,
  after: ChainPlace,
  limit: number,
) {
  if (!isChainAuthentic(auditSeal, chain)) return { rows: [], isAltered: true }
  const query = { log: logOfChain(chain.name), chainId: chain.chainId, after: after.position, limit } as const
  const found = (await findSealed(db, query)).filter(({ position }) => position <= chain.head.position)
  let at = after
  const altered = found.findIndex((row) => {
    if (!isSealed(auditSeal, chain.name, at, row)) return true
    at = row
    return false
  })
  const rows = altered === -1 ? found : found.slice(0, altered)
  const isCut = found.length === 0 && after.position < chain.head.position
  return { rows, isAltered: altered !== -1 || isCut }
}

/** Writes a row as one line of JSON, without a line end. */
export function toLine(chain: string, { position, seal, occurredAt, fields, verifiedBy }: SealedRow): string {
  const [f0, f1, f2, f3, f4] = fields
  const content =
    chain === ADMINISTRATION
      ? { username: f0, action: f1, target: f2, before: f3, after: f4 }
      : {
          applicationId: f0,
          userId: f1,
          activationId: f2,
          eventType: f3,
          eventData: f4,
          ...(verifiedBy !== null && { verifiedBy }),
        }
  return JSON.stringify({ chain, position, seal: toHex(seal), occurredAt: toTime(occurredAt), ...content })
}

/** Writes the head of a chain as one line of JSON: rows up to it were sealed when the line was written. */
export const toHeadLine = ({ name, head: { position, seal } }: Pick<ChainRow, 'name' | 'head'>): string =>
  JSON.stringify({ chain: name, head: { position, seal: toHex(seal) } })

/** A stored time as text. A row that somebody changed by hand may have an invalid time. */
const toTime = (at: unknown): string => (at instanceof Date && !Number.isNaN(at.getTime()) ? at.toISOString() : String(at))

interface ExportedChain {
  readonly chain: string
  /** The position of the last row of the export, after which the next export begins. */
  readonly position: number
  /** 32 bytes in hexadecimal. */
  readonly seal: string
  readonly rows: number
  /** The reason why the export of this chain ended before its head. */
  readonly problem?: string
}

/**
 * Passes every sealed row to `write`, chain by chain in the order of positions, and after each chain its head. `after` has the ends of an earlier
 * export; their seals show that the chains are still the same. Rows are verified, and after an altered row nothing more of its chain is written.
 * The export ends early when `goesOn`, which is called after each batch, returns false.
 */
export async function exportAudit(
  parts: SealParts,
  after: readonly NotedHead[],
  write: (line: string) => void,
  goesOn: () => Promise<boolean> = () => Promise.resolve(true),
): Promise<readonly ExportedChain[]> {
  const exported: ExportedChain[] = []
  const chains = await findChains(parts.db)
  // Nothing is exported of a chain that is another one now. Its end stays the noted one, so that the next export refuses it again.
  const refuse = (noted: NotedHead, problem: string): void => void exported.push({ ...noted, rows: 0, problem })
  for (const noted of after.filter((head) => !chains.some(({ name }) => name === head.chain)))
    refuse(noted, 'there is no such chain')
  for (const chain of chains) {
    const noted = after.find((head) => head.chain === chain.name)
    let at = chain.start
    if (noted && noted.position > chain.start.position) {
      const seal = await findSeal(parts.db, logOfChain(chain.name), chain.chainId, noted.position)
      if (seal === undefined || toHex(seal) !== noted.seal) {
        refuse(noted, 'the chain is not the one that was exported before')
        continue
      }
      at = { position: noted.position, seal }
    }
    let problem: string | undefined
    let rows = 0
    while (problem === undefined && at.position < chain.head.position) {
      const next = await readVerified(parts, chain, at, BATCH_ROWS)
      for (const row of next.rows) write(toLine(chain.name, row))
      rows += next.rows.length
      at = next.rows.at(-1) ?? at
      if (next.isAltered) problem = 'what follows is not as it was sealed'
      if (!(await goesOn())) return exported
    }
    if (problem === undefined) write(toHeadLine(chain))
    const place = { position: at.position, seal: toHex(at.seal) }
    exported.push({ chain: chain.name, ...place, rows, ...(problem !== undefined && { problem }) })
  }
  return exported
}

const BATCH_ROWS = 1_000
