// Makes shared secrets (v4 §2): from the client's encapsulation keys to a secret, and to the values with which the client computes it.
import { encapsulate, importEncapsulationKey, type MlKem } from '../../crypto/kem.ts'
import { hasPointForm, type KeyPair } from '../../crypto/key.ts'
import { createKmacOnce } from '../../crypto/kmac.ts'
import type { MlDsa } from '../../crypto/mldsa.ts'
import { inThread } from '../../crypto/threads.ts'
import { parseBase64, toBase64 } from '../../lib/base64.ts'
import { concat, concatWithSizes, u32, utf8 } from '../../lib/bytes.ts'
import { isJsonObject } from '../../lib/json.ts'
import type { Algorithm } from '../protocol.ts'
import { VERSION } from './versions.ts'

/** An algorithm of v4. */
export type AlgorithmV4 = Exclude<Algorithm, 'EC_P256'>

/** The KEM and signature that an algorithm adds to DHKEM and ECDSA on P-384; undefined if it adds none (v4 §2.1). */
interface PostQuantumPart {
  readonly kem: MlKem
  readonly signature: MlDsa
}

/** The rows of v4 §2.1 that are enabled, in the order in which they are offered. */
export const ALGORITHMS: ReadonlyMap<AlgorithmV4, PostQuantumPart | undefined> = new Map<
  AlgorithmV4,
  PostQuantumPart | undefined
>([
  ['EC_P384', undefined],
  ['EC_P384_ML_L3', { kem: 'ML-KEM-768', signature: 'ML-DSA-65' }],
  ['EC_P384_ML_L5', { kem: 'ML-KEM-1024', signature: 'ML-DSA-87' }],
])

/** A SharedSecretRequest. Only the number of its keys and the form of the point have been checked (v4 §2.2). */
export interface SharedSecretRequest {
  readonly algorithm: AlgorithmV4
  readonly encapsulationKeys: readonly Uint8Array[]
}

/** A SharedSecretResponse as a JSON value (v4 §2.2). */
export interface SharedSecretResponse {
  readonly salt: string
  readonly encapsulatedKeys: readonly string[]
}

interface SharedSecret {
  /** 32 bytes. */
  readonly secret: Uint8Array
  readonly response: SharedSecretResponse
}

/**
 * Parses a SharedSecretRequest. Undefined when a member is missing or malformed, the algorithm is not one of v4, or the number of keys is not that of
 * the algorithm.
 */
export function parseSharedSecretRequest(json: unknown): SharedSecretRequest | undefined {
  if (!isJsonObject(json)) return undefined
  const { algorithm: name, encapsulationKeys: texts } = json
  const algorithm = parseAlgorithm(name)
  if (!algorithm || !Array.isArray(texts) || texts.length !== (ALGORITHMS.get(algorithm) ? 2 : 1)) return undefined
  const encapsulationKeys = texts.map((text) => (typeof text === 'string' ? parseBase64(text) : undefined))
  if (!encapsulationKeys.every((key) => key !== undefined)) return undefined
  return hasPointForm('P-384', encapsulationKeys[0] ?? new Uint8Array(0)) ? { algorithm, encapsulationKeys } : undefined
}

/** The algorithm of a name; undefined for names of other versions, reserved ones, and anything else. */
export const parseAlgorithm = (name: unknown): AlgorithmV4 | undefined =>
  [...ALGORITHMS.keys()].find((algorithm) => algorithm === name)

/**
 * Encapsulates for every key of the request (v4 §2.2 to §2.4). `salt`: 32 fresh bytes; `ephemeral`: a fresh key pair on P-384,
 * made here when it is not given. Undefined when a key is not valid.
 */
export async function encapsulateSharedSecret(
  { algorithm, encapsulationKeys }: SharedSecretRequest,
  salt: Uint8Array,
  ephemeral?: KeyPair,
): Promise<SharedSecret | undefined> {
  const [point = new Uint8Array(0), spki = new Uint8Array(0)] = encapsulationKeys
  const postQuantum = ALGORITHMS.get(algorithm)
  // Both keys are checked before anything is computed with one of them.
  const encapsulationKey = postQuantum && importEncapsulationKey(postQuantum.kem, spki)
  if (postQuantum && !encapsulationKey) return undefined
  const sent = await inThread('sendExport', point, DHKEM_LABEL, DHKEM_LABEL, ephemeral)
  if (!sent) return undefined
  const secrets = [sent.exported]
  const encapsulated = [sent.enc]
  if (encapsulationKey) {
    const { sharedSecret, ciphertext } = encapsulate(encapsulationKey)
    secrets.push(sharedSecret)
    encapsulated.push(ciphertext)
  }
  const response = { salt: toBase64(salt), encapsulatedKeys: encapsulated.map(toBase64) }
  return { secret: combineSecrets(algorithm, salt, secrets), response }
}

/** The shared secret, 32 bytes. The salt is the key of KMAC, the secrets are its message (v4 §2.4). */
export const combineSecrets = (algorithm: AlgorithmV4, salt: Uint8Array, secrets: readonly Uint8Array[]): Uint8Array => {
  const otherInfo = concatWithSizes(utf8(`shared-secret/${algorithm}`), utf8(VERSION))
  return combine(salt, concat(u32(1), concatWithSizes(...secrets), otherInfo))
}

const combine = createKmacOnce('KDF')

/** Info and exporter context of DHKEM, whose export of 48 bytes is Z (v4 §2.3). */
export const DHKEM_LABEL = utf8('DHKEM-P384')
