// Eight digits shown on both sides to compare the exchanged keys (v3 §4.3).
import { sha256 } from '../../crypto/hash.ts'
import { concat, utf8 } from '../../lib/bytes.ts'
import { toDecimal } from './authentication-code.ts'

/** Eight decimal digits. Points of 33 or 65 bytes. */
export const activationFingerprint = (devicePublicKey: Uint8Array, activationId: string, serverPublicKey: Uint8Array): string =>
  fingerprintOf(concat(minimalX(devicePublicKey), utf8(activationId), minimalX(serverPublicKey)))

/** Eight decimal digits of a message. */
export const fingerprintOf = (message: Uint8Array): string => toDecimal(sha256(message), 8)

/**
 * Xmin: the X coordinate without leading zero bytes, so 31 bytes in one of 256 cases. Not the form of ECDH. In both
 * encodings of a point, X is the 32 bytes behind the first.
 */
export function minimalX(point: Uint8Array): Uint8Array {
  const x = point.subarray(1, 33)
  const start = x.findIndex((byte) => byte !== 0)
  return start === -1 ? x.subarray(x.length) : x.subarray(start)
}
