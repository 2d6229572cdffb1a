// Where the phones of an application reach the server (cloud §10).
import { formatListenerUrl } from '../../../http/listener-url.ts'
import type { CloudParts } from '../parts.ts'

/** The base below which /pa/v3 hangs: as configured, or the public listener, whichever listener was asked. `origin` is that of the request. */
export function baseUrlOf(
  { settings, publicListener: { address } }: Pick<CloudParts, 'settings' | 'publicListener'>,
  origin: string,
): string {
  return settings.publicUrl ?? (address ? formatListenerUrl(address, origin) : origin)
}
