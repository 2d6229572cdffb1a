// Time-based one-time passwords (RFC 6238) with HMAC-SHA256 and T0 = 0; truncation of RFC 4226 §5.3.
import { u64 } from '../lib/bytes.ts'
import { hmac } from './hash.ts'

/** The number of the step that contains a time, in seconds since 1970-01-01 UTC. */
export const totpStep = (timeSeconds: number, stepSeconds: number): number => Math.floor(timeSeconds / stepSeconds)

/** The one-time password of a step: `digits` decimal digits, up to 9. */
export function totp(seed: Uint8Array, step: number, digits: number): string {
  const mac = Buffer.from(hmac(seed, u64(step)))
  const offset = mac.readUInt8(mac.length - 1) & 0x0f
  const value = mac.readUInt32BE(offset) & 0x7fffffff
  return String(value % 10 ** digits).padStart(digits, '0')
}
