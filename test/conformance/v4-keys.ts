// Vectors of shared secrets, key tree, SDK configuration and temporary keys (v4 §2 to §4).
import { createPrivateKey, decapsulate as nodeDecapsulate } from 'node:crypto'
import { ml_kem1024, ml_kem768 } from '@noble/post-quantum/ml-kem.js'
import { expect } from 'vitest'
import { sendExport } from '../../src/crypto/hpke.ts'
import { type KeyPair, publicKeyOf, readPoint } from '../../src/crypto/key.ts'
import { importMlDsaSeed, mlDsaPublicKeyOf } from '../../src/crypto/mldsa.ts'
import { parseBase64, toBase64 } from '../../src/lib/base64.ts'
import type { SigningKeys } from '../../src/protocol/protocol.ts'
import { deriveSharedInfo2 } from '../../src/protocol/v4/envelope.ts'
import { parseActivationSecret } from '../../src/protocol/v4/factor-keys.ts'
import {
  createInitialActivationSecret,
  deriveActivationKeys,
  deriveKdkAuthenticationCode,
  derivePossessionKey,
  deriveVaultKey,
  importKdfKey,
  kdf,
} from '../../src/protocol/v4/key-schedule.ts'
import { composeSdkConfiguration } from '../../src/protocol/v4/sdk-configuration.ts'
import {
  ALGORITHMS,
  combineSecrets,
  DHKEM_LABEL,
  encapsulateSharedSecret,
  parseAlgorithm,
  parseSharedSecretRequest,
  type SharedSecretRequest,
} from '../../src/protocol/v4/shared-secret.ts'
import { createTemporaryKeyAnswer, deriveRequestKey, parseTemporaryKeyRequest } from '../../src/protocol/v4/temporary-key.ts'
import { agree, decapsulate, newKemPair, openGeneralJws, type PhonePair } from '../../phone/v4/crypto.ts'
import { bytes, has, integer, list, type Members, members, optional, text } from './vector.ts'
import { privateKeyFromScalar } from '../helpers/crypto.ts'

/** A private scalar of public data, which sometimes has a zero byte in front (v4 §1.7). */
const scalar = (from: Members, key: string): Uint8Array => bytes(from, key).subarray(-48)

/** The client's pair; its public keys are those of the request. */
function readClient(request: SharedSecretRequest, ecPrivate: Uint8Array, seed: Uint8Array | undefined): PhonePair {
  const pair = newKemPair(request.algorithm, ecPrivate, seed)
  const [point = new Uint8Array(0), spki] = request.encapsulationKeys
  expect(toBase64(readPoint('P-384', point)?.bytes ?? new Uint8Array(0))).toBe(toBase64(pair.ecPublic))
  expect(spki && toBase64(spki)).toEqual(pair.spki && toBase64(pair.spki))
  return pair
}

function readRequest(json: Members): SharedSecretRequest {
  const request = parseSharedSecretRequest(json)
  if (!request) throw new Error('the request is not well-formed')
  return request
}

/** Both halves of a key agreement on given values, and once more with values of our own. */
async function sharedSecret(vector: Members): Promise<Members> {
  const request = readRequest(members(vector, 'request'))
  const { algorithm } = request
  const response = members(vector, 'response')
  const answer = { salt: text(response, 'salt'), encapsulatedKeys: list(response, 'encapsulatedKeys').map(String) }
  const client = readClient(request, scalar(vector, 'clientEcPrivateKey'), optional(bytes, vector, 'clientMlKemSeed'))
  const ours = await encapsulateSharedSecret(request, new Uint8Array(32))
  expect(ours && toBase64(agree(algorithm, client, ours.response))).toBe(ours && toBase64(ours.secret))

  const secrets = [...decapsulate(algorithm, client, answer)]
  if (has(vector, 'serverEphemeralPrivateKey')) {
    const ephemeral = keyPairOf(scalar(vector, 'serverEphemeralPrivateKey'))
    const sent = sendExport(client.ecPublic, DHKEM_LABEL, DHKEM_LABEL, ephemeral)
    expect(sent && toBase64(sent.enc)).toBe(answer.encapsulatedKeys[0])
    secrets[0] = sent?.exported ?? new Uint8Array(0)
    if (algorithm === 'EC_P384') {
      const same = await encapsulateSharedSecret(request, bytes(response, 'salt'), ephemeral)
      expect(same?.response).toEqual(answer)
      expect(same && toBase64(same.secret)).toBe(text(vector, 'sharedSecret'))
    }
  }
  expectKem(algorithm, client, answer, secrets[1])
  return { secrets, sharedSecret: combineSecrets(algorithm, bytes(response, 'salt'), secrets) }
}

