// Where a request comes from: the part of its address that one caller is taken to own.
import { isIPv4 } from 'node:net'
import { parseAddress } from './address.ts'

/**
 * The address of a caller for counting: a whole IPv4 address, or the first 64 bits of an IPv6 address, because its owner has all addresses
 * that begin with them. Everything that is not an address counts as one source.
 */
export function sourceOf(ip: string): string {
  if (isIPv4(ip)) return ip
  const address = parseAddress(ip)
  if (address === undefined) return 'unknown'
  if (!('parts' in address)) return address.toString()
  const network = address.parts.slice(0, NETWORK_GROUPS).map((group) => group.toString(16))
  return `${network.join(':')}::/64`
}

/** The network of a source for counts that are kept: 24 bits of an IPv4 address, of IPv6 the 64 of the source itself. */
export function networkOf(ip: string): string {
  const source = sourceOf(ip)
  return isIPv4(source) ? source.replace(/\d+$/, '0/24') : source
}

const NETWORK_GROUPS = 4
