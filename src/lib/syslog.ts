// Messages of syslog (RFC 5424), sent over TCP with octet counting (RFC 6587) or over TLS (RFC 5425).
import { hostname } from 'node:os'
import { OutboundError, resolveTarget } from './outbound.ts'

/**
 * Sends messages over a connection of their own to `syslog+tcp://host:port` or `syslog+tls://host:port`. Syslog has no answer: the receiver has
 * taken them when it closes the connection after it has read its end, which says that it read all of them, and not that it stored them.
 * Throws OutboundError when it does not.
 */
export async function sendSyslog(url: string, messages: readonly string[], timeoutMs: number): Promise<void> {
  const { protocol, hostname: name, port, host } = new URL(url)
  const isTls = protocol === 'syslog+tls:'
  const address = await resolveTarget(name, true)
  const options = { host: address, port: Number(port || (isTls ? TLS_PORT : TCP_PORT)) }
  // The certificate is that of the name, or of the address where the setting has no name.
  const shown = name.replace(/^\[(.*)\]$/, '$1') === address ? {} : { servername: name }
  // Not imported, as in outbound.ts: a server that sends no syslog loads neither.
  const socket = isTls
    ? process.getBuiltinModule('node:tls').connect({ ...options, ...shown })
    : process.getBuiltinModule('node:net').connect(options)
  await new Promise<void>((resolve, reject) => {
    const fail = (cause: unknown): void => {
      socket.destroy()
      reject(new OutboundError(`${host} did not take the messages`, { cause }))
    }
    let isRead = false
    const timer = setTimeout(() => fail(new Error(`it did not close the connection within ${timeoutMs} ms`)), timeoutMs)
    socket.once('error', fail)
    socket.once('end', () => {
      isRead = socket.writableFinished
    })
    socket.once('close', () => {
      clearTimeout(timer)
      if (isRead) resolve()
      else fail(new Error('the connection broke'))
    })
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      socket.resume()
      socket.end(messages.map(frame).join(''))
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
