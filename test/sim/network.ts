// Carries requests in a simulation. It replaces two modules (test/sim/setup.ts): the sender of phones and bank, whose requests go directly
// into a server, and the sender of webhooks, whose messages wait for the schedule as statements do.
import type { HttpReply, HttpRequest } from '../../phone/http.ts'
import type { OutboundAnswer, OutboundRequest } from '../../src/lib/outbound.ts'

export interface Network {
  readonly send: (url: string, request: HttpRequest) => Promise<HttpReply>
  readonly sendOutbound: (request: OutboundRequest) => Promise<OutboundAnswer>
}

let current: Network | undefined

/** Sets the network for all requests from now on. Only one simulation runs at a time. */
export const useNetwork = (network: Network): void => {
  current = network
}

export const theNetwork = (): Network => {
  if (current === undefined) throw new Error('no simulation is running')
  return current
}
