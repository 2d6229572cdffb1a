// Options of the HTTP server that hold for every API.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyHttpOptions } from 'fastify'
import type { Platform } from '../lib/platform.ts'
import { STRANGERS_BYTES_MAX, TOO_MANY_PIECES } from './body-bounds.ts'
import { unroutedError } from './errors.ts'
import { ANSWER_HEADERS } from './hooks.ts'

export interface ServerSettings {
  /** IP addresses and CIDR ranges whose X-Forwarded-For counts. */
  readonly trustedProxies: readonly string[]
}

/** Limits of time and size for every request. TLS of phones ends at the balancer in front of pawl. */
export const serverOptions = ({ trustedProxies }: ServerSettings, platform: Platform) =>
  ({
    bodyLimit: STRANGERS_BYTES_MAX,
    trustProxy: trustedProxies.length > 0 ? [...trustedProxies] : false,
    // Clients keep connections open. If one is closed while they send, they lose a request that they may not repeat.
    keepAliveTimeout: 75_000,
    // Limits the time from the first byte of a request to its last. Node looks for late requests every second instead of every 30.
    requestTimeout: REQUEST_MS,
    http: { headersTimeout: HEADERS_MS, connectionsCheckingInterval: 1_000 },
    connectionTimeout: 0,
    // A connection that waits for its first or next request must not delay the stop.
    forceCloseConnections: 'idle',
    // A request that still arrives on an open connection while the server stops is served, and then the connection is closed.
    return503OnClosing: false,
    // HEAD is answered as GET is, by the same hooks and handler.
    exposeHeadRoutes: true,
    clientErrorHandler: ({ code }, socket) => refuseBytes(code, socket, platform.uuid()),
    // SDKs append the path to a base URL as given, which may end with a slash (mobile-token §1).
    rewriteUrl: ({ url = '' }) => (url.startsWith('//') ? url.replace(/^\/+(?=\/api\/)/, '') : url),
    // Parameters may be longer than any name, because the schema of the endpoint judges them.
    routerOptions: { maxParamLength: 4096 },
    onProtoPoisoning: 'error',
    onConstructorPoisoning: 'error',
  }) as const satisfies FastifyHttpOptions<Server>

/**
 * Answers bytes that are no HTTP request, headers over the limit, and requests that do not arrive in time or are ended for others, on every route.
 * Then it ends the connection.
 */
export function refuseBytes(errorCode: string, socket: Socket, requestId: string): void {
  if (errorCode === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const {
    status,
    code = 'ERROR_REQUEST',
    message,
    headers: own = [],
  } = REFUSALS[errorCode] ?? { status: '400 Bad Request', message: 'Not an HTTP request' }
  const body = unroutedError(code, message)
  const guards = Object.entries(ANSWER_HEADERS).map(([name, value]) => `${name}: ${value}`)
  const headers = [
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    ...guards,
    ...own,
    `X-Request-Id: ${requestId}`,
    'Connection: close',
  ]
  socket.end(`HTTP/1.1 ${status}\r\n${headers.join('\r\n')}\r\n\r\n${body}`)
  // A caller who reads has the answer by then. Without this, a caller who does not close would keep the connection.
  setTimeout(() => socket.destroy(), FAREWELL_MS).unref()
}

const REFUSALS: Readonly<
  Record<
    string,
    { readonly status: string; readonly code?: 'HTTP_503'; readonly message: string; readonly headers?: readonly string[] }
  >
> = {
  HPE_HEADER_OVERFLOW: { status: '431 Request Header Fields Too Large', message: 'The headers are too long' },
  [TOO_MANY_PIECES]: { status: '400 Bad Request', message: 'The body comes in too many pieces' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: '408 Request Timeout', message: 'The request did not arrive in time' },
  PAWL_CROWDED: {
    status: '503 Service Unavailable',
    code: 'HTTP_503',
    message: 'The server is busy',
    headers: ['Retry-After: 1'],
  },
}

const FAREWELL_MS = 1_000
const REQUEST_MS = 30_000
const HEADERS_MS = 10_000
