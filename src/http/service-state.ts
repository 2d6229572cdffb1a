// Keeps how far a stop has come: balancers are told first, then connections are given back, then the server closes.
import type { FastifyInstance } from 'fastify'

export interface ServiceState {
  /** `draining`: everything is served, readiness says no. `closing`: each answer is the last on its connection. */
  phase: 'serving' | 'draining' | 'closing'
}

/** Lets the caller of each answer send its next request over a new connection, from `closing` on. */
export function giveBackConnections(app: FastifyInstance, state: ServiceState): void {
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (state.phase === 'closing') void reply.header('connection', 'close')
    done()
  })
}
