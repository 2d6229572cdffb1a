// Makes and reads the key pairs with which an application signs, and lists the algorithms that it allows (v4 §2.1, §3.2; P-256: v3 §3.1).
import type { KeyObject } from 'node:crypto'
import { exportPrivateKey, importPrivateKey } from '../../crypto/key.ts'
import { exportMlDsaSeed, importMlDsaSeed } from '../../crypto/mldsa.ts'
import { inThread } from '../../crypto/threads.ts'
import {
  findApplication,
  findMasterKeyPairs,
  insertMasterKeyPair,
  type MasterKeyPairRow,
} from '../../storage/application/applications.ts'
import { type PawlError, requestRefused } from '../../lib/errors.ts'
import type { Db } from '../../storage/database/database.ts'
import type { MasterKeyAlgorithm } from '../../storage/database/schema.ts'
import type { RecordKeys } from '../secrets/record-keys.ts'
import { type KeyParts, places } from '../secrets/secrets.ts'

/** A key agreement of v4 §2.1; EC_P256 is protocol 3. */
type AdmittedAlgorithm = keyof typeof SIGNERS

/** The algorithms of protocol 4.0, in the order in which they are offered. */
export const V4_ALGORITHMS = ['EC_P384', 'EC_P384_ML_L3', 'EC_P384_ML_L5'] as const

/** A pair that is not stored yet. */
interface NewMasterKey {
  readonly algorithm: MasterKeyAlgorithm
  /** Uncompressed point, or SubjectPublicKeyInfo of ML-DSA. */
  readonly publicKey: Uint8Array
  /** PKCS#8 of an elliptic curve, or the seed of ML-DSA. */
  readonly exported: Uint8Array
}

/** Makes fresh pairs, one for each algorithm. Call it before a transaction, because it takes some milliseconds. */
export const createMasterKeys = (algorithms: readonly MasterKeyAlgorithm[] = MASTER_KEY_ALGORITHMS): Promise<NewMasterKey[]> =>
  Promise.all(algorithms.map(createMasterKey))

/** Stores key pairs of an application. A pair that it already has for an algorithm stays. */
export async function insertMasterKeys(
  { db, platform, recordKeys }: KeyParts,
  applicationId: string,
  masterKeys: readonly NewMasterKey[],
): Promise<void> {
  for (const { algorithm, publicKey, exported } of masterKeys) {
    const masterKeyPairId = platform.uuid()
    await insertMasterKeyPair(db, {
      master_key_pair_id: masterKeyPairId,
      application_id: applicationId,
      algorithm,
      public_key: publicKey,
      private_key: recordKeys.seal(places.masterPrivateKey(masterKeyPairId), exported),
      created_at: new Date(platform.now()),
    })
  }
}

/**
 * Finds the keys with which an application signs for a phone of `algorithm`: `mldsa` only for the hybrid algorithms. Makes the pairs that an older
 * application lacks. The application must exist.
 */
export async function findSigningMasterKeys(parts: KeyParts, applicationId: string, algorithm: AdmittedAlgorithm) {
  const { ecdsa, mldsa } = SIGNERS[algorithm]
  const pairs = await readMasterKeyPairs(parts, applicationId, mldsa === undefined ? [ecdsa] : [ecdsa, mldsa])
  const open = (wanted: MasterKeyAlgorithm) => openMasterKey(parts.recordKeys, pairOf(pairs, wanted))
  return { ecdsa: open(ecdsa), ...(mldsa !== undefined && { mldsa: open(mldsa) }) }
}

/** The refusal where an application should sign, and its keys were altered in the database. */
export const keysAltered = (): PawlError =>
  requestRefused('application', 'its keys were altered in the database, and nothing can be signed')

/** The public halves of all master keys of an application. Makes the pairs that an older application lacks; the application must exist. */
export async function readMasterPublicKeys(
  parts: KeyParts,
  applicationId: string,
): Promise<Record<MasterKeyAlgorithm, Uint8Array>> {
  const pairs = await readMasterKeyPairs(parts, applicationId, MASTER_KEY_ALGORITHMS)
  const publicKeyOf = (algorithm: MasterKeyAlgorithm) => pairOf(pairs, algorithm).publicKey
  return {
    EC_P256: publicKeyOf('EC_P256'),
    EC_P384: publicKeyOf('EC_P384'),
    ML_DSA_65: publicKeyOf('ML_DSA_65'),
    ML_DSA_87: publicKeyOf('ML_DSA_87'),
  }
}

