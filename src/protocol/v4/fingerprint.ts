// Eight digits shown on both sides to compare the exchanged keys (v4 §8.6).
import { sha3 } from '../../crypto/hash.ts'
import { concat, utf8 } from '../../lib/bytes.ts'
import type { Algorithm } from '../protocol.ts'
import { toDecimal } from './authentication-code.ts'
import type { PublicKeys } from './key-pairs.ts'

/** Eight decimal digits. */
export const activationFingerprint = (
  algorithm: Algorithm,
  deviceKeys: PublicKeys,
  activationId: string,
  serverKeys: PublicKeys,
): string => fingerprintOf(concat(utf8(algorithm), describeKeys(deviceKeys), utf8(activationId), describeKeys(serverKeys)))

/** Eight decimal digits of a message. */
export const fingerprintOf = (message: Uint8Array): string => toDecimal(sha3(message), 8)

/** X of the P-384 key without leading zero bytes, so 47 bytes in one of 256 cases; in both encodings it is the 48 behind the first. */
export function minimalX(point: Uint8Array): Uint8Array {
  const x = point.subarray(1, 49)
  const start = x.findIndex((byte) => byte !== 0)
  return start === -1 ? x.subarray(x.length) : x.subarray(start)
}

const describeKeys = ({ ecdsa, mldsa }: PublicKeys): Uint8Array => concat(minimalX(ecdsa), ...(mldsa ? [mldsa] : []))
