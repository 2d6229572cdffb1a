// A numeric code over data, to be compared by people (v4 §11.4).
import { kmac256 } from '../../crypto/kmac.ts'
import { utf8 } from '../../lib/bytes.ts'

/** `digits` (4 to 9) decimal digits over text items. `salt`: 16 random bytes. */
export function computeDataDigest(items: readonly string[], salt: Uint8Array, digits = 8): string {
  const mac = computeDataMac(items, salt)
  const value = BigInt.asIntN(256, BigInt(`0x${Buffer.from(mac).toString('hex')}`))
  const modulus = 10n ** BigInt(digits)
  return String(((value % modulus) + modulus) % modulus).padStart(digits, '0')
}

/** The MAC that the digits are taken from, 32 bytes. */
export const computeDataMac = (items: readonly string[], salt: Uint8Array): Uint8Array =>
  kmac256(salt, utf8(items.join('&')), 'PA4DIGEST-DATA')
