// IP addresses and CIDR ranges as operators write them, and whether an address is among them.
import { BlockList, isIP } from 'node:net'

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
  const plain = (MAPPED.exec(ip)?.[1] ?? ip).replace(/%.*$/, '')
  const family = isIP(plain)
  if (family === 0) return false
  // A list of both families would take every IPv4 address for its form inside IPv6.
  const list = new BlockList()
  const name = family === 4 ? 'ipv4' : 'ipv6'
  for (const range of ranges) {
    const [address = '', prefix] = range.split('/')
    if (isIP(address) !== family) continue
    if (prefix === undefined) list.addAddress(address, name)
    else list.addSubnet(address, Number(prefix), name)
  }
  return list.check(plain, name)
}

/** An IPv4 address as a socket of both families shows it. */
const MAPPED = /^::ffff:([\d.]+)$/i
