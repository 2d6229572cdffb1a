// Whole lives of activations (v4 §4 to §10): every request is read, every answer made again from the server's given choices.
import { expect } from 'vitest'
import { publicKeyOf } from '../../src/crypto/key.ts'
import { mlDsaPublicKeyOf } from '../../src/crypto/mldsa.ts'
import { toBase64 } from '../../src/lib/base64.ts'
import { utf8 } from '../../src/lib/bytes.ts'
import type { EnvelopeContext, OpenedEnvelope } from '../../src/protocol/protocol.ts'
import { composeSignedData } from '../../src/protocol/wire/request-data.ts'
import { settleFactorKeys } from '../../src/protocol/v4/factor-keys.ts'
import { activationFingerprint } from '../../src/protocol/v4/fingerprint.ts'
import { type ActivationKeys, v4 } from '../../src/protocol/v4/index.ts'
import { parsePublicKeys } from '../../src/protocol/v4/key-pairs.ts'
import {
  createInitialActivationSecret,
  deriveActivationKeys,
  importKdfKey,
  VAULT_KEYS,
  type VaultKeyIdentifier,
} from '../../src/protocol/v4/key-schedule.ts'
import { parseAlgorithm } from '../../src/protocol/v4/shared-secret.ts'
import { composeStatusBlob } from '../../src/protocol/v4/status-blob.ts'
import { agree, newKemPair, type PhoneAlgorithm } from '../../phone/v4/crypto.ts'
import { deriveTree, exchangeTemporaryKey, expectEphemeral, parseBytes, readSigningKeys } from './v4-keys.ts'
import { readStatus } from './v4-requests.ts'
import { bytes, has, integer, isMembers, list, type Members, members, optional, parseBody, text, toText } from './vector.ts'

const SCHEMES = ['PowerAuth']

/** What the server knows while it goes through the steps. */
interface Story {
  readonly vector: Members
  readonly applicationSecret: string
  activationId: string | undefined
  keyActivationSecret: Uint8Array | undefined
  /** As it is stored, factor keys included. */
  activationSecret: Uint8Array | undefined
  ctrData: Uint8Array
  counter: number
  readonly temporaryKeys: Map<string, Uint8Array>
  token: Members | undefined
}

async function replay(vector: Members): Promise<Members> {
  const story: Story = {
    vector,
    applicationSecret: text(vector, 'applicationSecret'),
    activationId: optional(text, vector, 'activationId'),
    keyActivationSecret: undefined,
    activationSecret: undefined,
    ctrData: new Uint8Array(0),
    counter: 0,
    temporaryKeys: new Map(),
    token: undefined,
  }
  for (const step of list(vector, 'steps')) {
    if (!isMembers(step)) throw new TypeError('a step is no object')
    // What the operator does is no request.
    if (has(step, 'operator')) continue
    const serve = STEPS[text(step, 'path')]
    if (!serve) throw new Error(`no handler for ${text(step, 'path')}`)
    await serve(story, step)
  }
  const { keyActivationSecret, applicationSecret, counter, ctrData } = story
  return {
    derived: keyActivationSecret && deriveTree(keyActivationSecret, applicationSecret),
    ...(has(vector, 'finalCounter') && { finalCounter: counter, finalCtrData: ctrData }),
  }
}

const keysOf = ({ activationSecret }: Story): ActivationKeys => {
  if (!activationSecret) throw new Error('the activation has no secret yet')
  return deriveActivationKeys(activationSecret)
}

const readJson = (from: Members, key: string): Members => {
  const value = parseBody(from, key)
  if (!isMembers(value)) throw new TypeError(`${key} is not an object`)
  return value
}

const parseObject = (plaintext: Uint8Array): Members => JSON.parse(toText(plaintext)) as Members

