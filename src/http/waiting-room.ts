// Answers health at the address for phones while a start takes long: alive, and not ready. If a probe found nobody there, the process would be
// killed, and a long migration would begin anew each time.
import type { Server } from 'node:http'
import { formatListenerUrl } from './connections.ts'
import { ANSWER_HEADERS } from './hooks.ts'

export interface WaitingRoomOptions {
  readonly host: string
  readonly port: number
  /** What the start is doing or waiting for. */
  readonly reason: () => string
  /** Called with the address once the waiting room listens. */
  readonly onOpen: (address: string) => void
}

/**
 * Listens once the start has taken a second. The returned function ends that, and resolves when the address is free. If the address cannot be
 * listened on, nothing happens here: the later listener reports it.
 */
export function openWaitingRoom(options: WaitingRoomOptions): () => Promise<void> {
  // With port 0 nobody knows the port yet, so nobody can ask there.
  if (options.port === 0) return async () => undefined
  let opening: Promise<Server | undefined> | undefined
  const timer = setTimeout(() => {
    opening = listen(options)
  }, LONG_MS)
  return async () => {
    clearTimeout(timer)
    const server = await opening
    if (server === undefined) return
    await new Promise((resolve) => {
      server.close(resolve)
      server.closeAllConnections()
    })
  }
}

function listen({ host, port, reason, onOpen }: WaitingRoomOptions): Promise<Server | undefined> {
  // Not imported by `import`, for the reason in lib/outbound.ts.
  const { createServer } = process.getBuiltinModule('node:http')
  const server = createServer(BOUNDS, ({ url, method }, response) => {
    const isLive = url === '/health/live' && (method === 'GET' || method === 'HEAD')
    const headers = { ...ANSWER_HEADERS, 'content-type': 'application/json; charset=utf-8', connection: 'close' }
    response.writeHead(isLive ? 200 : 503, isLive ? headers : { ...headers, 'retry-after': '1' })
    response.end(JSON.stringify(isLive ? { status: 'OK' } : { status: 'UNAVAILABLE', reason: reason() }))
  })
  server.maxConnections = CONNECTIONS_MAX
  return new Promise((resolve) => {
    server.once('error', () => resolve(undefined))
    server.listen({ host, port }, () => {
      const address = server.address()
      if (address !== null && typeof address === 'object') onOpen(formatListenerUrl(address))
      resolve(server)
    })
  })
}

// Most starts take less than this.
const LONG_MS = 1_000
const CONNECTIONS_MAX = 200
const BOUNDS = { headersTimeout: 5_000, requestTimeout: 5_000, maxHeaderSize: 8_192, connectionsCheckingInterval: 1_000 }
