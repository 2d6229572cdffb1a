// IP addresses in any of the ways to write one.
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/**
 * The address that a text is; undefined for every other text. An IPv4 address inside IPv6, as a socket of both families shows it, is that IPv4
 * address. The zone of an IPv6 address is of the machine that wrote it, and is dropped.
 */
export function parseAddress(text: string): Address | undefined {
  const plain = text.replace(ZONE, '')
  // The library alone takes 127.1 and 0x7f000001, too.
  return isIP(plain) === 0 ? undefined : ipaddr.process(plain)
}

const ZONE = /%.*$/
