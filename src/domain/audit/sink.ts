// Sends the audit logs to a server that takes lines of JSON over HTTP, or to one for syslog.
import { describeStatus, OutboundError, sendOutbound } from '../../lib/outbound.ts'
import { sendSyslog } from './syslog.ts'

/** Resolves when the receiver has taken the lines. Throws OutboundError otherwise. */
export type SendLines = (lines: readonly string[]) => Promise<void>

/** The receiver at an address of PAWL_AUDIT_SINK_URL; the operator names it, so that it may be a private one. */
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

/** An answer of 2xx has taken the lines. */
function createHttpSink(url: string, authorization: string | undefined): SendLines {
  const headers = { 'content-type': 'application/x-ndjson', ...(authorization !== undefined && { authorization }) }
  const limits = { timeoutMs: TIMEOUT_MS, answerBytesMax: 1_024, arePrivateAllowed: true }
  return async (lines) => {
    const body = lines.map((line) => `${line}\n`).join('')
    const { status } = await sendOutbound({ url, method: 'POST', headers, body, ...limits })
    if (status < 200 || status > 299)
      throw new OutboundError(`${new URL(url).origin} ${describeStatus(status, 'PAWL_AUDIT_SINK_AUTHORIZATION')}`)
  }
}

// Shorter than the lease of the delivery.
const TIMEOUT_MS = 20_000
