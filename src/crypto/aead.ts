// AES-256-GCM (NIST SP 800-38D): 12-byte nonce, 16-byte tag behind the ciphertext.
import { createCipheriv, createDecipheriv } from 'node:crypto'

/** ciphertext ‖ tag, 16 bytes longer than the plaintext. `key` 32 bytes; a nonce (12 bytes) serves one key once. */
export function seal(key: Uint8Array, nonce: Uint8Array, plaintext: Uint8Array, associatedData: Uint8Array): Uint8Array {
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_LENGTH })
  cipher.setAAD(associatedData)
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()])
}

/** The plaintext in memory of its own, for it may be remembered; undefined when anything was changed. */
export function open(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array, associatedData: Uint8Array): Uint8Array | undefined {
  if (sealed.length < TAG_LENGTH) return undefined
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_LENGTH })
  decipher.setAAD(associatedData)
  decipher.setAuthTag(sealed.subarray(-TAG_LENGTH))
  try {
    const plaintext = decipher.update(sealed.subarray(0, -TAG_LENGTH))
    // Brings no bytes, for the mode has no padding, but throws where the tag is another.
    decipher.final()
    return plaintext
  } catch {
    return undefined
  }
}

const TAG_LENGTH = 16
