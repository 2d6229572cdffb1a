// The URL of a listener, as far as its own address tells it.
import type { AddressInfo } from 'node:net'

/** Where the listener of the phones' API is, from the moment it listens. */
export interface PublicListener {
  address: AddressInfo | undefined
}

/** `http://ADDRESS:PORT`; of a listener on every interface, ADDRESS is the host name of `origin`, an http URL, where one is given. */
export function formatListenerUrl(
  { address, family, port }: AddressInfo,
  origin?: string,
  scheme: 'http' | 'https' = 'http',
): string {
  if (origin !== undefined && EVERY_INTERFACE.has(address)) return `http://${new URL(origin).hostname}:${port}`
  return `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

const EVERY_INTERFACE: ReadonlySet<string> = new Set(['0.0.0.0', '::'])
