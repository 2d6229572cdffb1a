// IP addresses and CIDR ranges as operators write them, and whether an address is among them.
import { BlockList, isIP } from 'node:net'
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
  const [family, allBits] = isIP(address) === 4 ? (['ipv4', 32] as const) : (['ipv6', 128] as const)
  const list = new BlockList()
  for (const range of ranges) {
    const [network = '', prefix = allBits] = range.split('/')
    // An IPv4 address is in no range of IPv6, whatever form it came in.
    if (isIP(network) === isIP(address)) list.addSubnet(network, Number(prefix), family)
  }
  return list.check(address, family)
}
