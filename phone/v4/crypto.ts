// The cryptography of a phone of protocol 4.0, written from the specification without code of the server (v4 §1 to §3, §7, §8).
import * as nodeCrypto from 'node:crypto'
import { createCipheriv, createECDH, createHash, createHmac } from 'node:crypto'
import { ml_dsa65, ml_dsa87 } from '@noble/post-quantum/ml-dsa.js'
import { ml_kem1024, ml_kem768 } from '@noble/post-quantum/ml-kem.js'
import { b64, bigEndian, bytesOf, holdsEcdsa, join, newKeyPair, random, sized, unb64 } from '../v3/crypto.ts'

export const PHONE_ALGORITHMS = ['EC_P384', 'EC_P384_ML_L3', 'EC_P384_ML_L5'] as const
export type PhoneAlgorithm = (typeof PHONE_ALGORITHMS)[number]

const none = new Uint8Array(0)

/** KMAC-256 (v4 §1.2). */
export const kmac = (key: Uint8Array, data: Uint8Array, custom: string, length = 32): Uint8Array =>
  createMac('kmac-256', key, { customization: bytesOf(custom), outputLength: length })
    .update(data)
    .final()

/** The result of createMac, which Node 26 documents and its published types lack. */
interface Kmac {
  readonly update: (data: Uint8Array) => Kmac
  readonly final: () => Uint8Array
}
const { createMac } = nodeCrypto as unknown as {
  readonly createMac: (
    algorithm: 'kmac-256',
    key: Uint8Array,
    options: { customization: Uint8Array; outputLength: number },
  ) => Kmac
}

export const sha3 = (bytes: Uint8Array): Uint8Array => createHash('sha3-256').update(bytes).digest()

/** KDF (v4 §1.3). */
export const kdf = (key: Uint8Array, label: string, diversifier: Uint8Array = none, length = 32): Uint8Array =>
  kmac(key, sized(bytesOf(label), diversifier), 'PA4KDF', length)

/** AES-256-CTR with the counter part at zero (v4 §1.5). */
const aesCtr = (key: Uint8Array, nonce: Uint8Array, bytes: Uint8Array): Uint8Array =>
  createCipheriv('aes-256-ctr', key, join(nonce, new Uint8Array(4))).update(bytes)

/** nonce ‖ tag ‖ ciphertext (v4 §1.5). */
export function sealAead(
  key: Uint8Array,
  keyContext: Uint8Array,
  nonce: Uint8Array,
  associatedData: Uint8Array,
  plaintext: Uint8Array,
): Uint8Array {
  const ciphertext = aesCtr(kdf(key, 'aead/enc', keyContext), nonce, plaintext)
  const tag = kmac(kdf(key, 'aead/mac', keyContext), join(nonce, associatedData, ciphertext), 'PA4MAC-AEAD')
  return join(nonce, tag, ciphertext)
}

/** The inverse of sealAead; throws when the tag is wrong. */
export function openAead(key: Uint8Array, keyContext: Uint8Array, associatedData: Uint8Array, sealed: Uint8Array): Uint8Array {
  const [nonce, tag, ciphertext] = [sealed.subarray(0, 12), sealed.subarray(12, 44), sealed.subarray(44)]
  const expected = kmac(kdf(key, 'aead/mac', keyContext), join(nonce, associatedData, ciphertext), 'PA4MAC-AEAD')
  if (tag.length !== 32 || Buffer.compare(tag, expected) !== 0) throw new Error('the tag is wrong')
  return aesCtr(kdf(key, 'aead/enc', keyContext), nonce, ciphertext)
}

/** Parameters of the second half of a hybrid algorithm (v4 §1.8, §2.1). */
const HYBRIDS = {
  EC_P384_ML_L3: {
    kem: ml_kem768,
    kemHeader: '308204b2300b0609608648016503040402038204a100',
    dsa: ml_dsa65,
    dsaName: 'ML-DSA-65',
    dsaHeader: '308207b2300b0609608648016503040312038207a100',
  },
  EC_P384_ML_L5: {
    kem: ml_kem1024,
    kemHeader: '30820632300b06096086480165030404030382062100',
    dsa: ml_dsa87,
    dsaName: 'ML-DSA-87',
    dsaHeader: '30820a32300b060960864801650304031303820a2100',
  },
} as const

const hybridOf = (algorithm: PhoneAlgorithm) => (algorithm === 'EC_P384' ? undefined : HYBRIDS[algorithm])
const withHeader = (header: string, raw: Uint8Array): Uint8Array => join(Buffer.from(header, 'hex'), raw)

