// Does by node:crypto the operations on keys and signatures that only tests need, as the counterparts of the server's.
import { createDecipheriv, createECDH, createPrivateKey, type DSAEncoding, type KeyObject, verify } from 'node:crypto'
import type { Curve } from '../../src/crypto/key.ts'
import { parseBase64 } from '../../src/lib/base64.ts'

/** The key of a big-endian scalar, 32 bytes on P-256, 48 on P-384; throws when it is out of range. */
export function privateKeyFromScalar(curve: Curve, scalar: Uint8Array): KeyObject {
  const half = createECDH(curve === 'P-256' ? 'prime256v1' : 'secp384r1')
  half.setPrivateKey(scalar)
  const point = half.getPublicKey()
  const middle = (point.length + 1) / 2
  const text = (part: Uint8Array): string => Buffer.from(part).toString('base64url')
  const key = { kty: 'EC', crv: curve, x: text(point.subarray(1, middle)), y: text(point.subarray(middle)), d: text(scalar) }
  return createPrivateKey({ format: 'jwk', key })
}

/** Whether a signature is one of `message` on P-384; false for bytes that are not a signature at all. */
export const ecdsaVerifyP384 = (
  key: KeyObject,
  message: Uint8Array,
  signature: Uint8Array,
  dsaEncoding: DSAEncoding = 'der',
): boolean => verify('sha384', message, { key, dsaEncoding }, signature)

/** Whether a Base64 signature is one of an activation code. */
export function verifyActivationCode(code: string, signature: string, masterPublicKey: KeyObject): boolean {
  const der = parseBase64(signature)
  return der !== undefined && verify('sha256', Buffer.from(code), masterPublicKey, der)
}

/** AES-128-CBC without padding. */
export function aesCbcDecryptUnpadded(key: Uint8Array, iv: Uint8Array, ciphertext: Uint8Array): Uint8Array {
  const decipher = createDecipheriv('aes-128-cbc', key, iv).setAutoPadding(false)
  return Buffer.concat([decipher.update(ciphertext), decipher.final()])
}