async function keystore(story: Story, step: Members): Promise<void> {
  const { vector } = story
  const jwt = (from: string) =>
    text(members(readJson(step, from), from === 'requestBody' ? 'requestObject' : 'responseObject'), 'jwt')
  const isInActivationScope = text(step, 'step').includes('activation scope')
  const signing = members(vector, isInActivationScope ? 'serverPrivateKeys' : 'masterPrivateKeys')
  const { secret, claims } = await exchangeTemporaryKey({
    requestJwt: jwt('requestBody'),
    responseJws: jwt('responseBody'),
    applicationSecret: story.applicationSecret,
    keyActivationSecret: isInActivationScope ? story.keyActivationSecret : undefined,
    clientEcPrivateKey: bytes(step, 'clientEcPrivateKey').subarray(-48),
    clientMlKemSeed: optional(bytes, step, 'clientMlKemSeed'),
    serverMlKemRandomness: optional(bytes, step, 'serverMlKemRandomness'),
    signingKeys: readSigningKeys(vector['algorithm'], bytes(signing, 'ecdsa'), optional(bytes, signing, 'mldsaSeed')),
    time: optional(integer, step, 'time'),
  })
  expect([claims['sub'], toBase64(secret)]).toEqual([text(step, 'temporaryKeyId'), text(step, 'temporarySharedSecret')])
  story.temporaryKeys.set(text(step, 'temporaryKeyId'), secret)
}

function open(story: Story, context: Omit<EnvelopeContext, 'version'>, json: unknown): OpenedEnvelope {
  const envelope = v4.parseEnvelope({ version: '4.0', ...context }, json)
  const secret = story.temporaryKeys.get(envelope?.temporaryKeyId ?? '')
  const activationKeys = context.scope === 'ACTIVATION_SCOPE' ? keysOf(story) : undefined
  const { applicationSecret } = story
  const opened = secret && envelope?.open({ applicationSecret, envelopeKey: importKdfKey(secret), activationKeys })
  if (!opened) throw new Error(`the envelope for ${context.sharedInfo1} does not open`)
  return opened
}

/** Opens the body of a step, and seals the given answer to the given bytes. */
function exchangeEnvelope(
  story: Story,
  step: Members,
  sharedInfo1: string,
  names = { request: 'requestPlaintext', response: 'responsePlaintext' },
): OpenedEnvelope {
  const scope =
    sharedInfo1.endsWith('/application') || sharedInfo1 === '/pa/upgrade/start' ? 'APPLICATION_SCOPE' : 'ACTIVATION_SCOPE'
  const activationId = scope === 'ACTIVATION_SCOPE' ? story.activationId : undefined
  expectHeader(story, step, activationId)
  const context = { scope, sharedInfo1, applicationKey: text(story.vector, 'applicationKey'), activationId } as const
  const opened = open(story, context, readJson(step, 'requestBody'))
  expect(toText(opened.plaintext)).toBe(text(step, names.request))
  const response = readJson(step, 'responseBody')
  const answer = { nonce: new Uint8Array(16), timestamp: integer(response, 'timestamp') }
  expect(opened.seal(utf8(text(step, names.response)), answer)).toEqual(response)
  return opened
}

/** The headers say where the request belongs. */
function expectHeader({ vector }: Story, step: Members, activationId: string | undefined): void {
  const headers = members(step, 'headers')
  const encryption = optional(text, headers, 'X-PowerAuth-Encryption')
  if (encryption === undefined) return
  const parsed = v4.parseEncryptionHeader(encryption, SCHEMES)
  expect(parsed).toEqual({ version: '4.0', applicationKey: text(vector, 'applicationKey'), activationId })
}

/** Verifies the code of a step and moves counter and factor keys. */
function authenticate(story: Story, step: Members, resourceId: string, body: Uint8Array): void {
  const authentication = members(step, 'authentication')
  const header = v4.parseAuthorizationHeader(text(members(step, 'headers'), 'X-PowerAuth-Authorization'), SCHEMES)
  if (!header) throw new Error('the authorization header does not parse')
  expect(header.activationId).toBe(story.activationId)
  const [covered = new Uint8Array(0)] = v4.coveredBodies({ method: 'POST', body, query: undefined })
  const { applicationSecret } = story
  const signedData = composeSignedData({ method: 'POST', resourceId, nonce: header.nonce, body: covered, applicationSecret })
  expect(toText(signedData)).toBe(text(authentication, 'data'))
  expect(toBase64(story.ctrData)).toBe(text(authentication, 'ctrData'))
  if (has(authentication, 'counter')) expect(story.counter).toBe(integer(authentication, 'counter'))
  const { move } = v4.verifyAuthenticationCode(keysOf(story), story.ctrData, signedData, header, 20)
  expect(move?.steps).toBe(1)
  if (!move) return
  story.ctrData = move.ctrData
  story.counter += move.steps
  story.activationSecret = move.activationSecret ?? story.activationSecret
}

