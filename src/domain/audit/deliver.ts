// Delivers the audit logs continuously to a store outside (SIEM), as lines of JSON over HTTP or syslog. Each row arrives at least once, each chain
// in its order. One process delivers at a time.
import type { Socket } from 'node:net'
import { hostname } from 'node:os'
import type { Clocked } from '../../lib/clock.ts'
import { describeStatus, OF_OPERATOR, OutboundError, sendOutbound, shownAs, withConnection } from '../../lib/outbound.ts'
import { startRounds } from '../../lib/rounds.ts'
import { endDeliveryLease, findChains, findDelivered, leaseDelivery, noteDelivered } from '../../storage/audit/chain.ts'
import type { AuditParts } from './audit.ts'
import { readVerified, toHeadLine, toLine } from './lines.ts'

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
 * Creates the delivery of one process. A round sends newly sealed rows, up to 500 of one chain at a time, followed by the head of the chain. When
 * the receiver has taken them, the round stores the last place. Otherwise it throws, and the next round sends the same rows again. After an altered
 * row nothing more of its chain is sent.
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
    // Another process delivers now. This round reports no success, because the receiver may hang.
    if (!(await lease(leaseId))) return
    try {
      const delivered = await findDelivered(db)
      for (const chain of await findChains(db)) {
        let at = delivered.get(chain.chainId) ?? chain.start
        // Retention has deleted these rows before they were delivered.
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

/** Sends lines and resolves when the receiver has taken them. Throws OutboundError otherwise. */
type SendLines = (lines: readonly string[]) => Promise<void>

/** Creates the sender for PAWL_AUDIT_SINK_URL. The operator sets the address, so it may be a private one. */
export function createAuditSink(url: string, authorization: string | undefined): SendLines {
  const send: SendLines = url.startsWith('syslog')
    ? (lines) => sendSyslog(url, lines, TIMEOUT_MS)
    : createHttpSink(url, authorization)
  return async (lines) => {
    try {
      await send(lines)
    } catch (cause) {
      if (!(cause instanceof OutboundError)) throw cause
      throw new OutboundError(`the receiver of PAWL_AUDIT_SINK_URL did not take the lines: ${cause.message}`, { cause })
    }
  }
}

/** Sends lines by HTTP. An answer of 2xx means that the receiver has taken them. */
function createHttpSink(url: string, authorization: string | undefined): SendLines {
  const headers = { 'content-type': 'application/x-ndjson', ...(authorization !== undefined && { authorization }) }
  const limits = { timeoutMs: TIMEOUT_MS, answerBytesMax: 1_024, rules: OF_OPERATOR }
  return async (lines) => {
    const body = lines.map((line) => `${line}\n`).join('')
    const { status } = await sendOutbound({ url, method: 'POST', headers, body, ...limits })
    if (status < 200 || status > 299)
      throw new OutboundError(`${new URL(url).origin} ${describeStatus(status, 'PAWL_AUDIT_SINK_AUTHORIZATION')}`)
  }
}

/**
 * Sends messages of syslog (RFC 5424) over a new connection to `syslog+tcp://host:port`, with octet counting (RFC 6587), or to
 * `syslog+tls://host:port` (RFC 5425). Syslog has no answer. The messages count as taken when the receiver closes the connection after pawl has
 * closed its side: the receiver has then read all of them, but may not have stored them. A receiver that closes first, as a balancer without a back
 * end does, has not taken them. Throws OutboundError when they are not taken.
 */
export function sendSyslog(url: string, messages: readonly string[], timeoutMs: number): Promise<void> {
  const { protocol, hostname: name, port, host: shown } = new URL(url)
  const isTls = protocol === 'syslog+tls:'
  const host = name.replace(/^\[(.*)\]$/, '$1')
  const target = {
    name: shown,
    host,
    port: Number(port || (isTls ? TLS_PORT : TCP_PORT)),
    ...(isTls && { tls: shownAs(host) }),
    arePrivateAllowed: true,
    timeoutMs,
    bytesMax: HANDSHAKE_BYTES_MAX,
  }
  return withConnection(target, (socket) => writeMessages(socket, messages.map(frame).join(''), shown))
}

function writeMessages(socket: Socket, text: string, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let isOurs = false
    socket.on('end', () => {
      if (isOurs) resolve()
      else
        reject(new OutboundError(`${name} closed the connection before it had the messages: a balancer without a back end does`))
    })
    socket.write(text, () => {
      // The kernel of this machine has the messages, but the receiver may not have them. A balancer without a back end closes the connection within
      // this time; a receiver waits until pawl has closed its side. A busy process reads the close first, because of setImmediate.
      setTimeout(setImmediate, QUIET_MS, () => {
        isOurs = !socket.destroyed
        socket.end()
      })
    })
  })
}

/**
 * Writes a message of facility 13 (log audit) and severity 5 (notice), with its length in front. The header has no time, because the text has one.
 */
function frame(text: string): string {
  const message = `<${13 * 8 + 5}>1 - ${hostname()} pawl - audit - ${text}`
  return `${Buffer.byteLength(message)} ${message}`
}

const INTERVAL_MS = 5_000
const BATCH_ROWS = 500
// Sending a batch takes less time than this.
const LEASE_MS = 60_000
const TIMEOUT_MS = 20_000
const TLS_PORT = 6514
const TCP_PORT = 601
/** The receiver sends nothing but the handshake of TLS. */
const HANDSHAKE_BYTES_MAX = 262_144
const QUIET_MS = 250
