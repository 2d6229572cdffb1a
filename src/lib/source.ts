// Finds the source of a request: the part of its address that one caller is taken to own.
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
  if (isIPv4(address)) return address
  const [head = [], tail = []] = address.split('::').map((part) => part.split(':').filter(Boolean))
  const zeros = Array.from({ length: GROUPS - head.length - tail.length }, () => '0')
  return `${[...head, ...zeros, ...tail].slice(0, NETWORK_GROUPS).join(':')}::/64`
}

/** The network of a source for counts that are kept: 24 bits of an IPv4 address, of IPv6 the 64 of the source itself. */
export function networkOf(ip: string): string {
  const source = sourceOf(ip)
  return isIPv4(source) ? source.replace(/\d+$/, '0/24') : source
}

/** Of 16 bits each. */
const [GROUPS, NETWORK_GROUPS] = [8, 4]