const signed =
  (resourceId: string) =>
  (story: Story, step: Members): void =>
    authenticate(story, step, resourceId, utf8(text(step, 'requestBody')))

/** The code covers the envelope (v4 §5.7). */
const encryptedSigned =
  (resourceId: string, check: (story: Story, step: Members) => void = () => undefined) =>
  (story: Story, step: Members): void => {
    authenticate(story, step, resourceId, utf8(text(step, 'requestBody')))
    exchangeEnvelope(story, step, resourceId)
    check(story, step)
  }

/** Agreement on the secret of an activation, at activation and upgrade. */
function adoptKeys(story: Story, step: Members, request: Members, response: Members, ctrDataName: string): void {
  const algorithm = parseAlgorithm(story.vector['algorithm'])
  const sharedSecretRequest = v4.parseSharedSecretRequest(request['sharedSecretRequest'])
  if (!algorithm || !sharedSecretRequest) throw new Error('the shared secret request is not well-formed')
  const secret = agreeOn(story, step, members(response, 'sharedSecretResponse'))
  expect(toBase64(secret)).toBe(text(step, 'keyActivationSecret'))
  story.keyActivationSecret = secret
  story.activationSecret = createInitialActivationSecret(secret)
  story.ctrData = bytes(step, ctrDataName)
  expect(text(response, 'ctrData')).toBe(toBase64(story.ctrData))
  story.counter = optional(integer, step, 'numericCounter') ?? 0
  const [device, server] = [
    parsePublicKeys(algorithm, request['devicePublicKeys']),
    parsePublicKeys(algorithm, response['serverPublicKeys']),
  ]
  if (!device || !server) throw new Error('the public keys are not valid')
  const serverPrivate = members(story.vector, 'serverPrivateKeys')
  const keys = readSigningKeys(algorithm, bytes(serverPrivate, 'ecdsa'), optional(bytes, serverPrivate, 'mldsaSeed'))
  expect(toBase64(publicKeyOf(keys.ecdsa))).toBe(toBase64(server.ecdsa))
  if (keys.mldsa) expect(toBase64(mlDsaPublicKeyOf(keys.mldsa))).toBe(toBase64(server.mldsa ?? new Uint8Array(0)))
  expect(activationFingerprint(algorithm, device, story.activationId ?? '', server)).toBe(text(step, 'fingerprint'))
}

/** The phone's side of an agreement with its keys of the step; steps that give none are opened by what the server made. */
function agreeOn({ vector }: Story, step: Members, response: Members): Uint8Array {
  const algorithm = text(vector, 'algorithm') as PhoneAlgorithm
  const encapsulatedKeys = list(response, 'encapsulatedKeys').map(String)
  if (has(step, 'serverEphemeralPrivateKey')) expectEphemeral(bytes(step, 'serverEphemeralPrivateKey'), encapsulatedKeys[0])
  const pair = newKemPair(algorithm, bytes(step, 'clientEcPrivateKey').subarray(-48), optional(bytes, step, 'clientMlKemSeed'))
  return agree(algorithm, pair, { salt: text(response, 'salt'), encapsulatedKeys })
}

function createActivation(story: Story, step: Members): void {
  const names = { request: 'layer1Request', response: 'layer1Response' }
  const outer = exchangeEnvelope(story, step, '/pa/generic/application', names)
  const scope = 'APPLICATION_SCOPE'
  const context = {
    scope,
    sharedInfo1: '/pa/activation',
    applicationKey: text(story.vector, 'applicationKey'),
    activationId: undefined,
  } as const
  const inner = open(story, context, parseObject(outer.plaintext)['activationData'])
  expect(toText(inner.plaintext)).toBe(text(step, 'layer2Request'))
  const sealed = members(readJson(step, 'layer1Response'), 'activationData')
  const answer = { nonce: new Uint8Array(16), timestamp: integer(sealed, 'timestamp') }
  expect(inner.seal(utf8(text(step, 'layer2Response')), answer)).toEqual(sealed)
  const response = readJson(step, 'layer2Response')
  story.activationId = text(step, 'activationId')
  expect(text(response, 'activationId')).toBe(story.activationId)
  adoptKeys(story, step, readJson(step, 'layer2Request'), response, 'ctrData')
}

function startUpgrade(story: Story, step: Members): void {
  exchangeEnvelope(story, step, '/pa/upgrade/start')
  adoptKeys(story, step, readJson(step, 'requestPlaintext'), readJson(step, 'responsePlaintext'), 'ctrDataV4')
}