/** A P-384 key pair, in hybrids with a pair of ML-KEM (to decapsulate) or of ML-DSA (to sign). */
export interface PhonePair {
  /** 48 bytes. */
  readonly ecPrivate: Uint8Array
  /** Points of 97 and 49 bytes. */
  readonly ecPublic: Uint8Array
  readonly ecCompressed: Uint8Array
  /** ML-KEM: d ‖ z, ML-DSA: ξ. */
  readonly seed: Uint8Array | undefined
  /** SubjectPublicKeyInfo of the ML-KEM or ML-DSA key. */
  readonly spki: Uint8Array | undefined
}

function newEcPair(given?: Uint8Array) {
  const { privateKey, uncompressed, compressed } = newKeyPair(given, 'P-384')
  return { ecPrivate: privateKey, ecPublic: uncompressed, ecCompressed: compressed }
}

/** Keys to encapsulate for (v4 §2.2), fresh or of given secrets. */
export function newKemPair(algorithm: PhoneAlgorithm, ecPrivate?: Uint8Array, seed: Uint8Array = random(64)): PhonePair {
  const hybrid = hybridOf(algorithm)
  const spki = hybrid && withHeader(hybrid.kemHeader, hybrid.kem.keygen(seed).publicKey)
  return { ...newEcPair(ecPrivate), seed: hybrid && seed, spki }
}

/** Keys that sign for the device (v4 §3.2), fresh or of given secrets. */
export function newSigningPair(algorithm: PhoneAlgorithm, ecPrivate?: Uint8Array, seed: Uint8Array = random(32)): PhonePair {
  const hybrid = hybridOf(algorithm)
  const spki = hybrid && withHeader(hybrid.dsaHeader, hybrid.dsa.keygen(seed).publicKey)
  return { ...newEcPair(ecPrivate), seed: hybrid && seed, spki }
}

/** A SharedSecretRequest (v4 §2.2). */
export const sharedSecretRequest = (algorithm: PhoneAlgorithm, pair: PhonePair, compressed = false) => ({
  algorithm,
  encapsulationKeys: [compressed ? pair.ecCompressed : pair.ecPublic, ...(pair.spki ? [pair.spki] : [])].map(b64),
})

export interface SharedSecretResponse {
  readonly salt: string
  readonly encapsulatedKeys: readonly string[]
}

/** Decapsulates the secrets of a SharedSecretResponse: that of DHKEM, then in hybrids that of ML-KEM (v4 §2.3). */
export function decapsulate(algorithm: PhoneAlgorithm, pair: PhonePair, response: SharedSecretResponse): readonly Uint8Array[] {
  const hybrid = hybridOf(algorithm)
  const [enc = none, ciphertext = none, ...rest] = response.encapsulatedKeys.map(unb64)
  if (rest.length > 0 || enc.length !== 97 || ciphertext.length > 0 !== (hybrid !== undefined)) {
    throw new Error('the answer has not the encapsulated keys of its algorithm')
  }
  const z = dhkemSecret(pair, enc)
  return hybrid && pair.seed ? [z, hybrid.kem.decapsulate(ciphertext, hybrid.kem.keygen(pair.seed).secretKey)] : [z]
}

/** 48 bytes: HKDF-Extract with a salt as the key, and the first block of HKDF-Expand (RFC 5869 §2). */
const hmacSha384 = (key: Uint8Array, bytes: Uint8Array): Uint8Array => createHmac('sha384', key).update(bytes).digest()

/** The result of DHKEM and the export of HPKE for the phone's key pair (v4 §2.3), 48 bytes. */
function dhkemSecret(pair: PhonePair, enc: Uint8Array): Uint8Array {
  const ecdh = createECDH('secp384r1')
  ecdh.setPrivateKey(pair.ecPrivate)
  const dh = ecdh.computeSecret(enc)
  const kem = join(bytesOf('KEM'), Uint8Array.of(0, 0x11))
  const hpke = join(bytesOf('HPKE'), Uint8Array.of(0, 0x11, 0, 2, 0xff, 0xff))
  const label = bytesOf('DHKEM-P384')
  const labeledExtract = (suite: Uint8Array, salt: Uint8Array, name: string, ikm: Uint8Array): Uint8Array =>
    hmacSha384(salt, join(bytesOf('HPKE-v1'), suite, bytesOf(name), ikm))
  const labeledExpand = (suite: Uint8Array, prk: Uint8Array, name: string, info: Uint8Array): Uint8Array =>
    hmacSha384(prk, join(Uint8Array.of(0, 48), bytesOf('HPKE-v1'), suite, bytesOf(name), info, Uint8Array.of(1)))
  const eae = labeledExtract(kem, none, 'eae_prk', dh)
  const shared = labeledExpand(kem, eae, 'shared_secret', join(enc, pair.ecPublic))
  const context = join(
    Uint8Array.of(0),
    labeledExtract(hpke, none, 'psk_id_hash', none),
    labeledExtract(hpke, none, 'info_hash', label),
  )
  const exporter = labeledExpand(hpke, labeledExtract(hpke, shared, 'secret', none), 'exp', context)
  return labeledExpand(hpke, exporter, 'sec', label)
}

