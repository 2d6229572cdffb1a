// Gives connections back when a server stops: balancers are told first, then each answer is the last on its connection, then the server closes
// (load-limits.ts ends connections that never sent a whole request). Also formats the address of a listener.
import type { FastifyInstance } from 'fastify'
import type { AddressInfo } from 'node:net'

/** Holds the address of the listener of the phones' API, from the moment it listens. */
export interface PublicListener {
  address: AddressInfo | undefined
}

/** `http://ADDRESS:PORT`. */
export const formatListenerUrl = ({ address, family, port }: AddressInfo, scheme: 'http' | 'https' = 'http'): string =>
  `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`

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
