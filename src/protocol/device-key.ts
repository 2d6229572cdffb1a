// The device keys of an activation of either generation: their public forms, and the verification of their signatures (v3 §8.3, v4 §3.2).
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
 * The device keys of an activation as they were stored, that of ECDSA first; throws when the bytes are not such keys, because they come from our own
 * storage only.
 */
export function importDeviceKeys(algorithm: Algorithm, stored: Uint8Array): readonly DeviceKey[] {
  if (algorithm === 'EC_P256') return [{ algorithm: 'ES256', key: found(publicKeyFromPoint('P-256', stored)) }]
  const { ecdsa, mldsa = NOTHING } = splitPublicKeys(stored)
  const parameterSet = ALGORITHMS.get(algorithm)?.signature
  const key = { algorithm: 'ES384', key: found(publicKeyFromPoint('P-384', ecdsa)) } as const
  return parameterSet === undefined
    ? [key]
    : [key, { algorithm: parameterSet, key: found(importMlDsaPublicKey(parameterSet, mldsa)) }]
}

function found(key: KeyObject | undefined): KeyObject {
  if (key === undefined) throw new TypeError('the device key of an activation cannot be read')
  return key
}

/** What a signature of ECDSA is made with: DER and the hash of the algorithm, unless it says otherwise. */
export type SignatureForm = EcdsaForm

/**
 * Whether `signature` is one of `message` by this key; false for bytes that are not a signature at all. ML-DSA is pure, with an empty context
 * (FIPS 204 §5.2).
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

/** A public key as text for others: SubjectPublicKeyInfo as PEM, and JWK. */
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
  /** Whether the key that is in it is this one, and the signature one of such a key. */
  readonly fits: (key: DeviceKey) => boolean
  /** The algorithm of the key that is in it, as far as its length tells. */
  readonly looksLike: SignatureAlgorithm
}

/** Reads PKCS#10 in DER (RFC 2986); undefined for anything else, and for signatures that no phone makes. */
export function readCertificateRequest(der: Uint8Array): ReadCertificateRequest | undefined {
  const request = parseCertificateRequest(der)
  if (request === undefined) return undefined
  const { covered, subject, publicKey, signature, signedWith } = request
  const isMlDsa = signedWith === 'ML-DSA-65' || signedWith === 'ML-DSA-87'
  return {
    covered,
    subject,
    signature,
    // ECDSA may have any hash of SHA-2: which one is the choice of the phone's library.
    form: isMlDsa ? {} : { hash: signedWith },
    fits: ({ algorithm, key }) =>
      equalPublic(spkiOf(key), publicKey) && (isMlDsa ? algorithm === signedWith : algorithm.startsWith('ES')),
    looksLike: isMlDsa ? signedWith : publicKey.length > P256_SPKI_LENGTH ? 'ES384' : 'ES256',
  }
}

/** With the point written out in full. */
const P256_SPKI_LENGTH = 91

const spkiOf = (key: KeyObject): Uint8Array => key.export({ format: 'der', type: 'spki' })

/** A key that nobody has, of each algorithm: what names no activation is verified with it, so that it takes as long. */
export function createDecoyDeviceKeys(): Readonly<Record<SignatureAlgorithm, DeviceKey>> {
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

const NOTHING = new Uint8Array(0)
