// Limits how much one listener takes at once: connections, bodies on their way, requests in flight. No source gets all places (http/places.ts).
// Beyond a limit a caller is refused at once, instead of all callers waiting for memory.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createRanges, sourceOf } from '../lib/address.ts'
import type { Events } from '../log/events.ts'
import { PawlError } from '../lib/errors.ts'
import { createPlaces, type Place, type Places } from './places.ts'
import { refuseBytes } from './server-options.ts'

export interface LoadLimits {
  readonly connectionsMax: number
  /** The maximum of whole requests, until the last byte of their answer. As many bodies may be on their way. */
  readonly requestsInFlightMax: number
  /** Connections of these addresses belong to no source; their requests count for the address that they forward. */
  readonly trustedProxies: readonly string[]
}

interface Listener {
  readonly connections: Places<Connection>
  readonly bodies: Places<Call>
  readonly inFlight: Places<Call>
  readonly events: Events
}

interface Connection {
  readonly listener: Listener
  /** The socket of the connection; with TLS, after the handshake, the socket that its requests have. */
  socket: Socket
  readonly peer: string
  readonly isProxy: boolean
  /** Whether it came when no place was left, and none could be freed. */
  readonly isSurplus: boolean
  /** The place of the connection, which is offered while no whole request waits for its answer. */
  place: Place<Connection> | undefined
  /** The number of whole requests that wait for their answers. */
  running: number
  /** The request whose body is on its way. */
  arriving: Call | undefined
}

interface Call {
  readonly connection: Connection
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  /** The source; undefined when the request takes no share. */
  source: string | undefined
  state: 'arriving' | 'running' | 'cut'
  body: Place<Call> | undefined
  place: Place<Call> | undefined
  /** The time when the wait for its body began, and the bytes that had come over the connection by then. */
  since: number
  bytesBefore: number
}

/**
 * Refuses requests and connections beyond the limits with UNAVAILABLE. Before it refuses somebody, it ends the connection or body that has
 * waited longest at the source that has most. It never refuses health, because a busy process is alive and must not be replaced, nor metrics,
 * which say how busy it is.
 */
export function limitLoad(app: FastifyInstance, limits: LoadLimits, events: Events): void {
  const { connectionsMax, requestsInFlightMax, trustedProxies } = limits
  const listener: Listener = {
    connections: createPlaces(connectionsMax),
    bodies: createPlaces(requestsInFlightMax),
    inFlight: createPlaces(requestsInFlightMax),
    events,
  }
  // Connections that wait for their refusal need room as well, and health needs a place among them.
  app.server.maxConnections = connectionsMax + Math.max(Math.ceil(connectionsMax / 4), 8)
  // Without this, Node hands a connection that one process drops to another process, which drops it too, over and over. The types of Node
  // lack the member.
  Object.assign(app.server, { dropMaxConnection: true })
  app.server.on('drop', () => events.connectionDropped())
  const isTrusted = createRanges(trustedProxies)
  /** The open connections. */
  const byEnd = new Map<string, Connection>()
  app.server.on('connection', (socket: Socket) => {
    const connection = open(listener, socket, isTrusted(socket.remoteAddress ?? ''))
    connectionOf.set(socket, connection)
    const end = endOf(socket)
    byEnd.set(end, connection)
    socket.once('close', () => {
      close(connection)
      if (byEnd.get(end) === connection) byEnd.delete(end)
    })
  })
  app.server.on('secureConnection', (socket: Socket) => {
    const connection = byEnd.get(endOf(socket))
    if (connection === undefined) return
    connection.socket = socket
    connectionOf.set(socket, connection)
  })
  app.decorateRequest(CALL, undefined)
  app.addHook('onRequest', (request, reply, done) => {
    const connection = connectionOf.get(request.raw.socket)
    // Calls of the console to the API within the process have no connection; the request of the browser is counted.
    if (connection === undefined) return done()
    const call = begin(connection, request, reply)
    if (connection.isSurplus && !isAlwaysServed(request)) {
      void reply.header('connection', 'close')
      return done(TOO_MANY_CONNECTIONS)
    }
    done(hasBody(request.raw) ? receive(call) : run(call))
  })
  app.addHook('preValidation', (request, _reply, done) => {
    const call = request.getDecorator<Call | undefined>(CALL)
    done(call === undefined || call.state === 'running' ? undefined : run(call))
  })
  // Bytes that have arrived are read first, because the process may have been busy.
  const timer = setInterval(() => setImmediate(endSlowBodies, listener), LOOK_MS).unref()
  app.addHook('preClose', async () => void setTimeout(cutWaiting, ARRIVAL_MS, byEnd).unref())
  app.addHook('onClose', async () => clearInterval(timer))
}

/**
 * Ends the connections of a stopping server, except those with a whole request; a caller can send any other request again elsewhere. Node counts
 * a connection that never sent anything, or only half a request, as active; a balancer or a browser that connects ahead would hold up every stop.
 */
function cutWaiting(connections: ReadonlyMap<string, Connection>): void {
  for (const { socket, running, arriving } of connections.values())
    if (running === 0 && arriving?.request.raw.complete !== true) socket.destroy()
}

/** Exempts this request and its connection from shares. Call it when the sender has proved who it is. */
export function exemptFromShares(request: FastifyRequest): void {
  const call = request.getDecorator<Call | undefined>(CALL)
  if (call === undefined) return
  const { connections, bodies, inFlight } = call.connection.listener
  call.source = undefined
  connections.exempt(call.connection.place)
  bodies.exempt(call.body)
  inFlight.exempt(call.place)
}

