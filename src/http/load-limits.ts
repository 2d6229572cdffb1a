// How much a listener takes at once. Beyond it each caller is told so at once and clearly, instead of all of them waiting for memory.
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Events } from '../lib/events.ts'
import { PawlError } from '../lib/errors.ts'
import { eventOfConnection } from './connections.ts'

export interface LoadLimits {
  /** Connections beyond it are answered and closed; a quarter more, and they are not taken. */
  readonly connectionsMax: number
  /** From the headers to the last byte of the answer, so bodies that are on their way count. */
  readonly requestsInFlightMax: number
}

/** Refuses what is beyond the limits with UNAVAILABLE. Health is never refused: a busy process is alive, and not to be replaced. Neither are metrics, which say how busy it is. */
export function limitLoad(app: FastifyInstance, { connectionsMax, requestsInFlightMax }: LoadLimits, events: Events): void {
  let connections = 0
  let inFlight = 0
  const surplus = new WeakSet<Socket>()
  // Those that wait to be refused need room as well, and health needs a place among them.
  app.server.maxConnections = connectionsMax + Math.max(Math.ceil(connectionsMax / 4), 8)
  // Without this, Node hands a connection that one process drops to another process, which drops it too, over and over. The types of Node
  // lack the member.
  Object.assign(app.server, { dropMaxConnection: true })
  app.server.on('drop', () => events.connectionDropped())
  app.server.on(eventOfConnection(app.server), (socket: Socket) => {
    connections += 1
    if (connections > connectionsMax) surplus.add(socket)
    socket.once('close', () => {
      connections -= 1
    })
  })
  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = request
    if (raw.url?.startsWith('/health/') === true || raw.url === '/metrics') return done()
    const isSurplus = surplus.has(raw.socket)
    if (isSurplus) void reply.header('connection', 'close')
    if (isSurplus || inFlight >= requestsInFlightMax) return done(isSurplus ? TOO_MANY_CONNECTIONS : TOO_MANY_REQUESTS)
    inFlight += 1
    reply.raw.once('close', () => {
      inFlight -= 1
    })
    done()
  })
}

const TOO_MANY_CONNECTIONS = new PawlError('UNAVAILABLE', { detail: 'too many connections', retryAfterSeconds: 1 })
const TOO_MANY_REQUESTS = new PawlError('UNAVAILABLE', { detail: 'too many requests in flight', retryAfterSeconds: 1 })
