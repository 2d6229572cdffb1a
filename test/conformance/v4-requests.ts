// Vectors of envelopes, codes, fingerprints, status, tokens and offline data (v4 §5 to §11).
import { expect } from 'vitest'
import { publicKeyFromPoint } from '../../src/crypto/key.ts'
import { totp as computeTotp, totpStep } from '../../src/domain/operation/proximity.ts'
import { parseBase64, toBase64 } from '../../src/lib/base64.ts'
import { utf8 } from '../../src/lib/bytes.ts'
import { toDecimalCode } from '../../src/protocol/wire/decimal.ts'
import { composeOfflineHead, composeOfflineSignedData } from '../../src/protocol/wire/offline.ts'
import { composeRequestData, composeSignedData } from '../../src/protocol/wire/request-data.ts'
import type { EnvelopeContext, Factors } from '../../src/protocol/protocol.ts'
import { computeComponents, toBinaryCode } from '../../src/protocol/v4/authentication-code.ts'
import { activationFingerprint } from '../../src/protocol/v4/fingerprint.ts'
import { deriveAssociatedData, deriveKeyContext, deriveSharedInfo2, parseEnvelope } from '../../src/protocol/v4/envelope.ts'
import { v4 } from '../../src/protocol/v4/index.ts'
import { parsePublicKeys } from '../../src/protocol/v4/key-pairs.ts'
import {
  advanceCounter,
  createInitialActivationSecret,
  deriveActivationKeys,
  importCodeKey,
  importKdfKey,
  importSharedInfo2Key,
} from '../../src/protocol/v4/key-schedule.ts'
import { createPersonalizedPayload } from '../../src/protocol/v4/offline.ts'
import { parseAlgorithm } from '../../src/protocol/v4/shared-secret.ts'
import { composeStatusBlob, deriveCtrDataHash, layoutStatusBlob } from '../../src/protocol/v4/status-blob.ts'
import { computeTokenDigest } from '../../src/protocol/v4/header.ts'
import { bytes, has, integer, list, type Members, members, optional, text, toText } from './vector.ts'
import { ecdsaVerifyP384 } from '../helpers/crypto.ts'

const SCHEMES = ['PowerAuth']

const envelope =
  (scope: EnvelopeContext['scope']) =>
  (vector: Members): Members => {
    const context: EnvelopeContext = {
      version: '4.0',
      scope,
      sharedInfo1: text(vector, 'sharedInfo1'),
      applicationKey: text(vector, 'applicationKey'),
      activationId: optional(text, vector, 'activationId'),
    }
    const key = optional(bytes, vector, 'keyE2eeSharedInfo2')
    const activationKeys = key && { keyE2eeSharedInfo2: () => importSharedInfo2Key(key) }
    const applicationSecret = text(vector, 'applicationSecret')
    const [nonce, temporaryKeyId] = [bytes(vector, 'nonce'), text(vector, 'temporaryKeyId')]
    const json = {
      temporaryKeyId,
      encryptedData: text(vector, 'requestEncryptedData'),
      nonce: text(vector, 'nonce'),
      timestamp: integer(vector, 'requestTimestamp'),
    }
    const envelopeKey = importKdfKey(bytes(vector, 'temporarySharedSecret'))
    const open = (changed: Members) =>
      parseEnvelope(context, { ...json, ...changed })?.open({ applicationSecret, envelopeKey, activationKeys })
    const opened = open({})
    expect(open({ timestamp: json.timestamp + 1 })).toBeUndefined()
    expect(open({ temporaryKeyId: '00000000-0000-4000-8000-000000000000' })).toBeUndefined()
    const sharedInfo2 = deriveSharedInfo2(context, { applicationSecret, activationKeys })
    const bind = (timestamp: number) => deriveAssociatedData(context, temporaryKeyId, { timestamp, nonce, sharedInfo2 })
    const answeredAt = integer(vector, 'responseTimestamp')
    return {
      sharedInfo2,
      keyContext: deriveKeyContext(context, nonce),
      requestAssociatedData: bind(json.timestamp),
      requestPlaintext: opened && toText(opened.plaintext),
      responseAssociatedData: bind(answeredAt),
      responseEncryptedData: opened?.seal(utf8(text(vector, 'responsePlaintext')), {
        nonce: new Uint8Array(16),
        timestamp: answeredAt,
      })['encryptedData'],
    }
  }

