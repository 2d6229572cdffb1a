// X-Forwarded-For as balancers write it: some add ports, put IPv6 addresses in brackets, or write `unknown`.
import type { FastifyInstance } from 'fastify'
import { createRanges, parseAddress } from '../lib/address.ts'
import type { Events } from '../log/events.ts'
import type { ServerSettings } from './server-options.ts'

/**
 * Rewrites X-Forwarded-For to plain addresses, before the caller's address is used. A member that is no address ends the list, because anybody
 * may have written the members before it: the nearest address behind it counts, or that of the connection.
 */
export function readForwarded(
  app: FastifyInstance,
  { trustedProxies }: ServerSettings,
  events: Pick<Events, 'forwardedUnreadable'>,
): void {
  if (trustedProxies.length === 0) return
  const isTrusted = createRanges(trustedProxies)
  app.addHook('onRequest', ({ raw }, _reply, done) => {
    const { headers, socket } = raw
    const forwarded = headers['x-forwarded-for']
    if (forwarded !== undefined) {
      const { addresses, isWhole } = parseForwarded(String(forwarded))
      headers['x-forwarded-for'] = addresses.join(', ')
      const source = socket.remoteAddress ?? ''
      if (!isWhole && isTrusted(source)) events.forwardedUnreadable({ source })
    }
    done()
  })
}

/** The addresses behind the last member that is no address; `isWhole` when there was no such member. */
function parseForwarded(header: string): { readonly addresses: readonly string[]; readonly isWhole: boolean } {
  const members = header
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '')
    .map(parseMember)
  const last = members.lastIndexOf(undefined)
  return { addresses: members.slice(last + 1).filter((member) => member !== undefined), isWhole: last === -1 }
}

function parseMember(member: string): string | undefined {
  const { bracketed, plain = '', ipv4 } = MEMBER.exec(member)?.groups ?? {}
  const address = parseAddress(bracketed ?? ipv4 ?? plain)
  return bracketed?.includes(':') === false ? undefined : address
}

const MEMBER = /^(?<quote>"?)(?:\[(?<bracketed>[^[\]]*)\](?::\d{1,5})?|(?<ipv4>[\d.]+):\d{1,5}|(?<plain>[^[\]"]*))\k<quote>$/