function readStatusStep(story: Story, step: Members): void {
  exchangeEnvelope(story, step, '/pa/generic/activation')
  const given = members(step, 'status')
  const blob = bytes(readJson(step, 'responsePlaintext'), 'activationStatus')
  const status = readStatus(given, story.counter, blob[15] ?? 0)
  expect([story.counter & 0xff, toBase64(story.ctrData)]).toEqual([integer(given, 'counterByte'), text(given, 'ctrData')])
  expect(toBase64(composeStatusBlob(keysOf(story), status, blob.subarray(8, 12)))).toBe(toBase64(blob))
}

/** New factor keys: the phone's keys of these steps are not given, so the agreement is checked by the codes that follow. */
const replaceFactorKey =
  (name: string, replace: (stored: Uint8Array, key: Uint8Array) => Uint8Array) =>
  (story: Story, step: Members): void => {
    const request = v4.parseSharedSecretRequest(readJson(step, 'requestPlaintext'))
    expect(request?.algorithm).toBe(text(story.vector, 'algorithm'))
    const response = readJson(step, 'responsePlaintext')
    expectEphemeral(bytes(step, 'serverEphemeralPrivateKey'), list(response, 'encapsulatedKeys')[0])
    story.activationSecret = replace(keysOf(story).activationSecret, bytes(step, name))
  }

function unlockVault(story: Story, step: Members): void {
  const identifier = text(readJson(step, 'requestPlaintext'), 'keyIdentifier')
  expect(Object.keys(VAULT_KEYS)).toContain(identifier)
  const key = v4.deriveVaultKey(keysOf(story), identifier as VaultKeyIdentifier)
  expect(toBase64(key)).toBe(text(readJson(step, 'responsePlaintext'), 'vaultEncryptionKey'))
}

function readDetail(story: Story, step: Members): void {
  exchangeEnvelope(story, step, '/pa/generic/activation')
  const header = v4.parseTokenHeader(text(members(step, 'headers'), 'X-PowerAuth-Token'), SCHEMES)
  const secret = parseBytes(story.token?.['tokenSecret'])
  expect(header?.tokenId).toBe(story.token?.['tokenId'])
  expect(header && v4.verifyTokenDigest(secret, header)).toBe(true)
}

/** The code covers the plaintext (v4 §5.7). */
function rename(story: Story, step: Members): void {
  const { plaintext } = exchangeEnvelope(story, step, '/pa/generic/activation')
  authenticate(story, step, '/pa/activation/rename', plaintext)
}

const STEPS: Readonly<Record<string, (story: Story, step: Members) => void | Promise<void>>> = {
  '/pa/v4/keystore/create': keystore,
  '/pa/v4/activation/create': createActivation,
  '/pa/v4/activation/status': readStatusStep,
  '/pa/v4/activation/confirm': signed('/pa/activation/confirm'),
  '/pa/v4/activation/remove': signed('/pa/activation/remove'),
  '/pa/v4/activation/detail': readDetail,
  '/pa/v4/activation/rename': rename,
  '/pa/v4/auth/validate': signed('/pa/auth/validate'),
  '/pa/v4/token/create': encryptedSigned('/pa/token/create', (story, step) => {
    story.token = readJson(step, 'responsePlaintext')
  }),
  '/pa/v4/vault/unlock': encryptedSigned('/pa/vault/unlock', unlockVault),
  '/pa/v4/password/change': encryptedSigned(
    '/pa/password/change',
    replaceFactorKey('knowledgeFactorKeyNext', v4.replaceKnowledgeKey),
  ),
  '/pa/v4/biometry/add': encryptedSigned('/pa/biometry/add', replaceFactorKey('biometryFactorKey', v4.addBiometryKey)),
  '/pa/v4/biometry/remove': (story, step) => {
    signed('/pa/biometry/remove')(story, step)
    story.activationSecret = v4.removeBiometryKeys(keysOf(story).activationSecret)
    expect(settleFactorKeys(story.activationSecret, 'biometry', 0)).toBeUndefined()
  },
  '/pa/v4/upgrade/start': startUpgrade,
  '/pa/v4/upgrade/confirm': signed('/pa/upgrade/confirm'),
}

export const v4TranscriptFamilies = { transcript: replay, upgrade: replay }
