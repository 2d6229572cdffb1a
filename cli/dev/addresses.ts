// Lists the names and addresses at which phones reach this machine.
import { isIP } from 'node:net'
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os'
import { createRanges } from '../../src/lib/address.ts'

/** Names and addresses of this machine on itself; 10.0.2.2 is its address in an Android emulator. */
export const OWN_NAMES: readonly string[] = ['localhost', '127.0.0.1', '::1', '10.0.2.2']

/** Interfaces of bridges, containers and tunnels, behind which a phone rarely is. */
const VIRTUAL = /^(?:docker|br-|veth|virbr|vmnet|vboxnet|cni|flannel|lxc|podman|tun|tap|utun|wg|tailscale)/

/** IPv4 addresses of this machine in its networks; those of virtual interfaces come last. */
export function listAddresses(
  interfaces: Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>> = networkInterfaces(),
): readonly string[] {
  const found = Object.entries(interfaces).flatMap(([name, infos = []]) =>
    infos
      .filter(({ family, internal, address }) => family === 'IPv4' && !internal && !address.startsWith('169.254.'))
      .map(({ address }) => ({ address, isVirtual: VIRTUAL.test(name) })),
  )
  return found.toSorted((a, b) => Number(a.isVirtual) - Number(b.isVirtual)).map(({ address }) => address)
}

/** Private, link-local and loopback ranges (RFC 1918, 3927, 4193, 4291). */
export const PRIVATE_RANGES: readonly string[] = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '169.254.0.0/16',
  '127.0.0.0/8',
  '::1/128',
  'fc00::/7',
  'fe80::/10',
]

export const isPrivateAddress = createRanges(PRIVATE_RANGES)

/** Whether a text is an address without a zone, or a host name for a certificate: letters, digits, `-` and `.`, at most 253 characters. */
export const isName = (text: string): boolean =>
  (isIP(text) !== 0 && !text.includes('%')) ||
  (/^(?=.{1,253}$)(?:(?!-)[a-z\d-]{1,63}(?<!-)(?:\.|$))+$/i.test(text) && !text.endsWith('.') && !/^[\d.]+$/.test(text))