/** The other implementation's secret is OpenSSL's, too. */
function expectKem(
  algorithm: SharedSecretRequest['algorithm'],
  { seed }: PhonePair,
  { encapsulatedKeys: [, ciphertext] }: { encapsulatedKeys: readonly string[] },
  secret: Uint8Array | undefined,
): void {
  const kem = ALGORITHMS.get(algorithm)?.kem
  if (!kem || !seed || ciphertext === undefined || !secret) return
  const asymmetricKeyType = kem === 'ML-KEM-768' ? 'ml-kem-768' : 'ml-kem-1024'
  const key = createPrivateKey({ key: Buffer.from(seed), format: 'raw-seed', asymmetricKeyType })
  expect(nodeDecapsulate(key, Buffer.from(ciphertext, 'base64')).toString('base64')).toBe(toBase64(secret))
}

/** The server's random values give the ciphertext of the vector. */
function expectCiphertext(request: SharedSecretRequest, randomness: Uint8Array, ciphertext: unknown): void {
  const kem = ALGORITHMS.get(request.algorithm)?.kem
  const key = request.encapsulationKeys[1]
  if (!kem || !key) return
  const made = (kem === 'ML-KEM-768' ? ml_kem768 : ml_kem1024).encapsulate(key.subarray(22), randomness)
  expect(toBase64(made.cipherText)).toBe(ciphertext)
}

const keyPairOf = (privateScalar: Uint8Array): KeyPair => {
  const privateKey = privateKeyFromScalar('P-384', privateScalar)
  return { privateKey, publicKey: publicKeyOf(privateKey) }
}

/** The whole tree (v4 §3.1), by the names of the specification. */
export function deriveTree(keyActivationSecret: Uint8Array, applicationSecret: string): Members {
  const root = importKdfKey(keyActivationSecret)
  const stored = createInitialActivationSecret(keyActivationSecret)
  const keys = deriveActivationKeys(stored)
  const { knowledge, biometry } = parseActivationSecret(stored)
  const derive = (parent: string, label: string) => kdf(importKdfKey(kdf(root, parent)), label)
  return {
    KDK_AUTHENTICATION_CODE: kdf(root, 'auth'),
    KEY_AUTHENTICATION_CODE_POSSESSION: derivePossessionKey(deriveKdkAuthenticationCode(root)),
    KEY_AUTHENTICATION_CODE_KNOWLEDGE: knowledge.current,
    KEY_AUTHENTICATION_CODE_BIOMETRY: biometry.current,
    KDK_ENCRYPTION: kdf(root, 'enc'),
    KDK_VAULT: kdf(root, 'vault'),
    KEK_DEVICE_PRIVATE: deriveVaultKey(keys, 'KEK_DEVICE_PRIVATE'),
    KDK_APP_VAULT_KNOWLEDGE: deriveVaultKey(keys, 'KDK_APP_VAULT_KNOWLEDGE'),
    KDK_APP_VAULT_2FA: deriveVaultKey(keys, 'KDK_APP_VAULT_2FA'),
    KDK_UTILITY: kdf(root, 'util'),
    // Keys of MACs are held ready for use, not as bytes; the vectors of what they are used for check them too.
    KEY_MAC_CTR_DATA: derive('util', 'util/mac/ctr-data'),
    KEY_MAC_STATUS: derive('util', 'util/mac/status'),
    KEY_MAC_GET_ACT_TEMP_KEY: keys.keyMacGetActTempKey().export(),
    KEY_MAC_PERSONALIZED_DATA: derive('util', 'util/mac/personalized-data'),
    KEY_E2EE_SHARED_INFO2: derive('util', 'util/key-e2ee-sh2'),
    KDK_APP_UTILITY: derive('util', 'util/app'),
    KEY_MAC_GET_APP_TEMP_KEY: deriveRequestKey(applicationSecret),
    SHARED_INFO_2_APPLICATION: deriveSharedInfo2(
      { scope: 'APPLICATION_SCOPE' },
      { applicationSecret, activationKeys: undefined },
    ),
    SHARED_INFO_2_ACTIVATION: deriveSharedInfo2({ scope: 'ACTIVATION_SCOPE' }, { applicationSecret, activationKeys: keys }),
  }
}