const authenticationCode = (vector: Members): Members => {
  const factorKeys = list(vector, 'factorKeys').map((key) => importCodeKey(parseBase64(String(key)) ?? new Uint8Array(0)))
  const components = computeComponents(factorKeys, bytes(vector, 'ctrData'), bytes(vector, 'data'))
  const lengths = Object.keys(members(vector, 'codeOffline'))
  return {
    components,
    codeOnline: toBinaryCode(components),
    codeOffline: Object.fromEntries(lengths.map((length) => [length, toDecimalCode(components, Number(length))])),
  }
}

const keysOf = (vector: Members) => deriveActivationKeys(createInitialActivationSecret(bytes(vector, 'keyActivationSecret')))

const authenticationHttp = (vector: Members): Members => {
  const keys = keysOf(vector)
  const header = v4.parseAuthorizationHeader(text(vector, 'header'), SCHEMES)
  if (!header) throw new Error('the authorization header does not parse')
  expect([toBase64(header.nonce), header.factors]).toEqual([text(vector, 'nonce'), text(vector, 'type').toUpperCase()])
  const method = text(vector, 'method')
  const [body, query] = [utf8(optional(text, vector, 'body') ?? ''), optional(text, vector, 'query')]
  const [covered = new Uint8Array(0)] = v4.coveredBodies({ method, body, query })
  const request = { method, resourceId: text(vector, 'uriIdentifier'), body: covered }
  const signedData = composeSignedData({ ...request, nonce: header.nonce, applicationSecret: text(vector, 'applicationSecret') })
  const ctrData = bytes(vector, 'ctrData')
  const verify = (data: Uint8Array, lookAhead: number, from = ctrData) =>
    v4.verifyAuthenticationCode(keys, from, data, header, lookAhead).move
  expect(verify(utf8('other'), 20)).toBeUndefined()
  expect(verify(signedData, 20, advanceCounter(ctrData))).toBeUndefined()
  expect(verify(signedData, 0)).toBeUndefined()
  return {
    canonicalBody: toText(covered),
    requestData: composeRequestData({ ...request, nonceBase64: text(vector, 'nonce') }),
    data: toText(signedData),
    code: header.code,
    ctrDataNext: verify(signedData, 1)?.ctrData,
  }
}

const fingerprint = (vector: Members): Members => {
  const algorithm = parseAlgorithm(vector['algorithm'])
  const device = algorithm && parsePublicKeys(algorithm, vector['devicePublicKeys'])
  const server = algorithm && parsePublicKeys(algorithm, vector['serverPublicKeys'])
  if (!device || !server) throw new Error('the keys are not valid')
  return { fingerprint: activationFingerprint(algorithm, device, text(vector, 'activationId'), server) }
}

const STATES = ['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED'] as const

/** The status of a vector or of a step; `ctrData` comes apart, because a step has the counter's byte only. */
export function readStatus(from: Members, counter: number, lookAhead: number) {
  const flags = integer(from, 'flags')
  const state = STATES[integer(from, 'status') - 1]
  if (!state) throw new RangeError('no such state')
  return {
    state,
    currentVersion: integer(from, 'currentVersion'),
    upgradeVersion: integer(from, 'upgradeVersion'),
    isConfirmationPending: (flags & 1) !== 0,
    isUpgradePending: (flags & 2) !== 0,
    isAlgorithmUnsupported: (flags & 4) !== 0,
    isBiometryEnabled: (flags & 8) !== 0,
    counter,
    ctrData: bytes(from, 'ctrData'),
    failedAttempts: integer(from, 'failCount'),
    maxFailedAttempts: integer(from, 'maxFailCount'),
    lookAhead,
  }
}