function open(listener: Listener, socket: Socket, isProxy: boolean): Connection {
  const { connections } = listener
  const peer = sourceOf(socket.remoteAddress ?? '')
  const source = isProxy ? undefined : peer
  const surplus = connections.findSurplus(source)
  if (surplus) endForOthers(surplus)
  const connection: Connection = {
    listener,
    socket,
    peer,
    isProxy,
    isSurplus: surplus === undefined && !connections.isOpenTo(source),
    place: undefined,
    running: 0,
    arriving: undefined,
  }
  connection.place = connections.take(source, connection)
  connections.offer(connection.place)
  return connection
}

function close({ listener, place, arriving }: Connection): void {
  listener.connections.leave(place)
  if (arriving) arrive(arriving)
}

function begin(connection: Connection, request: FastifyRequest, reply: FastifyReply): Call {
  const call: Call = {
    connection,
    request,
    reply,
    source: connection.isProxy ? sourceOf(request.ip) : connection.peer,
    state: 'arriving',
    body: undefined,
    place: undefined,
    since: 0,
    bytesBefore: 0,
  }
  request.setDecorator<Call | undefined>(CALL, call)
  reply.raw.once('close', () => finish(call))
  return call
}

/** Begins the wait for the body. Meanwhile the request takes no place among those in flight. */
function receive(call: Call): PawlError | undefined {
  const { connection, request, source } = call
  const { connections, bodies } = connection.listener
  const surplus = bodies.findSurplus(source)
  if (surplus) endForOthers(surplus.connection)
  else if (!bodies.isOpenTo(source) && !isAlwaysServed(request)) return TOO_MANY_REQUESTS
  call.body = bodies.take(source, call)
  bodies.offer(call.body)
  beginToWait(call, performance.now())
  connection.arriving = call
  request.raw.once('end', () => arrive(call))
  // The connection was used just now, so others that idle longer are ended first.
  connections.offer(connection.place)
  return undefined
}

function beginToWait(call: Call, now: number): void {
  call.since = now
  call.bytesBefore = call.connection.socket.bytesRead
}

function arrive(call: Call): void {
  const { connection, body } = call
  connection.listener.bodies.leave(body)
  if (connection.arriving === call) connection.arriving = undefined
}

/** Called when the request is whole. */
function run(call: Call): PawlError | undefined {
  const { connection, source } = call
  const { connections, inFlight } = connection.listener
  // The caller has been told that the connection was not taken.
  if (call.state === 'cut') return TOO_MANY_REQUESTS
  call.state = 'running'
  connection.running += 1
  connections.withdraw(connection.place)
  if (isAlwaysServed(call.request)) return undefined
  if (!inFlight.isOpenTo(source)) return TOO_MANY_REQUESTS
  call.place = inFlight.take(source, call)
  return undefined
}

/** Called when the request is answered, or its connection has ended. */
function finish({ connection, state, place }: Call): void {
  const { connections, inFlight } = connection.listener
  inFlight.leave(place)
  if (state === 'running') connection.running -= 1
  if (connection.running === 0) connections.offer(connection.place)
}

function endForOthers({ listener, place, peer: source, socket, arriving }: Connection): void {
  listener.events.connectionEnded({ source })
  listener.connections.leave(place)
  if (arriving === undefined) return void socket.destroy()
  cut(arriving, 'PAWL_CROWDED')
  // Its place is needed now, even before the other side closes.
  socket.destroySoon()
}

function endSlowBodies({ bodies }: Listener): void {
  const now = performance.now()
  for (const call of bodies.listOffered()) {
    const { request, connection } = call
    // Nobody reads the body while the server checks who sends it, so bytes may wait in the socket.
    if (request.raw.readableFlowing === null) beginToWait(call, now)
    const bytes = connection.socket.bytesRead - call.bytesBefore
    if (now - call.since > BODY_MS + bytes / BYTES_PER_MS) cut(call, 'ERR_HTTP_REQUEST_TIMEOUT')
  }
}

/** Ends a request whose body is on its way, and its connection. */
function cut(call: Call, code: string): void {
  const { socket } = call.connection
  arrive(call)
  call.state = 'cut'
  if (call.reply.raw.headersSent) socket.destroy()
  else refuseBytes(code, socket, call.request.id)
}

/** The other end of a connection, which is the same for a socket of TLS and for the socket below it. */
const endOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

const isAlwaysServed = ({ raw: { url = '' } }: FastifyRequest): boolean => url.startsWith('/health/') || url === '/metrics'

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'

const connectionOf = new WeakMap<Socket, Connection>()
// A member of the request, because an entry of a weak map would cost the garbage collector a twentieth of a whole request.
const CALL = Symbol('call')
const TOO_MANY_CONNECTIONS = new PawlError('UNAVAILABLE', { detail: 'too many connections', retryAfterSeconds: 1 })
const TOO_MANY_REQUESTS = new PawlError('UNAVAILABLE', { detail: 'too many requests in flight', retryAfterSeconds: 1 })
/** The milliseconds that a body may take, in addition to the time that its bytes need at the slowest accepted rate: 16 KiB have seven seconds. */
const BODY_MS = 5_000
const BYTES_PER_MS = 8
const LOOK_MS = 1_000
/** The time in which a request on its way may still arrive when the server stops, in milliseconds. */
const ARRIVAL_MS = 1_000