const sdkConfiguration = (vector: Members): Members => ({
  mobileSdkConfig: composeSdkConfiguration({
    applicationKey: bytes(vector, 'applicationKey'),
    applicationSecret: bytes(vector, 'applicationSecret'),
    masterPublicKeys: {
      ...(has(vector, 'masterPublicKeyP256') && { EC_P256: bytes(vector, 'masterPublicKeyP256') }),
      ...(has(vector, 'masterPublicKeyP384') && { EC_P384: bytes(vector, 'masterPublicKeyP384') }),
      ...(has(vector, 'masterPublicKeyMlDsa65') && { ML_DSA_65: bytes(vector, 'masterPublicKeyMlDsa65') }),
      ...(has(vector, 'masterPublicKeyMlDsa87') && { ML_DSA_87: bytes(vector, 'masterPublicKeyMlDsa87') }),
    },
  }),
})

/** Private keys of a side; `prefix` is what stands in front of their names. */
export function readSigningKeys(algorithm: unknown, ecdsa: Uint8Array, seed: Uint8Array | undefined): SigningKeys {
  const known = parseAlgorithm(algorithm)
  const parameterSet = known && ALGORITHMS.get(known)?.signature
  const privateKey = privateKeyFromScalar('P-384', ecdsa.subarray(-48))
  return parameterSet && seed ? { ecdsa: privateKey, mldsa: importMlDsaSeed(parameterSet, seed) } : { ecdsa: privateKey }
}

/** A temporary key of a vector or of a step in a transcript. */
export interface TemporaryKeyCase {
  readonly requestJwt: string
  readonly responseJws: string
  readonly applicationSecret: string
  /** Base64; in activation scope. */
  readonly keyActivationSecret: Uint8Array | undefined
  readonly clientEcPrivateKey: Uint8Array
  readonly clientMlKemSeed: Uint8Array | undefined
  readonly serverMlKemRandomness: Uint8Array | undefined
  readonly signingKeys: SigningKeys
  /** Milliseconds. */
  readonly time: number | undefined
}

