// Opens the secrets of PowerAuth server: its record encryption, and private keys as numbers. By its documentation, "Encrypting Records in
// Database", the key of a record is KDF_INTERNAL(master DB encryption key, ids joined by `&`), and a record is
//
//   IV (16) ‖ AES-128-CBC with PKCS#7 padding
import type { KeyObject } from 'node:crypto'
import { aesCbcDecrypt } from '../../src/crypto/aes.ts'
import { exportPrivateKey, privateKeyFromScalar, publicKeyOf, readPoint as readPointOf } from '../../src/crypto/key.ts'
import { parseBase64 } from '../../src/lib/base64.ts'
import { equalPublic, utf8 } from '../../src/lib/bytes.ts'
import { kdfInternal } from '../../src/protocol/v3/key-schedule.ts'

/** The contents of a column: plain bytes, or an encrypted record. */
export type EncryptionMode = 'NO_ENCRYPTION' | 'AES_HMAC'

/**
 * Opens a record that the reference stored under these ids; undefined when that fails. A record has no MAC: about one wrong key in 256 yields
 * some bytes, so the caller checks them.
 */
export type OpenRecord = (
  mode: EncryptionMode | null | undefined,
  stored: Uint8Array,
  ids: readonly string[],
) => Uint8Array | undefined

/** Makes the opener of records. With the master DB encryption key (16 bytes) it opens encrypted ones, too. */
export const createRecordOpener =
  (masterDbKey: Uint8Array | undefined): OpenRecord =>
  (mode, stored, ids) => {
    if (mode === 'NO_ENCRYPTION') return stored
    if (mode !== 'AES_HMAC' || masterDbKey === undefined || stored.length < 2 * BLOCK_BYTES) return undefined
    const key = kdfInternal(masterDbKey, utf8(ids.join('&')))
    return aesCbcDecrypt(key, stored.subarray(0, BLOCK_BYTES), stored.subarray(BLOCK_BYTES))
  }

/** A P-256 key pair. */
export interface OpenedKeyPair {
  readonly privateKey: KeyObject
  /** Uncompressed point, 65 bytes. */
  readonly publicKey: Uint8Array
  readonly pkcs8: Uint8Array
}

/**
 * Makes the key pair of a private key that is stored as a signed big-endian number, of 33 bytes or fewer. Undefined when the number is not the
 * private key of `publicKey` (Base64 of a point), as after decryption with a wrong master DB encryption key.
 */
export function openKeyPair(number: Uint8Array, publicKey: string): OpenedKeyPair | undefined {
  const digits = number.subarray(number.findIndex((byte) => byte !== 0))
  if (digits.length > SCALAR_BYTES) return undefined
  const scalar = Buffer.alloc(SCALAR_BYTES)
  scalar.set(digits, SCALAR_BYTES - digits.length)
  const privateKey = privateKeyFromScalar('P-256', scalar)
  const expected = readPoint(publicKey)
  if (privateKey === undefined || expected === undefined) return undefined
  const own = publicKeyOf(privateKey)
  if (!equalPublic(own, expected)) return undefined
  return { privateKey, publicKey: own, pkcs8: exportPrivateKey(privateKey) }
}

/** The uncompressed form of a point of P-256, from Base64. */
export function readPoint(text: string): Uint8Array | undefined {
  const point = parseBase64(text)
  return point && readPointOf('P-256', point)?.bytes
}

const BLOCK_BYTES = 16
const SCALAR_BYTES = 32
