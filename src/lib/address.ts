// Reads IP addresses in any of the ways to write one.
import { isIP, SocketAddress } from 'node:net'

/**
 * The address that a text is, as RFC 5952 writes it; undefined for every other text. An IPv4 address inside IPv6, as a socket of both families shows it, is that IPv4
 * address. The zone of an IPv6 address is of the machine that wrote it, and is dropped.
 */
export function parseAddress(text: string): string | undefined {
  const plain = text.replace(ZONE, '')
  const family = isIP(plain)
  if (family === 0) return undefined
  return new SocketAddress({ address: plain, family: family === 4 ? 'ipv4' : 'ipv6' }).address.replace(INSIDE_IPV6, '')
}

const ZONE = /%.*$/
const INSIDE_IPV6 = /^::ffff:(?=[\d.]+$)/
