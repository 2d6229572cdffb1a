// Makes, packs and parses signing key pairs: the server's, made for each activation, and the public keys of the device (v4 §3.2).
import { exportPrivateKey, importPrivateKey, readPoint } from '../../crypto/key.ts'
import { exportMlDsaSeed, importMlDsaPublicKey, importMlDsaSeed } from '../../crypto/mldsa.ts'
import { inThread } from '../../crypto/threads.ts'
import { toBase64 } from '../../lib/base64.ts'
import { concat } from '../../lib/bytes.ts'
import { isJsonObject } from '../../lib/json.ts'
import type { SigningKeys } from '../protocol.ts'
import { parseBytes } from '../wire/members.ts'
import { ALGORITHMS, type AlgorithmV4 } from './shared-secret.ts'

/** Public keys of one side. */
export interface PublicKeys {
  /** P-384, uncompressed point of 97 bytes. */
  readonly ecdsa: Uint8Array
  /** SubjectPublicKeyInfo of ML-DSA-65 or ML-DSA-87, in the hybrid algorithms. */
  readonly mldsa?: Uint8Array
}

export interface SigningKeyPairs {
  readonly privateKeys: SigningKeys
  readonly publicKeys: PublicKeys
}

/** Makes fresh signing key pairs for an algorithm. */
export async function generateSigningKeyPairs(algorithm: AlgorithmV4): Promise<SigningKeyPairs> {
  const parameterSet = ALGORITHMS.get(algorithm)?.signature
  const [ecdsa, mldsa] = await Promise.all([
    inThread('generateKeyPair', 'P-384'),
    parameterSet && inThread('generateMlDsaKeyPair', parameterSet),
  ])
  return {
    privateKeys: { ecdsa: ecdsa.privateKey, ...(mldsa && { mldsa: mldsa.privateKey }) },
    publicKeys: { ecdsa: ecdsa.publicKey, ...(mldsa && { mldsa: mldsa.publicKey }) },
  }
}

/** Packs private keys for storage: the seed of ML-DSA (32 bytes) if there is one, then the P-384 key as PKCS#8 in DER. */
export const exportSigningKeys = ({ privateKeys: { ecdsa, mldsa } }: SigningKeyPairs): Uint8Array =>
  concat(...(mldsa ? [exportMlDsaSeed(mldsa)] : []), exportPrivateKey(ecdsa))

/** Imports stored private keys of an algorithm. Throws for other bytes, because they come only from pawl's own storage. */
export function importSigningKeys(algorithm: AlgorithmV4, stored: Uint8Array): SigningKeys {
  const parameterSet = ALGORITHMS.get(algorithm)?.signature
  if (!parameterSet) return { ecdsa: importPrivateKey(stored) }
  const mldsa = importMlDsaSeed(parameterSet, stored.subarray(0, SEED_LENGTH))
  return { ecdsa: importPrivateKey(stored.subarray(SEED_LENGTH)), mldsa }
}

/** Parses the public keys of a request; undefined when one is missing or not valid for the algorithm (v4 §8.4). */
export function parsePublicKeys(algorithm: AlgorithmV4, json: unknown): PublicKeys | undefined {
  if (!isJsonObject(json)) return undefined
  const point = parseBytes(json['ecdsa'])
  const ecdsa = point && readPoint('P-384', point)?.bytes
  const parameterSet = ALGORITHMS.get(algorithm)?.signature
  if (!ecdsa) return undefined
  // Only the hybrid algorithms have a second key. For others, a second key in the request is ignored (v4 §8.6).
  if (!parameterSet) return { ecdsa }
  const mldsa = parseBytes(json['mldsa'])
  return mldsa && importMlDsaPublicKey(parameterSet, mldsa) ? { ecdsa, mldsa } : undefined
}

/** Public keys as members of an answer. */
export const describePublicKeys = ({ ecdsa, mldsa }: PublicKeys): { ecdsa: string; mldsa?: string } => ({
  ecdsa: toBase64(ecdsa),
  ...(mldsa && { mldsa: toBase64(mldsa) }),
})

/** Packs public keys for storage: the point (97 bytes), then the SubjectPublicKeyInfo if there is one. */
export const joinPublicKeys = ({ ecdsa, mldsa }: PublicKeys): Uint8Array => concat(ecdsa, ...(mldsa ? [mldsa] : []))

/** Unpacks stored public keys. */
export const splitPublicKeys = (stored: Uint8Array): PublicKeys =>
  stored.length === POINT_LENGTH
    ? { ecdsa: stored }
    : { ecdsa: stored.subarray(0, POINT_LENGTH), mldsa: stored.subarray(POINT_LENGTH) }

const SEED_LENGTH = 32
const POINT_LENGTH = 97
