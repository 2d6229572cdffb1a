// Signs and verifies with ML-DSA (FIPS 204), pure mode with empty context. Public keys are SubjectPublicKeyInfo (RFC 5280 §4.1), private ones are
// seeds.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto'
import { equalPublic } from '../lib/bytes.ts'

export type MlDsa = keyof typeof PARAMETER_SETS

/**
 * Makes a fresh key pair; the public key is a SubjectPublicKeyInfo of 1974 bytes for ML-DSA-65, 2614 for ML-DSA-87. That takes a third of a
 * millisecond, so requests call it in a thread (threads.ts).
 */
export function generateMlDsaKeyPair(parameterSet: MlDsa) {
  const { privateKey } = generateKeyPairSync(PARAMETER_SETS[parameterSet].opensslName)
  return { privateKey, publicKey: mlDsaPublicKeyOf(privateKey) }
}

/**
 * Signs `message`: 3309 bytes for ML-DSA-65, 4627 for ML-DSA-87. Not deterministic. It takes one or two milliseconds, so requests call it in a
 * thread (threads.ts).
 */
export const mlDsaSign = (privateKey: KeyObject, message: Uint8Array): Uint8Array => sign(undefined, message, privateKey)

/**
 * Whether `signature` is a signature of `message`; false for bytes that are no signature at all. It takes a fifth of a millisecond, and half a
 * millisecond for a message of 128 KiB. Requests call it in a thread, where it runs beside the verification on P-384 (threads.ts).
 */
export const mlDsaVerify = (publicKey: KeyObject, message: Uint8Array, signature: Uint8Array): boolean =>
  verify(undefined, message, publicKey, signature)

/** Imports a public key from the SubjectPublicKeyInfo of exactly this parameter set; undefined for any other header or length. */
export function importMlDsaPublicKey(parameterSet: MlDsa, spki: Uint8Array): KeyObject | undefined {
  const { header, keyLength } = PARAMETER_SETS[parameterSet]
  if (spki.length !== header.length + keyLength || !equalPublic(spki.subarray(0, header.length), header)) return undefined
  // Any bytes of the length are a key: t1 is packed without a spare bit (FIPS 204 §7.2).
  return createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' })
}

/** The public key of a private one, as SubjectPublicKeyInfo. */
export const mlDsaPublicKeyOf = (privateKey: KeyObject): Uint8Array =>
  createPublicKey(privateKey).export({ format: 'der', type: 'spki' })

/** Exports the seed ξ of a private key (FIPS 204 §6.1), 32 bytes, from which the whole key can be made again. */
export const exportMlDsaSeed = (privateKey: KeyObject): Uint8Array => privateKey.export({ format: 'raw-seed' })

/** Imports a private key from its seed (32 bytes). Throws for other bytes, because they come only from pawl's own storage. */
export const importMlDsaSeed = (parameterSet: MlDsa, seed: Uint8Array): KeyObject =>
  createPrivateKey({
    key: Buffer.from(seed),
    format: 'raw-seed',
    asymmetricKeyType: PARAMETER_SETS[parameterSet].opensslName,
  })

const PARAMETER_SETS = {
  'ML-DSA-65': {
    opensslName: 'ml-dsa-65',
    header: Buffer.from('308207b2300b0609608648016503040312038207a100', 'hex'),
    keyLength: 1952,
  },
  'ML-DSA-87': {
    opensslName: 'ml-dsa-87',
    header: Buffer.from('30820a32300b060960864801650304031303820a2100', 'hex'),
    keyLength: 2592,
  },
} as const
