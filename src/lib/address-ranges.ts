// IP addresses and CIDR ranges as operators write them, and whether an address is among them.
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { parseAddress } from './address.ts'

/** Whether a text is an address or a range. A range of /0 would be everyone, which is never what is meant. */
export function isAddressOrRange(text: string): boolean {
  const [address = '', prefix, ...rest] = text.split('/')
  const family = isIP(address)
  if (family === 0 || address.includes('%') || rest.length > 0) return false
  if (prefix === undefined) return true
  return /^[1-9]\d{0,2}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128)
}

/** Whether `ip` is one of `ranges`, each of which is an address or a range. What is no address is in none. */
export function isInRanges(ranges: readonly string[], ip: string): boolean {
  const address = parseAddress(ip)
  if (address === undefined) return false
  return ranges.some((range) => {
    const [text = '', prefix] = range.split('/')
    const network = ipaddr.parse(text)
    // An IPv4 address is in no range of IPv6, whatever form it came in.
    return (
      network.kind() === address.kind() &&
      address.match(network, prefix === undefined ? ALL_BITS[network.kind()] : Number(prefix))
    )
  })
}

const ALL_BITS = { ipv4: 32, ipv6: 128 }
