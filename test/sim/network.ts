// What carries requests in a simulation. Two modules are replaced by it in test/sim/setup.ts: the sender of phones and bank, whose
// requests go straight into a server, and that of webhooks, whose messages wait for the schedule as statements do.
import type { HttpReply, HttpRequest } from '../../phone/http.ts'
import type { OutboundAnswer, OutboundRequest } from '../../src/lib/outbound.ts'

export interface Network {
  readonly send: (url: string, request: HttpRequest) => Promise<HttpReply>
  readonly sendOutbound: (request: OutboundRequest) => Promise<OutboundAnswer>
}

let current: Network | undefined

/** What carries everything from now on; one run at a time. */
export const useNetwork = (network: Network): void => {
  current = network
}

export const theNetwork = (): Network => {
  if (current === undefined) throw new Error('no simulation is running')
  return current
}