/**
 * The algorithms that an application admits, in the order of v4 §2.1: EC_P256 as long as it admits protocol 3, then those of 4.0.
 * Empty for an unknown application.
 */
export async function findAllowedAlgorithms(db: Db, applicationId: string): Promise<readonly string[]> {
  const application = await findApplication(db, applicationId)
  return application === undefined ? [] : listAllowedAlgorithms(application)
}

/** The same for a row that was read. */
export const listAllowedAlgorithms = (application: {
  /** The algorithms of 4.0; an empty list means all. */
  readonly algorithms: readonly string[]
  readonly isProtocol3Admitted: boolean
}): readonly AdmittedAlgorithm[] => [
  ...(application.isProtocol3Admitted ? (['EC_P256'] as const) : []),
  ...listV4Algorithms(application.algorithms),
]

/** All algorithms of the server, which are those of an application without restrictions. */
export const SERVED_ALGORITHMS: readonly AdmittedAlgorithm[] = ['EC_P256', ...V4_ALGORITHMS]

/** The algorithms of 4.0 that a stored list admits. */
export const listV4Algorithms = (stored: readonly string[]): readonly AdmittedAlgorithm[] =>
  stored.length === 0 ? V4_ALGORITHMS : V4_ALGORITHMS.filter((name) => stored.includes(name))

/**
 * Reads the existing pairs, and makes those that are missing. When two requests make one at the same time, both use the one that was stored
 * first.
 */
async function readMasterKeyPairs(
  parts: KeyParts,
  applicationId: string,
  wanted: readonly MasterKeyAlgorithm[],
): Promise<MasterKeyPairRow[]> {
  const stored = await findMasterKeyPairs(parts.db, applicationId, wanted)
  const missing = wanted.filter((algorithm) => !stored.some((pair) => pair.algorithm === algorithm))
  if (missing.length === 0) return stored
  await insertMasterKeys(parts, applicationId, await createMasterKeys(missing))
  return findMasterKeyPairs(parts.db, applicationId, wanted)
}

function pairOf(pairs: readonly MasterKeyPairRow[], algorithm: MasterKeyAlgorithm): MasterKeyPairRow {
  const pair = pairs.find((candidate) => candidate.algorithm === algorithm)
  if (pair === undefined) throw new TypeError(`no master key pair ${algorithm} after it was stored`)
  return pair
}

async function createMasterKey(algorithm: MasterKeyAlgorithm): Promise<NewMasterKey> {
  if (algorithm === 'ML_DSA_65' || algorithm === 'ML_DSA_87') {
    const { publicKey, privateKey } = await inThread('generateMlDsaKeyPair', ML_DSA[algorithm])
    return { algorithm, publicKey, exported: exportMlDsaSeed(privateKey) }
  }
  const { publicKey, privateKey } = await inThread('generateKeyPair', CURVES[algorithm])
  return { algorithm, publicKey, exported: exportPrivateKey(privateKey) }
}

/** Opens the private key of a pair. It is remembered as long as its row stays the same. */
export const openMasterKey = (recordKeys: RecordKeys, { masterKeyPairId, algorithm, privateKey }: MasterKeyPairRow): KeyObject =>
  recordKeys.openCached(places.masterPrivateKey(masterKeyPairId), privateKey, (exported) => ({
    key:
      algorithm === 'ML_DSA_65' || algorithm === 'ML_DSA_87'
        ? importMlDsaSeed(ML_DSA[algorithm], exported)
        : importPrivateKey(exported),
  })).key

const MASTER_KEY_ALGORITHMS = ['EC_P256', 'EC_P384', 'ML_DSA_65', 'ML_DSA_87'] as const
const CURVES = { EC_P256: 'P-256', EC_P384: 'P-384' } as const
const ML_DSA = { ML_DSA_65: 'ML-DSA-65', ML_DSA_87: 'ML-DSA-87' } as const
const SIGNERS: Record<
  'EC_P256' | (typeof V4_ALGORITHMS)[number],
  { readonly ecdsa: MasterKeyAlgorithm; readonly mldsa?: MasterKeyAlgorithm }
> = {
  EC_P256: { ecdsa: 'EC_P256' },
  EC_P384: { ecdsa: 'EC_P384' },
  EC_P384_ML_L3: { ecdsa: 'EC_P384', mldsa: 'ML_DSA_65' },
  EC_P384_ML_L5: { ecdsa: 'EC_P384', mldsa: 'ML_DSA_87' },
}