/** Reads a request and its answer, and answers the request once more; gives the shared secret of the answer and its claims. */
export async function exchangeTemporaryKey(given: TemporaryKeyCase): Promise<{ secret: Uint8Array; claims: Members }> {
  const request = parseTemporaryKeyRequest(given.requestJwt)
  if (!request) throw new Error('the request does not parse')
  const keys = given.keyActivationSecret && deriveActivationKeys(createInitialActivationSecret(given.keyActivationSecret))
  expect(request.verify(given.applicationSecret, keys)).toBe(true)
  expect(
    request.verify(toBase64(new Uint8Array(16)), keys && deriveActivationKeys(createInitialActivationSecret(Buffer.alloc(32)))),
  ).toBe(false)
  const algorithm = parseAlgorithm(request.algorithm)
  if (!algorithm) throw new Error('the algorithm is none of v4')
  const claimsOfRequest = JSON.parse(Buffer.from(given.requestJwt.split('.')[1] ?? '', 'base64url').toString()) as Members
  const sharedSecretRequest = readRequest(members(claimsOfRequest, 'sharedSecretRequest'))
  const client = readClient(sharedSecretRequest, given.clientEcPrivateKey, given.clientMlKemSeed)
  const { ecdsa, mldsa } = given.signingKeys
  const publicKeys = { ecdsa: publicKeyOf(ecdsa), mldsa: mldsa && mlDsaPublicKeyOf(mldsa) }
  const claims = openGeneralJws(algorithm, given.responseJws, publicKeys)
  const response = members(claims, 'sharedSecretResponse')
  const answer = { salt: text(response, 'salt'), encapsulatedKeys: list(response, 'encapsulatedKeys').map(String) }
  if (given.serverMlKemRandomness) expectCiphertext(sharedSecretRequest, given.serverMlKemRandomness, answer.encapsulatedKeys[1])
  if (given.time !== undefined) expect(integer(claims, 'iat_ms')).toBe(given.time)

  // The given answer, made again from its claims, says the same in the same order; then one of our own.
  const terms = { temporaryKeyId: text(claims, 'sub'), issuedAt: integer(claims, 'iat_ms'), expiresAt: integer(claims, 'exp_ms') }
  const { applicationKey, activationId, challenge } = request
  const whole = { ...terms, applicationKey, activationId, challenge, sharedSecretResponse: answer }
  const again = await createTemporaryKeyAnswer(algorithm, whole, given.signingKeys)
  expect(JSON.stringify(openGeneralJws(algorithm, again, publicKeys))).toBe(JSON.stringify(claims))
  const issued = await request.issue({ ...terms, salt: Buffer.alloc(32, 9) }, given.signingKeys)
  const ours = issued && members(openGeneralJws(algorithm, issued.jwt, publicKeys), 'sharedSecretResponse')
  const opened =
    ours && agree(algorithm, client, { salt: text(ours, 'salt'), encapsulatedKeys: list(ours, 'encapsulatedKeys').map(String) })
  expect(opened && toBase64(opened)).toBe(issued && toBase64(issued.envelopeKey))
  return { secret: combineSecrets(algorithm, bytes(response, 'salt'), decapsulate(algorithm, client, answer)), claims }
}

async function temporaryKey(vector: Members): Promise<Members> {
  const [client, server, signing] = [members(vector, 'client'), members(vector, 'server'), members(vector, 'signingKeys')]
  const { secret, claims } = await exchangeTemporaryKey({
    requestJwt: text(vector, 'requestJwt'),
    responseJws: text(vector, 'responseJws'),
    applicationSecret: text(vector, 'applicationSecret'),
    keyActivationSecret: optional(bytes, vector, 'keyActivationSecret'),
    clientEcPrivateKey: scalar(client, 'ecPrivateKey'),
    clientMlKemSeed: optional(bytes, client, 'mlKemSeed'),
    serverMlKemRandomness: optional(bytes, server, 'mlKemRandomness'),
    signingKeys: readSigningKeys(vector['algorithm'], bytes(signing, 'ecdsaPrivate'), optional(bytes, signing, 'mldsaSeed')),
    time: undefined,
  })
  const tree = has(vector, 'keyActivationSecret')
    ? deriveTree(bytes(vector, 'keyActivationSecret'), text(vector, 'applicationSecret'))
    : undefined
  const request = parseTemporaryKeyRequest(text(vector, 'requestJwt'))
  return {
    applicationKey: request?.applicationKey,
    algorithm: request?.algorithm,
    ...(has(vector, 'activationId') && { activationId: request?.activationId }),
    requestMacKey: tree ? tree['KEY_MAC_GET_ACT_TEMP_KEY'] : deriveRequestKey(text(vector, 'applicationSecret')),
    responseClaims: claims,
    temporarySharedSecret: secret,
  }
}

/** Whether the given ephemeral key makes the given point. */
export function expectEphemeral(privateScalar: Uint8Array, point: unknown): void {
  expect(toBase64(keyPairOf(privateScalar.subarray(-48)).publicKey)).toBe(point)
}

export const parseBytes = (value: unknown): Uint8Array => parseBase64(String(value)) ?? new Uint8Array(0)

export const v4KeyFamilies = {
  'shared-secret-ec-p384': sharedSecret,
  'shared-secret-ec-p384-ml-l3': sharedSecret,
  'shared-secret-ec-p384-ml-l5': sharedSecret,
  'key-tree': (vector: Members) => ({
    derived: deriveTree(bytes(vector, 'keyActivationSecret'), text(vector, 'applicationSecret')),
  }),
  'sdk-configuration': sdkConfiguration,
  'temporary-key': temporaryKey,
}
