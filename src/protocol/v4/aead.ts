// Seals and opens with the AEAD of v4: AES-256-CTR and KMAC-256, encrypt-then-MAC (v4 §1.5).
import { aesCtr } from '../../crypto/aes.ts'
import { createKmac, type KmacKey } from '../../crypto/kmac.ts'
import { concat, equalConstantTime } from '../../lib/bytes.ts'
import { type KdfKey, kdf } from './key-schedule.ts'

export interface AeadKeys {
  /** Ke, 32 bytes. */
  readonly keyEncryption: Uint8Array
  /** Km. */
  readonly keyMac: KmacKey
  /** Ke and Km as bytes, 64 together. */
  readonly exported: Uint8Array
}

/** Derives Ke and Km from a key and a context, which may be empty. */
export const deriveAeadKeys = (key: KdfKey, keyContext: Uint8Array): AeadKeys =>
  importAeadKeys(concat(kdf(key, 'aead/enc', keyContext), kdf(key, 'aead/mac', keyContext)))

/** Imports Ke and Km from their bytes, 64 together. */
export const importAeadKeys = (exported: Uint8Array): AeadKeys => ({
  keyEncryption: exported.subarray(0, 32),
  keyMac: importAeadKey(exported.subarray(32)),
  exported,
})

/** Seals a plaintext as nonce ‖ tag (32) ‖ ciphertext. The same keys must never get the same nonce (12 bytes) twice. */
export function sealAead(keys: AeadKeys, nonce: Uint8Array, associatedData: Uint8Array, plaintext: Uint8Array): Uint8Array {
  const ciphertext = aesCtr(keys.keyEncryption, deriveIv(nonce), plaintext)
  return concat(nonce, computeTag(keys, nonce, associatedData, ciphertext), ciphertext)
}

/** Decrypts; undefined if a byte, the associated data or the keys differ. The tag is compared in constant time before anything is decrypted. */
export function openAead(keys: AeadKeys, associatedData: Uint8Array, sealed: Uint8Array): Uint8Array | undefined {
  if (sealed.length < AEAD_LENGTH_MIN) return undefined
  const nonce = sealed.subarray(0, AEAD_NONCE_LENGTH)
  const tag = sealed.subarray(AEAD_NONCE_LENGTH, AEAD_LENGTH_MIN)
  const ciphertext = sealed.subarray(AEAD_LENGTH_MIN)
  if (!equalConstantTime(tag, computeTag(keys, nonce, associatedData, ciphertext))) return undefined
  return aesCtr(keys.keyEncryption, deriveIv(nonce), ciphertext)
}

/** Nonces are 12 bytes. */
export const AEAD_NONCE_LENGTH = 12
/** The length of nonce and tag, which is that of the shortest output. */
export const AEAD_LENGTH_MIN = 44

// There is no length between associated data and ciphertext, because the associated data of v4 delimit themselves (v4 §5.5).
const computeTag = (keys: AeadKeys, nonce: Uint8Array, associatedData: Uint8Array, ciphertext: Uint8Array): Uint8Array =>
  keys.keyMac.compute(concat(nonce, associatedData, ciphertext))

// The counter begins at zero after the nonce. It would reach the nonce after 2^32 blocks, far more than a request can have.
const deriveIv = (nonce: Uint8Array): Uint8Array => concat(nonce, ZERO_COUNTER)

const importAeadKey = createKmac('PA4MAC-AEAD')
const ZERO_COUNTER = new Uint8Array(4)
