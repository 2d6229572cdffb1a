// Imports and describes the device keys of an activation of either generation, and verifies their signatures (v3 §8.3, v4 §3.2).
import type { KeyObject } from 'node:crypto'
import { parseCertificateRequest } from '../crypto/certificate-request.ts'
import { type EcdsaForm, ecdsaVerify } from '../crypto/ecdsa.ts'
import { generateKeyPair, publicKeyFromPoint } from '../crypto/key.ts'
import { generateMlDsaKeyPair, importMlDsaPublicKey } from '../crypto/mldsa.ts'
import { inThread } from '../crypto/threads.ts'
import { equalPublic } from '../lib/bytes.ts'
import { toPem } from '../lib/pem.ts'
import type { Algorithm, DeviceKey, SignatureAlgorithm } from './protocol.ts'
import { splitPublicKeys } from './v4/key-pairs.ts'
import { ALGORITHMS } from './v4/shared-secret.ts'

/**
 * Imports the stored device keys of an activation, that of ECDSA first. Returns none for other bytes, and for keys of another algorithm, which
 * somebody wrote into the database: with only one of two keys imported, one signature would be enough.
 */
export function importDeviceKeys(algorithm: Algorithm, stored: Uint8Array): readonly DeviceKey[] {
  if (algorithm === 'EC_P256') return allOf({ algorithm: 'ES256', key: publicKeyFromPoint('P-256', stored) })
  const { ecdsa, mldsa } = splitPublicKeys(stored)
  const parameterSet = ALGORITHMS.get(algorithm)?.signature
  const first = { algorithm: 'ES384', key: publicKeyFromPoint('P-384', ecdsa) } as const
  if (parameterSet === undefined && mldsa === undefined) return allOf(first)
  if (parameterSet === undefined || mldsa === undefined) return []
  return allOf(first, { algorithm: parameterSet, key: importMlDsaPublicKey(parameterSet, mldsa) })
}

/** All of these keys, or none if one could not be imported. */
const allOf = (...keys: readonly (Omit<DeviceKey, 'key'> & { readonly key: KeyObject | undefined })[]): readonly DeviceKey[] =>
  keys.every(({ key }) => key !== undefined) ? (keys as readonly DeviceKey[]) : []

/** Hash and encoding of an ECDSA signature; without them, the hash of the algorithm and DER. */
export type SignatureForm = EcdsaForm

/**
 * Whether `signature` is a signature of `message` by this key; false for bytes that are no signature at all. ML-DSA is pure, with an empty
 * context (FIPS 204 §5.2).
 */
export async function verifyByDeviceKey(
  { algorithm, key }: DeviceKey,
  message: Uint8Array,
  signature: Uint8Array,
  form?: SignatureForm,
): Promise<boolean> {
  switch (algorithm) {
    case 'ES256':
      return ecdsaVerify(key, message, signature, form)
    case 'ES384':
      return inThread('ecdsaVerify', key, message, signature, { hash: 'sha384', ...form })
    default:
      return inThread('mlDsaVerify', key, message, signature)
  }
}

/** Writes a public key for other systems: SubjectPublicKeyInfo as PEM, and JWK. */
export const describeDeviceKey = ({ algorithm, key }: DeviceKey) => ({
  algorithm,
  pem: toPem(spkiOf(key), 'PUBLIC KEY'),
  jwk: { ...key.export({ format: 'jwk' }), alg: algorithm, use: 'sig' },
})

/** A certificate request, its signature not yet verified. */
export interface ReadCertificateRequest {
  readonly covered: Uint8Array
  readonly subject: string
  readonly signature: Uint8Array
  readonly form: SignatureForm
  /** Whether the request contains this key, and its signature is of the algorithm of this key. */
  readonly fits: (key: DeviceKey) => boolean
  /** The algorithm of the key in the request, judged by its length alone. */
  readonly looksLike: SignatureAlgorithm
}

/** Reads a certificate request, PKCS#10 in DER (RFC 2986). Undefined for other bytes, and for algorithms that no phone signs with. */
export function readCertificateRequest(der: Uint8Array): ReadCertificateRequest | undefined {
  const request = parseCertificateRequest(der)
  if (request === undefined) return undefined
  const { covered, subject, publicKey, signature, signedWith } = request
  const isMlDsa = signedWith === 'ML-DSA-65' || signedWith === 'ML-DSA-87'
  return {
    covered,
    subject,
    signature,
    // ECDSA may use any hash of SHA-2, because the phone's library chooses it.
    form: isMlDsa ? {} : { hash: signedWith },
    fits: ({ algorithm, key }) =>
      equalPublic(spkiOf(key), publicKey) && (isMlDsa ? algorithm === signedWith : algorithm.startsWith('ES')),
    looksLike: isMlDsa ? signedWith : publicKey.length > P256_SPKI_LENGTH ? 'ES384' : 'ES256',
  }
}

/** The length with an uncompressed point. */
const P256_SPKI_LENGTH = 91

const spkiOf = (key: KeyObject): Uint8Array => key.export({ format: 'der', type: 'spki' })

/**
 * Makes a key of each algorithm whose private half nobody has. Signatures for unknown activations are verified with it, so that they take as long.
 */
export function createDecoyDeviceKeys(): Readonly<Record<SignatureAlgorithm, DeviceKey>> {
  const found = (key: KeyObject | undefined): KeyObject => {
    if (key === undefined) throw new TypeError('a key that was just made cannot be imported')
    return key
  }
  const ofCurve = (algorithm: SignatureAlgorithm, curve: 'P-256' | 'P-384'): DeviceKey => ({
    algorithm,
    key: found(publicKeyFromPoint(curve, generateKeyPair(curve).publicKey)),
  })
  const ofParameterSet = (parameterSet: 'ML-DSA-65' | 'ML-DSA-87'): DeviceKey => ({
    algorithm: parameterSet,
    key: found(importMlDsaPublicKey(parameterSet, generateMlDsaKeyPair(parameterSet).publicKey)),
  })
  return {
    ES256: ofCurve('ES256', 'P-256'),
    ES384: ofCurve('ES384', 'P-384'),
    'ML-DSA-65': ofParameterSet('ML-DSA-65'),
    'ML-DSA-87': ofParameterSet('ML-DSA-87'),
  }
}
