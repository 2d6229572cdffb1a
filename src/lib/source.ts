// Where a request comes from: the part of its address that one caller is taken to own.
import { isIPv4, isIPv6 } from 'node:net'

/**
 * The address of a caller for counting: a whole IPv4 address, or the first 64 bits of an IPv6 address, because its owner has all addresses
 * that begin with them. Everything that is not an address counts as one source.
 */
export function sourceOf(ip: string): string {
  if (isIPv4(ip)) return ip
  const [address = ''] = ip.split('%')
  if (!isIPv6(address)) return 'unknown'
  const mapped = MAPPED.exec(address)
  if (mapped?.[1] !== undefined && isIPv4(mapped[1])) return mapped[1]
  const [head = '', tail] = address.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail ? tail.split(':') : []
  const zeros = tail === undefined ? [] : Array<string>(Math.max(0, GROUPS - before.length - after.length)).fill('0')
  const groups = [...before, ...zeros, ...after].slice(0, NETWORK_GROUPS)
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`
}

/** The network of a source for counts that are kept: 24 bits of an IPv4 address, of IPv6 the 64 of the source itself. */
export function networkOf(ip: string): string {
  const source = sourceOf(ip)
  return isIPv4(source) ? source.replace(/\d+$/, '0/24') : source
}

/** An IPv4 address as a socket of both families shows it. */
const MAPPED = /^::ffff:([\d.]+)$/i
const GROUPS = 8
const NETWORK_GROUPS = 4
