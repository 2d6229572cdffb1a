// Continuous delivery of the audit logs to a store outside (SIEM): at least once, each chain in its order, by one process at a time.
import type { Clocked } from '../../lib/clock.ts'
import { startRounds } from '../../lib/rounds.ts'
import { findChains } from '../../storage/audit/chain.ts'
import { endDeliveryLease, findDelivered, leaseDelivery, noteDelivered } from '../../storage/audit/delivery.ts'
import { readVerified, toHeadLine, toLine } from './lines.ts'
import { createAuditSink, type SendLines } from './sink.ts'
import type { AuditParts } from './parts.ts'

/** Starts the timer; the returned function stops it and waits for a round that runs. */
export function startAuditDelivery(
  parts: AuditParts & Clocked,
  url: string,
  authorization: string | undefined,
): () => Promise<void> {
  const deliver = createAuditDelivery(parts, createAuditSink(url, authorization))
  return startRounds(deliver, INTERVAL_MS, {
    onFailure: (err) => parts.events.auditDeliveryFailed({ err }),
    mayRun: parts.clock.isAgreed,
  })
}

/**
 * The delivery of one process. A round sends what was sealed since, up to 500 rows of one chain at a time and behind them the head of
 * the chain, and notes how far it came once they are taken. When the receiver does not take them it throws, and the next round sends the same
 * again. Behind a row that somebody altered nothing of its chain is sent.
 */
export function createAuditDelivery(parts: AuditParts, send: SendLines): (signal: AbortSignal) => Promise<void> {
  const { db, platform } = parts
  const reported = new Set<string>()
  const lease = (leaseId: string): Promise<boolean> => {
    const now = platform.now()
    return leaseDelivery(db, { leaseId, at: new Date(now), until: new Date(now + LEASE_MS) })
  }
  return async (signal) => {
    const leaseId = platform.uuid()
    const startedAt = platform.monotonic()
    // A round that left the work to another process tells nothing: a receiver that hangs would look well.
    if (!(await lease(leaseId))) return
    try {
      const delivered = await findDelivered(db)
      for (const chain of await findChains(db)) {
        let at = delivered.get(chain.chainId) ?? chain.start
        // Retention was faster.
        if (at.position < chain.start.position) at = chain.start
        while (at.position < chain.head.position && !signal.aborted) {
          const { rows, isAltered } = await readVerified(parts, chain, at, BATCH_ROWS)
          const last = rows.at(-1)
          if (last) {
            if (!(await lease(leaseId))) return
            await send([...rows.map((row) => toLine(chain.name, row)), toHeadLine(chain)])
            if (!(await noteDelivered(db, leaseId, chain.chainId, last))) return
            at = last
          }
          if (isAltered && !reported.has(chain.name)) {
            reported.add(chain.name)
            parts.events.auditChainBroken({ chain: chain.name })
          }
          if (isAltered || !last) break
        }
      }
      parts.events.roundDone({ work: 'audit_delivery', ms: platform.monotonic() - startedAt })
    } finally {
      await endDeliveryLease(db, leaseId)
    }
  }
}

const INTERVAL_MS = 5_000
const BATCH_ROWS = 500
// Longer than a batch may take to be sent.
const LEASE_MS = 60_000
