// Messages of syslog (RFC 5424), sent over TCP with octet counting (RFC 6587) or over TLS (RFC 5425).
import type { Socket } from 'node:net'
import { hostname } from 'node:os'
import { OutboundError, shownAs, withConnection } from '../../lib/outbound.ts'

/**
 * Sends messages over a connection of their own to `syslog+tcp://host:port` or `syslog+tls://host:port`. Syslog has no answer: the receiver has
 * taken them when it closes the connection after pawl has, which says that it read all of them, and not that it stored them. Who closes first
 * has not: a balancer without a back end, for one. Throws OutboundError when it does not.
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
      // Its own kernel has them, nobody else need have. Who gives up does so now; who reads goes on until it is told the end.
      // What has arrived is read first: the process may have been busy.
      setTimeout(setImmediate, QUIET_MS, () => {
        isOurs = !socket.destroyed
        socket.end()
      })
    })
  })
}

/** A message of the log audit (facility 13) that is a notice (severity 5), with its length in front. It tells its time itself. */
function frame(text: string): string {
  const message = `<${13 * 8 + 5}>1 - ${hostname()} pawl - audit - ${text}`
  return `${Buffer.byteLength(message)} ${message}`
}

const TLS_PORT = 6514
const TCP_PORT = 601
/** It says nothing, but for the handshake of TLS. */
const ANSWER_BYTES_MAX = 262_144
const QUIET_MS = 250