/** The shared secret of an answer, 32 bytes (v4 §2.4). */
export function agree(algorithm: PhoneAlgorithm, pair: PhonePair, response: SharedSecretResponse): Uint8Array {
  const salt = unb64(response.salt)
  if (salt.length !== 32) throw new Error('the salt has not 32 bytes')
  const secrets = sized(...decapsulate(algorithm, pair, response))
  const other = sized(bytesOf(`shared-secret/${algorithm}`), bytesOf('4.0'))
  return kmac(salt, join(bigEndian(1, 4), secrets, other), 'KDF')
}

/** All keys of one activation, 32 bytes each (v4 §3.1). */
export interface PhoneV4Keys {
  readonly secret: Uint8Array
  readonly possession: Uint8Array
  /** password/change replaces this key; biometry/add replaces the next one. */
  readonly knowledge: Uint8Array
  readonly biometry: Uint8Array
  readonly kekDevicePrivate: Uint8Array
  readonly kdkAppVaultKnowledge: Uint8Array
  readonly kdkAppVault2fa: Uint8Array
  readonly macCtrData: Uint8Array
  readonly macStatus: Uint8Array
  readonly macTemporaryKey: Uint8Array
  readonly macPersonalizedData: Uint8Array
  readonly sharedInfo2: Uint8Array
}

/** Everything derived from KEY_ACTIVATION_SECRET (v4 §3.1). */
export function deriveV4Keys(secret: Uint8Array): PhoneV4Keys {
  const [auth, vault, util] = [kdf(secret, 'auth'), kdf(secret, 'vault'), kdf(secret, 'util')]
  return {
    secret,
    possession: kdf(auth, 'auth/possession'),
    knowledge: kdf(auth, 'auth/knowledge'),
    biometry: kdf(auth, 'auth/biometry'),
    kekDevicePrivate: kdf(vault, 'vault/kek-device-private'),
    kdkAppVaultKnowledge: kdf(vault, 'vault/kdk-app-vault-knowledge'),
    kdkAppVault2fa: kdf(vault, 'vault/kdk-app-vault-2fa'),
    macCtrData: kdf(util, 'util/mac/ctr-data'),
    macStatus: kdf(util, 'util/mac/status'),
    macTemporaryKey: kdf(util, 'util/mac/get-act-temp-key'),
    macPersonalizedData: kdf(util, 'util/mac/personalized-data'),
    sharedInfo2: kdf(util, 'util/key-e2ee-sh2'),
  }
}

/** Key of a temporary key request in application scope (v4 §4.1). */
export const applicationMacKey = (applicationSecret: string): Uint8Array =>
  kdf(unb64(applicationSecret), 'util/mac/get-app-temp-key')

/** The counter value after `ctrData` (v4 §7.2). */
export const nextV4CtrData = (ctrData: Uint8Array): Uint8Array => sha3(ctrData)

/** Components of a code, 32 bytes each (v4 §7.3). */
export const codeComponents = (keys: readonly Uint8Array[], ctrData: Uint8Array, data: Uint8Array): readonly Uint8Array[] =>
  keys.map((_, i) => {
    let chained: Uint8Array = none
    for (const key of keys.slice(0, i + 1)) chained = kmac(key, join(ctrData, chained), 'PA4CODE')
    return kmac(chained, data, 'PA4CODE')
  })

/** The text form of a code (v4 §7.3). */
export const onlineCode = (keys: readonly Uint8Array[], ctrData: Uint8Array, data: Uint8Array): string =>
  b64(join(...codeComponents(keys, ctrData, data)))

/** Decimal groups of a code (v4 §7.3). */
export const offlineCode = (keys: readonly Uint8Array[], ctrData: Uint8Array, data: Uint8Array, length = 8): string =>
  codeComponents(keys, ctrData, data)
    .map((component) => lastDigits(component, length))
    .join('-')

/** Digest of a token header, 32 bytes (v4 §9.9). */
export const tokenV4Digest = (secret: Uint8Array, nonce: Uint8Array, timestamp: string): Uint8Array =>
  kmac(secret, join(nonce, bytesOf(`&${timestamp}&4.0`)), 'PA4DIGEST')

/** Fields of a status blob (v4 §9.4). */
export interface V4StatusBlob {
  readonly state: number
  readonly currentVersion: number
  readonly upgradeVersion: number
  readonly flags: number
  readonly ctrByte: number
  readonly failedAttempts: number
  readonly maxFailedAttempts: number
  readonly lookAhead: number
  readonly ctrDataHash: Uint8Array
}

