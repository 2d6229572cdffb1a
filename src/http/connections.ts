// Ends the connections of a listener when a server stops: balancers are told first, then connections are given back, then the server closes. It does
// not wait for every connection. Node counts one that never sent anything, or only half a request, as active; a load balancer or a browser that
// connects ahead would hold up every stop. Also formats the address of a listener.
import type { FastifyInstance } from 'fastify'
import type { IncomingMessage, Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** Holds the address of the listener of the phones' API, from the moment it listens. */
export interface PublicListener {
  address: AddressInfo | undefined
}

/** `http://ADDRESS:PORT`. For a listener on every interface, ADDRESS is the host name of `origin`, an http URL, if that is given. */
export function formatListenerUrl(
  { address, family, port }: AddressInfo,
  origin?: string,
  scheme: 'http' | 'https' = 'http',
): string {
  if (origin !== undefined && EVERY_INTERFACE.has(address)) return `http://${new URL(origin).hostname}:${port}`
  return `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

const EVERY_INTERFACE: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

export interface ServiceState {
  /** In `draining`, everything is served, but readiness is 503. In `closing`, each answer is the last on its connection. */
  phase: 'serving' | 'draining' | 'closing'
}

/** Closes each connection after its next answer, from `closing` on. */
export function giveBackConnections(app: FastifyInstance, state: ServiceState): void {
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (state.phase === 'closing') void reply.header('connection', 'close')
    done()
  })
}

/** The event of a server that has the socket of later requests; with TLS it comes after the handshake. */
const eventOfConnection = (server: Server): 'connection' | 'secureConnection' =>
  'setSecureContext' in server ? 'secureConnection' : 'connection'

/** Follows the connections of `server` from now on. `cutWaiting` ends those without a running request that was received completely. */
export function followConnections(server: Server): { cutWaiting: () => void } {
  const connections = new Map<Socket, IncomingMessage | undefined>()
  server.on(eventOfConnection(server), (socket: Socket) => {
    connections.set(socket, undefined)
    socket.once('close', () => connections.delete(socket))
  })
  server.on('request', (request, response) => {
    connections.set(request.socket, request)
    response.once('close', () => {
      if (connections.has(request.socket)) connections.set(request.socket, undefined)
    })
  })
  return {
    cutWaiting: () => {
      for (const [socket, request] of connections) if (request?.complete !== true) socket.destroy()
    },
  }
}
