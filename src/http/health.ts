// Serves endpoints without credentials: health for balancers, and the answer at `/` for people who look whether anything is there. A process is alive
// without the database, and ready only with it. While a start takes long, a waiting room answers health.
import type { Server } from 'node:http'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { Type } from '@sinclair/typebox'
import type { Clock } from '../lib/clock.ts'
import type { Operation } from './operation.ts'
import { formatListenerUrl, type ServiceState } from './connections.ts'
import { unroutedError } from './errors.ts'
import { ANSWER_HEADERS } from './hooks.ts'
import { Ok } from './types.ts'

/** Serves the health of the process. `pingDatabase` resolves when the database answers and takes writes, and otherwise rejects. */
export const health =
  (parts: {
    readonly pingDatabase: () => Promise<void>
    readonly serviceState: ServiceState
    readonly clock: Pick<Clock, 'isAgreed' | 'difference'>
  }) =>
  async (app: FastifyInstance) => {
    app.get('/health/live', { schema: { response: { 200: Ok } } }, async () => ({ status: 'OK' }))
    app.get('/health/ready', { schema: { response: { 200: Ok, 503: Unhealthy } } }, async (_request, reply) => {
      try {
        // A stop first tells balancers to send nothing more. Requests that arrive meanwhile are served.
        if (parts.serviceState.phase !== 'serving') return refuse(reply)
        await parts.pingDatabase()
        return parts.clock.isAgreed() ? { status: 'OK' } : refuse(reply, explain(parts.clock))
      } catch {
        return refuse(reply)
      }
    })
  }

const refuse = (reply: FastifyReply, reason?: string): FastifyReply =>
  reply.code(503).header('retry-after', 1).send({ status: 'UNAVAILABLE', reason })

const explain = ({ difference }: Pick<Clock, 'difference'>): string => {
  const seconds = Math.round((difference() ?? 0) / 1000)
  return `the clock of this process is ${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead of'} that of the database`
}

const Unhealthy = Type.Object(
  {
    status: Type.Literal('UNAVAILABLE'),
    reason: Type.Optional(Type.String({ description: 'where the database is not to blame' })),
  },
  { title: 'NotReady' },
)

/** Serves `/`: a redirect `to` a page for people, by its path below `/`, or one line of `text` without such a page. */
export const front =
  ({ to, text }: { readonly to?: string | undefined; readonly text: string }) =>
  async (app: FastifyInstance) => {
    // The redirect is relative, because a proxy may have removed a prefix of the path.
    app.get('/', async (_request, reply) =>
      to === undefined ? reply.type('text/plain; charset=utf-8').send(`${text}\n`) : reply.redirect(`./${to}`, 303),
    )
  }

const tag = 'Description and health'

export const openOperations: readonly Operation[] = [
  {
    method: 'GET',
    path: '/',
    operationId: 'readFront',
    tag,
    summary: 'What this listener is',
    description: 'Where the console is, it leads there.',
    security: [],
    answers: [
      { status: 200, description: 'one line of text', mediaType: '*/*' },
      { status: 303, description: 'to the console', headers: { Location: 'where it is, relative' } },
    ],
  },
  {
    method: 'GET',
    path: '/health/live',
    operationId: 'readLiveness',
    tag,
    summary: 'The process serves requests',
    security: [],
    answers: [{ status: 200, description: 'alive', schema: Ok }],
  },
  {
    method: 'GET',
    path: '/health/ready',
    operationId: 'readReadiness',
    tag,
    summary:
      'The database answers and takes writes, its clock and that of the process agree, and the server is not about to stop',
    security: [],
    answers: [
      { status: 200, description: 'ready', schema: Ok },
      { status: 503, description: 'not ready', schema: Unhealthy, headers: { 'Retry-After': 'seconds' } },
    ],
  },
]

interface WaitingRoomOptions {
  readonly host: string
  readonly port: number
  /** Says what the start is doing or waiting for. */
  readonly reason: () => string
  /** Called with the address once the waiting room listens. */
  readonly onOpen: (address: string) => void
}

/**
 * Answers health at the address for phones while a start takes long: alive, and not ready. If a probe found nobody there, the process would be
 * killed, and a long migration would begin anew each time.
 *
 * It listens once the start has taken a second. The returned function ends that, and resolves when the address is free. If the address cannot be
 * listened on, nothing happens here: the later listener reports it.
 */
export function openWaitingRoom(options: WaitingRoomOptions): () => Promise<void> {
  // With port 0, the system chooses the port later, so nobody can ask there yet.
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
    if (isLive) response.end(JSON.stringify({ status: 'OK' }))
    else if (url?.startsWith('/health/') === true) response.end(JSON.stringify({ status: 'UNAVAILABLE', reason: reason() }))
    else response.end(unroutedError('HTTP_503', reason()))
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
