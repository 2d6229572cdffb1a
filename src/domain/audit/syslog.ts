// Messages of syslog (RFC 5424), sent over TCP with octet counting (RFC 6587) or over TLS (RFC 5425).
import type { Socket } from 'node:net'
import { hostname } from 'node:os'
import { OutboundError, shownAs, withConnection } from '../../lib/outbound.ts'

/**
 * Sends messages over a new connection to `syslog+tcp://host:port` or `syslog+tls://host:port`. Syslog has no answer. The messages count as
 * taken when the receiver closes the connection after pawl has closed its side: it has then read all of them, but may not have stored them. A
 * receiver that closes first has not taken them; a balancer without a back end does that. Throws OutboundError when they are not taken.
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
    bytesMax: ANSWER_BYTES_MAX,
  }
  return withConnection(target, (socket) => write(socket, messages.map(frame).join(''), shown))
}

function write(socket: Socket, text: string, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let isOurs = false
    socket.on('end', () => {
      if (isOurs) resolve()
      else
        reject(new OutboundError(`${name} closed the connection before it had the messages: a balancer without a back end does`))
    })
    socket.write(text, () => {
      // The kernel of this machine has the messages; the receiver may not. A balancer without a back end closes the connection within this time,
      // and a receiver does not before pawl has closed its side. setImmediate lets a busy process read that first.
      setTimeout(setImmediate, QUIET_MS, () => {
        isOurs = !socket.destroyed
        socket.end()
      })
    })
  })
}

/** A message of facility 13 (log audit) and severity 5 (notice), with its length in front. The text has its own time. */
function frame(text: string): string {
  const message = `<${13 * 8 + 5}>1 - ${hostname()} pawl - audit - ${text}`
  return `${Buffer.byteLength(message)} ${message}`
}

const TLS_PORT = 6514
const TCP_PORT = 601
/** The receiver sends nothing but the handshake of TLS. */
const ANSWER_BYTES_MAX = 262_144
const QUIET_MS = 250