/** Reads a status blob; throws when length, magic value or MAC are wrong. */
export function openV4StatusBlob(keys: Pick<PhoneV4Keys, 'macStatus'>, blob: Uint8Array): V4StatusBlob {
  const data = Buffer.from(blob.subarray(0, 48))
  const isRight = blob.length === 80 && Buffer.compare(kmac(keys.macStatus, data, 'PA4MAC-STATUS'), blob.subarray(48)) === 0
  if (!isRight || data.readUInt32BE(0) !== 0xdec0ded4) throw new Error('the status blob is not genuine')
  return {
    state: data.readUInt8(4),
    currentVersion: data.readUInt8(5),
    upgradeVersion: data.readUInt8(6),
    flags: data.readUInt8(7),
    ctrByte: data.readUInt8(12),
    failedAttempts: data.readUInt8(13),
    maxFailedAttempts: data.readUInt8(14),
    lookAhead: data.readUInt8(15),
    ctrDataHash: data.subarray(16),
  }
}

/** The hash of a counter value in the status blob (v4 §9.4). */
export const v4CtrDataHash = (keys: Pick<PhoneV4Keys, 'macCtrData'>, ctrData: Uint8Array): Uint8Array =>
  kmac(keys.macCtrData, ctrData, 'PA4MAC-CTR')

/** Public keys of one side: point, and SubjectPublicKeyInfo in hybrids. */
export interface V4PublicKeys {
  readonly ecdsa: Uint8Array
  readonly mldsa?: Uint8Array | undefined
}

/** Eight digits that phone and bank show (v4 §8.6). */
export function v4Fingerprint(
  algorithm: PhoneAlgorithm,
  device: V4PublicKeys,
  activationId: string,
  server: V4PublicKeys,
): string {
  const parts = ({ ecdsa, mldsa }: V4PublicKeys): readonly Uint8Array[] => [minimalX(ecdsa), ...(mldsa ? [mldsa] : [])]
  return lastDigits(sha3(join(bytesOf(algorithm), ...parts(device), bytesOf(activationId), ...parts(server))), 8)
}

function minimalX(publicKey: Uint8Array): Uint8Array {
  const x = publicKey.subarray(1, 49)
  const start = x.findIndex((byte) => byte !== 0)
  return x.subarray(start < 0 ? 48 : start)
}

const lastDigits = (bytes: Uint8Array, length: number): string =>
  String((Buffer.from(bytes).readUInt32BE(bytes.length - 4) & 0x7fffffff) % 10 ** length).padStart(length, '0')

/** A compact JWS with HS384 (v4 §4.1). */
export function hs384Jwt(claims: unknown, key: Uint8Array, header: unknown = { alg: 'HS384' }): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const input = `${part(header)}.${part(claims)}`
  return `${input}.${createHmac('sha384', key).update(input).digest('base64url')}`
}

/** Whether a raw signature of P-384 with SHA-384 holds, or with `format` der an ASN.1 one. Malformed signatures give false. */
export const isEs384 = (
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
  format: 'compact' | 'der' = 'compact',
): boolean => holdsEcdsa('P-384', publicKey, message, signature, format === 'der' ? 'der' : 'ieee-p1363')

/** The claims of a JWS in general serialization. Throws unless it has all signatures of its algorithm, and each holds (v4 §4.3). */
export function openGeneralJws(
  algorithm: PhoneAlgorithm,
  text: string,
  keys: { readonly ecdsa: Uint8Array; readonly mldsa?: Uint8Array | undefined },
): Record<string, unknown> {
  const { payload, signatures, ...rest } = JSON.parse(text) as { payload: string; signatures: Record<string, string>[] }
  const hybrid = hybridOf(algorithm)
  const expected = ['ES384', ...(hybrid ? [hybrid.dsaName] : [])]
  const algorithms = signatures.map((entry) => String(decodeJson(String(entry['protected']))['alg']))
  if (Object.keys(rest).length > 0 || algorithms.join() !== expected.join())
    throw new Error('not the signatures of the algorithm')
  signatures.forEach((entry, i) => {
    const covered = bytesOf(`${entry['protected']}.${payload}`)
    const signature = Buffer.from(String(entry['signature']), 'base64url')
    const holds =
      i === 0 ? isEs384(keys.ecdsa, covered, signature) : hybrid?.dsa.verify(signature, covered, keys.mldsa?.subarray(22) ?? none)
    if (holds !== true) throw new Error(`the signature ${algorithms[i]} does not hold`)
  })
  return decodeJson(payload)
}

const decodeJson = (part: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(part, 'base64url').toString('utf8')) as Record<string, unknown>