const statusBlob = (vector: Members): Members => {
  const keys = keysOf(vector)
  const status = readStatus(vector, integer(vector, 'counter'), integer(vector, 'lookAhead'))
  const filler = bytes(vector, 'reserved')
  const blob = composeStatusBlob(keys, status, filler)
  return {
    ctrDataHash: deriveCtrDataHash(keys, status.ctrData),
    statusData: layoutStatusBlob(keys, status, filler),
    statusMac: blob.subarray(48),
    activationStatus: blob,
  }
}

const tokenDigest = (vector: Members): Members => {
  const header = v4.parseTokenHeader(text(vector, 'header'), SCHEMES)
  if (!header) throw new Error('the token header does not parse')
  const secret = bytes(vector, 'tokenSecret')
  expect(v4.verifyTokenDigest(secret, header)).toBe(true)
  expect(v4.verifyTokenDigest(secret, { ...header, timestamp: header.timestamp + 1 })).toBe(false)
  expect(v4.verifyTokenDigest(new Uint8Array(32), header)).toBe(false)
  return { tokenDigest: computeTokenDigest(secret, header), nonce: header.nonce, timestamp: String(header.timestamp) }
}

async function offline(vector: Members): Promise<Members> {
  const keys = keysOf(vector)
  const totp = has(vector, 'proximityTotp') ? makeTotp(vector) : undefined
  const payload = { data: text(vector, 'data'), nonceBase64: text(vector, 'nonce'), ...(totp !== undefined && { totp }) }
  const publicKey = publicKeyFromPoint('P-384', bytes(vector, 'masterEcdsaPublic'))
  const head = composeOfflineHead({ data: payload.data, nonceBase64: payload.nonceBase64 }, '0')
  const signed = text(vector, 'nonPersonalizedOfflineData')
  expect(signed.startsWith(head)).toBe(true)
  const signature = parseBase64(signed.slice(head.length))
  expect(publicKey && signature && ecdsaVerifyP384(publicKey, utf8(head), signature)).toBe(true)
  expectOfflineCode(vector, keys)
  return {
    personalizedOfflineData: createPersonalizedPayload(payload, { keys }),
    ...(totp !== undefined && { proximityTotp: totp }),
  }
}

function makeTotp(vector: Members): string {
  // Milliseconds, as all times of these files.
  const seconds = Math.floor(integer(vector, 'proximityTime') / 1000)
  return computeTotp(bytes(vector, 'proximitySeed'), totpStep(seconds, integer(vector, 'proximityStepLength')), 8)
}

function expectOfflineCode(vector: Members, keys: ReturnType<typeof keysOf>): void {
  const code = members(vector, 'code')
  const totp = optional(text, vector, 'proximityTotp')
  const parts = text(code, 'bodyData').split('&')
  const body = Buffer.from((totp === undefined ? parts : parts.slice(0, -1)).join('&'))
  const covered = { resourceId: '/operation/authorize/offline', body, nonceBase64: text(vector, 'nonce') }
  expect(toText(composeOfflineSignedData(covered, totp))).toBe(text(code, 'data'))
  const verify = (otp: string, componentLength: number, isBiometryAllowed = false) =>
    v4.verifyOfflineOtp(
      keys,
      bytes(code, 'ctrData'),
      { ...covered, otp, componentLength, isBiometryAllowed, totps: totp === undefined ? undefined : ['00000000', totp] },
      20,
    ).move
  const expected: { steps: number; factors: Factors } = { steps: 1, factors: 'POSSESSION_KNOWLEDGE' }
  expect(verify(text(code, 'offline8'), 8, true)).toMatchObject(expected)
  expect(verify(text(code, 'offline6'), 6)).toMatchObject(expected)
  expect(verify(text(code, 'offline6'), 8)).toBeUndefined()
  expect(verify('00000000-00000000', 8, true)).toBeUndefined()
}

export const v4RequestFamilies = {
  'e2ee-application': envelope('APPLICATION_SCOPE'),
  'e2ee-activation': envelope('ACTIVATION_SCOPE'),
  'authentication-code': authenticationCode,
  'authentication-http': authenticationHttp,
  fingerprint,
  'status-blob': statusBlob,
  'token-digest': tokenDigest,
  offline,
}
