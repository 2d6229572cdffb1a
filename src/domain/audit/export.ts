// The audit logs as lines, from the beginning or from where an earlier export ended.
import { toHex } from '../../lib/bytes.ts'
import { findChains, logOfChain } from '../../storage/audit/chain.ts'
import { findSeal } from '../../storage/audit/rows.ts'
import { readVerified, toHeadLine, toLine } from './lines.ts'
import type { NotedHead } from './verification.ts'
import type { SealParts } from './audit.ts'

interface ExportedChain {
  readonly chain: string
  /** The position of the last row of the export, after which the next export begins. */
  readonly position: number
  /** Hex. */
  readonly seal: string
  readonly rows: number
  /** The reason why the export of this chain ended before its head. */
  readonly problem?: string
}

/**
 * Passes every sealed row to `write`, chain by chain in the order of positions, and after each chain its head. `after` has the ends of an
 * earlier export; their seals show that the chains are still the same. Rows are verified, and after an altered one nothing more of its chain is
 * written. It ends early when `goesOn`, called after each batch, returns false.
 */
export async function exportAudit(
  parts: SealParts,
  after: readonly NotedHead[],
  write: (line: string) => void,
  goesOn: () => Promise<boolean> = () => Promise.resolve(true),
): Promise<readonly ExportedChain[]> {
  const exported: ExportedChain[] = []
  const chains = await findChains(parts.db)
  for (const { chain } of after.filter((head) => !chains.some(({ name }) => name === head.chain)))
    exported.push({ chain, position: 0, seal: '', rows: 0, problem: 'there is no such chain' })
  for (const chain of chains) {
    const noted = after.find((head) => head.chain === chain.name)
    let at = chain.start
    let problem: string | undefined
    if (noted && noted.position > chain.start.position) {
      const seal = await findSeal(parts.db, logOfChain(chain.name), chain.chainId, noted.position)
      if (seal && toHex(seal) === noted.seal) at = { position: noted.position, seal }
      else problem = 'the chain is not the one that was exported before'
    }
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
