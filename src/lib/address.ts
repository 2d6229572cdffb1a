// IP addresses in any of the ways to write one, ranges of them as operators write them, and the part that one caller is taken to own.
import { BlockList, isIP, isIPv4, SocketAddress } from 'node:net'

/**
 * The address that a text is, as RFC 5952 writes it; undefined for every other text. An IPv4 address inside IPv6, as a socket of both families
 * shows it, is that IPv4 address. The zone of an IPv6 address means something on the machine that wrote it alone, and is dropped.
 */
export function parseAddress(text: string): string | undefined {
  const plain = text.replace(ZONE, '')
  const family = isIP(plain)
  if (family === 0) return undefined
  return new SocketAddress({ address: plain, family: family === 4 ? 'ipv4' : 'ipv6' }).address.replace(INSIDE_IPV6, '')
}

const ZONE = /%.*$/
const INSIDE_IPV6 = /^::ffff:(?=[\d.]+$)/

/** Whether a text is an address without a zone, or a range of addresses. A range of /0 would be everyone, which is never what is meant. */
export function isAddressOrRange(text: string): boolean {
  const [address = '', prefix, ...rest] = text.split('/')
  const family = isIP(address)
  if (family === 0 || address.includes('%') || rest.length > 0) return false
  if (prefix === undefined) return true
  return /^[1-9]\d{0,2}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128)
}

/** A function that tells whether an address is in one of `ranges`, each of which is an address or a range. What is no address is in none. */
export function createRanges(ranges: readonly string[]): (ip: string) => boolean {
  // An IPv4 address is in no range of IPv6, whatever form it came in.
  const [ipv4, ipv6] = [new BlockList(), new BlockList()]
  for (const range of ranges) {
    const [network = '', prefix] = range.split('/')
    if (isIPv4(network)) ipv4.addSubnet(network, Number(prefix ?? 32), 'ipv4')
    else ipv6.addSubnet(network, Number(prefix ?? 128), 'ipv6')
  }
  return (ip) => {
    const address = parseAddress(ip)
    if (address === undefined) return false
    return isIPv4(address) ? ipv4.check(address, 'ipv4') : ipv6.check(address, 'ipv6')
  }
}

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

/** The groups of an IPv6 address, and those of its first 64 bits; a group has 16 bits. */
const [GROUPS, NETWORK_GROUPS] = [8, 4]
