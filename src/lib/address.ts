// Parses IP addresses and ranges, and finds the part of an address that counts as one caller.
import { BlockList, isIP, isIPv4, SocketAddress } from 'node:net'

/**
 * Parses an IP address into the form of RFC 5952; undefined for every other text. An IPv4 address inside IPv6, which a socket of both families shows,
 * becomes the IPv4 address. The zone of an IPv6 address is dropped, because it has a meaning only on the machine that wrote it.
 */
export function parseAddress(text: string): string | undefined {
  const plain = text.replace(ZONE, '')
  const family = isIP(plain)
  if (family === 0) return undefined
  return new SocketAddress({ address: plain, family: family === 4 ? 'ipv4' : 'ipv6' }).address.replace(INSIDE_IPV6, '')
}

const ZONE = /%.*$/
const INSIDE_IPV6 = /^::ffff:(?=[\d.]+$)/

interface Range {
  readonly network: string
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}

/**
 * Parses an address without a zone, or a range of addresses. IPv4 inside IPv6 becomes IPv4, because callers count as such. Undefined for every
 * other text. A range of /0 is refused, because it would include every address.
 */
function parseRange(text: string): Range | undefined {
  const [given = '', bits, ...rest] = text.split('/')
  const network = parseAddress(given)
  if (network === undefined || given.includes('%') || rest.length > 0) return undefined
  const [family, width] = isIPv4(network) ? (['ipv4', 32] as const) : (['ipv6', 128] as const)
  const before = isIPv4(given) ? 0 : 128 - width
  if (bits === undefined) return { network, prefix: width, family }
  const prefix = /^[1-9]\d{0,2}$/.test(bits) ? Number(bits) - before : 0
  return prefix >= 1 && prefix <= width ? { network, prefix, family } : undefined
}

/** Whether a text is an address without a zone, or a range of addresses. */
export const isAddressOrRange = (text: string): boolean => parseRange(text) !== undefined

/**
 * Returns a function that tests whether an address is in one of `ranges`. Each range is an address or a range. A text that is no address is in none.
 */
export function createRanges(ranges: readonly string[]): (ip: string) => boolean {
  // An IPv4 address is in no range of IPv6, also when it came in the form of IPv6.
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() }
  for (const range of ranges.map(parseRange)) if (range) lists[range.family].addSubnet(range.network, range.prefix, range.family)
  return (ip) => {
    const address = parseAddress(ip)
    if (address === undefined) return false
    const family = isIPv4(address) ? 'ipv4' : 'ipv6'
    return lists[family].check(address, family)
  }
}

/**
 * The source of an address: a whole IPv4 address, or the first 64 bits of an IPv6 address, because one owner has all addresses that begin with these
 * bits. All texts that are no addresses count as one source.
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

/** The network of a source, for counts that are stored: the first 24 bits of an IPv4 address, or the 64 bits of an IPv6 source. */
export function networkOf(ip: string): string {
  const source = sourceOf(ip)
  return isIPv4(source) ? source.replace(/\d+$/, '0/24') : source
}

/** An IPv6 address has 8 groups of 16 bits. The first 4 groups are its network. */
const [GROUPS, NETWORK_GROUPS] = [8, 4]
