// Encrypts with AES (FIPS 197, NIST SP 800-38A, SP 800-38D): AES-128 in CBC with and without PKCS#7 padding, and on single blocks; AES-256 in CTR
// and GCM. Keys are passed as bytes: createSecretKey would take 1.2 of 3.6 µs (Node 26), and its object would need as much memory again.
import { createCipheriv, createDecipheriv } from 'node:crypto'

/** AES-128-CBC with PKCS#7 padding. `key` and `iv` have 16 bytes. The result is 1 to 16 bytes longer than the plaintext, which may be empty. */
export function aesCbcEncrypt(key: Uint8Array, iv: Uint8Array, plaintext: Uint8Array): Uint8Array {
  const cipher = createCipheriv('aes-128-cbc', key, iv)
  return Buffer.concat([cipher.update(plaintext), cipher.final()])
}

/**
 * Decrypts AES-128-CBC with PKCS#7 padding. Undefined when the length or the padding is wrong. Check the MAC first, and call this only when it
 * is right.
 */
export function aesCbcDecrypt(key: Uint8Array, iv: Uint8Array, ciphertext: Uint8Array): Uint8Array | undefined {
  const decipher = createDecipheriv('aes-128-cbc', key, iv)
  try {
    return Buffer.concat([decipher.update(ciphertext), decipher.final()])
  } catch {
    return undefined
  }
}

/** AES-128-CBC without padding: the result is as long as the plaintext. Throws when that is not a multiple of 16 bytes. */
export function aesCbcEncryptUnpadded(key: Uint8Array, iv: Uint8Array, plaintext: Uint8Array): Uint8Array {
  const cipher = createCipheriv('aes-128-cbc', key, iv).setAutoPadding(false)
  return Buffer.concat([cipher.update(plaintext), cipher.final()])
}

/**
 * Encrypts each block of 16 bytes by itself. ECB is safe here, because the blocks differ and hold no message: AES serves as a pseudo-random
 * function. The result has memory of its own.
 */
export const aesEncryptBlocks = (key: Uint8Array, blocks: Uint8Array): Uint8Array =>
  createCipheriv('aes-128-ecb', key, null).setAutoPadding(false).update(blocks)

/**
 * AES-256-CTR, which both encrypts and decrypts; the result is as long as `bytes`. `key` has 32 bytes. `iv` has 16 bytes, all of them one
 * big-endian counter. Never use a pair of key and iv for two plaintexts.
 */
export const aesCtr = (key: Uint8Array, iv: Uint8Array, bytes: Uint8Array): Uint8Array =>
  createCipheriv('aes-256-ctr', key, iv).update(bytes)

/**
 * AES-256-GCM. Returns ciphertext ‖ tag, 16 bytes longer than the plaintext. `key` has 32 bytes, `nonce` 12. Never use a nonce twice with one key.
 */
export function aesGcmSeal(key: Uint8Array, nonce: Uint8Array, plaintext: Uint8Array, associatedData: Uint8Array): Uint8Array {
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_LENGTH })
  cipher.setAAD(associatedData)
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()])
}

/**
 * Decrypts AES-256-GCM. Undefined when key, nonce, ciphertext, tag or associated data is wrong. The plaintext has memory of its own, because
 * callers keep it.
 */
export function aesGcmOpen(
  key: Uint8Array,
  nonce: Uint8Array,
  sealed: Uint8Array,
  associatedData: Uint8Array,
): Uint8Array | undefined {
  if (sealed.length < TAG_LENGTH) return undefined
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_LENGTH })
  decipher.setAAD(associatedData)
  decipher.setAuthTag(sealed.subarray(-TAG_LENGTH))
  try {
    const plaintext = decipher.update(sealed.subarray(0, -TAG_LENGTH))
    // GCM has no padding, so this returns no bytes. It throws when the tag is wrong.
    decipher.final()
    return plaintext
  } catch {
    return undefined
  }
}

const TAG_LENGTH = 16
