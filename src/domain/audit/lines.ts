// Writes rows of the audit logs as lines of JSON for a store outside of the database. Each line has its chain, its position and its seal. Lines
// with the head of a chain show later whether its end was cut off.
import type { KeyObject } from 'node:crypto'
import { toHex } from '../../lib/bytes.ts'
import { ADMINISTRATION, type ChainPlace, type ChainRow, logOfChain } from '../../storage/audit/chain.ts'
import { findSealed, type SealedRow } from '../../storage/audit/rows.ts'
import type { Db } from '../../storage/database/database.ts'
import { isChainAuthentic, isSealed } from './mac.ts'

interface VerifiedRows {
  readonly rows: readonly SealedRow[]
  /** Whether the row after them was altered. */
  readonly isAltered: boolean
}

/** Up to `limit` rows of a chain that follow a place, each with the right seal; none beyond its head. */
export async function readVerified(
  { db, installationKeys: { auditSeal } }: { readonly db: Db; readonly installationKeys: { readonly auditSeal: KeyObject } },
  chain: ChainRow,
  after: ChainPlace,
  limit: number,
): Promise<VerifiedRows> {
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

/** A stored time as text; whoever changes a row by hand may leave no valid time. */
const toTime = (at: unknown): string => (at instanceof Date && !Number.isNaN(at.getTime()) ? at.toISOString() : String(at))
