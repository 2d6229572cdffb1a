// Where the phones of an application reach the server (cloud §10).
import type { CloudParts } from '../parts.ts'

/** The base below which /pa/v3 hangs; that of the request when none is configured. */
export function baseUrlOf({ settings, events }: CloudParts, origin: string): string {
  if (settings.publicUrl !== undefined) return settings.publicUrl
  events.publicUrlMissing()
  return origin
}
