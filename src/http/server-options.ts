// Options of the HTTP server that hold for every API.
import type { Socket } from 'node:net'
import type { ConnectionError, FastifyServerOptions } from 'fastify'
import { ANSWER_HEADERS } from './request-guards.ts'

export interface ServerSettings {
  /** IP addresses and CIDR ranges whose X-Forwarded-For counts. */
  readonly trustedProxies: readonly string[]
}

/** Limits and framing. TLS ends at the balancer in front of pawl. */
export const serverOptions = ({ trustedProxies }: ServerSettings) =>
  ({
    bodyLimit: 256 * 1024,
    trustProxy: trustedProxies.length > 0 ? [...trustedProxies] : false,
    // Clients keep connections; one that is closed while they send costs them a request that may not be repeated.
    keepAliveTimeout: 75_000,
    requestTimeout: 30_000,
    connectionTimeout: 0,
    // A connection that waits for its first or next request must not delay the stop.
    forceCloseConnections: 'idle',
    // What still arrives on an open connection while the server stops is served, and the connection closed after it.
    return503OnClosing: false,
    exposeHeadRoutes: false,
    clientErrorHandler: refuseBytes,
    // Longer parameters than any name are judged by the schema of their endpoint.
    routerOptions: { maxParamLength: 4096 },
    onProtoPoisoning: 'error',
    onConstructorPoisoning: 'error',
  }) as const satisfies FastifyServerOptions

/** Answers bytes that are no HTTP request, and headers over the limit, before any route is known. */
function refuseBytes(error: ConnectionError, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? '431 Request Header Fields Too Large' : '400 Bad Request'
  const body = JSON.stringify({ status: 'ERROR', responseObject: { code: 'ERROR_REQUEST', message: 'Not an HTTP request' } })
  const guards = Object.entries(ANSWER_HEADERS).map(([name, value]) => `${name}: ${value}`)
  const headers = ['Content-Type: application/json', `Content-Length: ${body.length}`, ...guards, 'Connection: close']
  socket.end(`HTTP/1.1 ${status}\r\n${headers.join('\r\n')}\r\n\r\n${body}`)
}
