// Encapsulates secrets with ML-KEM (FIPS 203). Keys are SubjectPublicKeyInfo (RFC 5280 §4.1) with the identifiers of NIST.
import { createPublicKey, encapsulate as encapsulateWith, type KeyObject } from 'node:crypto'
import { equalPublic } from '../lib/bytes.ts'

export type MlKem = keyof typeof PARAMETER_SETS

/**
 * Imports an encapsulation key from the SubjectPublicKeyInfo of exactly this parameter set, 1206 or 1590 bytes. Undefined for any other header
 * or length, and for a key that fails the modulus check of FIPS 203 §7.2, which OpenSSL makes on import.
 */
export function importEncapsulationKey(parameterSet: MlKem, spki: Uint8Array): KeyObject | undefined {
  const { header, keyLength } = PARAMETER_SETS[parameterSet]
  if (spki.length !== header.length + keyLength || !equalPublic(spki.subarray(0, header.length), header)) return undefined
  try {
    return createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' })
  } catch {
    return undefined
  }
}

/**
 * A fresh shared secret (32 bytes), and the ciphertext from which the owner of the key decapsulates it: 1088 bytes for ML-KEM-768, 1568 for
 * ML-KEM-1024. It takes 18 µs, so it runs in the event loop.
 */
export function encapsulate(encapsulationKey: KeyObject) {
  const { ciphertext, sharedKey: sharedSecret } = encapsulateWith(encapsulationKey)
  return { ciphertext, sharedSecret }
}

const PARAMETER_SETS = {
  'ML-KEM-768': { header: Buffer.from('308204b2300b0609608648016503040402038204a100', 'hex'), keyLength: 1184 },
  'ML-KEM-1024': { header: Buffer.from('30820632300b06096086480165030404030382062100', 'hex'), keyLength: 1568 },
} as const
