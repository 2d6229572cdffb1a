// Vectors of headers, authentication codes, token digests and temporary keys (v3 §5.2, §7, §10, §11.2).
import type { KeyObject } from 'node:crypto'
import { compactVerify, decodeJwt } from 'jose'
import { expect } from 'vitest'
import { publicKeyFromPoint, publicKeyOf } from '../../src/crypto/key.ts'
import { decideAuthentication } from '../../src/domain/activation/authentication.ts'
import { parseBase64, toBase64 } from '../../src/lib/base64.ts'
import { utf8 } from '../../src/lib/bytes.ts'
import { canonicalizeQuery, composeRequestData, composeSignedData } from '../../src/protocol/wire/request-data.ts'
import { toDecimalCode } from '../../src/protocol/wire/decimal.ts'
import type { Factors } from '../../src/protocol/protocol.ts'
import { computeComponents, selectFactorKeys, toBinaryCode } from '../../src/protocol/v3/authentication-code.ts'
import {
  type ActivationKeys,
  agreeMasterSecret,
  advanceCounter,
  deriveActivationKeys,
} from '../../src/protocol/v3/key-schedule.ts'
import { v3 } from '../../src/protocol/v3/index.ts'
import { createTemporaryKeyAnswer, deriveRequestKey, parseTemporaryKeyRequest } from '../../src/protocol/v3/temporary-key.ts'
import { computeTokenDigest } from '../../src/protocol/v3/header.ts'
import { capabilitiesOf } from '../../src/protocol/v3/versions.ts'
import { bytes, type Handler, has, integer, isMembers, list, type Members, members, optional, text, toText } from './vector.ts'
import { privateKeyFromScalar } from '../helpers/crypto.ts'

const SCHEMES = ['Svc', 'PowerAuth']

const headerParse: Handler = ({ input, output }) => {
  const value = text(input, 'value')
  const name = text(input, 'header').replace(/^X-(PowerAuth|Svc)-/, '')
  if (name === 'Authorization') {
    const parsed = v3.parseAuthorizationHeader(value, SCHEMES)
    if (!parsed) return { valid: false }
    const { activationId, applicationKey, nonce, factors, code, version } = parsed
    // The vector keeps the type as it was sent; names compare without case (v3 §10.2).
    const sent = isMembers(output['fields']) ? text(output['fields'], 'signatureType') : ''
    const signatureType = sent.toUpperCase() === factors ? sent : factors
    return {
      valid: true,
      fields: { activationId, applicationKey, nonce: toBase64(nonce), signatureType, signature: code, version },
    }
  }
  if (name === 'Token') {
    const parsed = v3.parseTokenHeader(value, SCHEMES)
    if (!parsed) return { valid: false }
    const { tokenId, digest, nonce, timestamp, version } = parsed
    const fields = { tokenId, tokenDigest: toBase64(digest), nonce: toBase64(nonce), timestamp: String(timestamp), version }
    return { valid: true, fields }
  }
  if (name !== 'Encryption') throw new Error(`unknown header ${name}`)
  const parsed = v3.parseEncryptionHeader(value, SCHEMES)
  const isInActivationScope = text(input, 'scope') === 'activation'
  const isValid = parsed !== undefined && (parsed.activationId !== undefined) === isInActivationScope
  // toEqual takes a member that is undefined for one that is absent.
  return isValid ? { valid: true, fields: { ...parsed } } : { valid: false }
}

const baseString: Handler = ({ input }) => {
  const request = {
    method: text(input, 'method'),
    resourceId: text(input, 'uriId'),
    body: optional(bytes, input, 'body') ?? new Uint8Array(0),
  }
  const applicationSecret = text(input, 'applicationSecret')
  const base = composeRequestData({ ...request, nonceBase64: optional(text, input, 'nonce') ?? '' })
  const nonce = optional(bytes, input, 'nonce') ?? new Uint8Array(0)
  return { baseString: base, signedData: toText(composeSignedData({ ...request, nonce, applicationSecret })) }
}

const signature =
  (write: (components: readonly Uint8Array[], input: Members) => Uint8Array | string): Handler =>
  ({ input }) => {
    const keys: readonly Uint8Array[] = has(input, 'keys')
      ? list(input, 'keys').map((key) => parseBase64(String(key)) ?? new Uint8Array(0))
      : selectFactorKeys(readFactorKeys(input), readFactors(input))
    return { signature: write(computeComponents(keys, bytes(input, 'ctrData'), bytes(input, 'data')), input) }
  }

const signatureHttp: Handler = ({ input }) => {
  const keys = readActivationKeys(input)
  const header = v3.parseAuthorizationHeader(text(input, 'authorizationHeader'), SCHEMES)
  if (!header) throw new Error('the authorization header does not parse')
  expect([header.activationId, header.applicationKey]).toEqual([text(input, 'activationId'), text(input, 'applicationKey')])
  const method = text(input, 'method')
  const body = method === 'GET' ? canonicalizeQuery(optional(text, input, 'rawQuery')) : bytes(input, 'body')
  const signedData = composeSignedData({
    method,
    resourceId: text(input, 'uriId'),
    nonce: header.nonce,
    body,
    applicationSecret: text(input, 'applicationSecret'),
  })
  let counter = bytes(input, 'ctrData')
  for (let i = 0; i < integer(input, 'ahead'); i += 1) counter = advanceCounter(counter)
  const { move } = v3.verifyAuthenticationCode(keys, bytes(input, 'ctrData'), signedData, header, 20)
  return {
    signedData: toText(signedData),
    signature: computeCode(keys, header.version, header.factors, counter, signedData),
    valid: move !== undefined,
    ctrAfter: integer(input, 'ctr') + (move?.steps ?? 0),
    ctrDataAfter: move?.ctrData ?? bytes(input, 'ctrData'),
  }
}

const signatureSequence: Handler = ({ input }) => {
  const keys = readActivationKeys(input)
  const maxFailedAttempts = integer(input, 'maxFailedAttempts')
  let { state, failedAttempts } = { state: readState(input), failedAttempts: integer(input, 'failedAttempts') }
  let { ctr, ctrData } = { ctr: integer(input, 'ctr'), ctrData: bytes(input, 'ctrData') }
  const steps = list(input, 'steps').map((step) => {
    if (!isMembers(step)) throw new TypeError('a step is no object')
    const code = { version: text(step, 'version'), factors: readFactors(step), code: text(step, 'signature') }
    const { move } = v3.verifyAuthenticationCode(keys, ctrData, utf8(text(step, 'data')), code, integer(input, 'lookAhead'))
    // The vectors count as the reference does, every wrong code of more than one factor; pawl only guesses (DIVERGENCES#only-guesses-count).
    const attempt = { valid: move !== undefined, isCounted: code.factors !== 'POSSESSION' }
    const decision = decideAuthentication({ state, failedAttempts, maxFailedAttempts, blocksInRow: 0 }, attempt)
    state = decision.state
    failedAttempts = decision.failedAttempts
    if (decision.valid && move) {
      ctr += move.steps
      ctrData = move.ctrData
    }
    return { valid: decision.valid, activationStatus: state, failedAttempts, ctr, ctrData: toBase64(ctrData) }
  })
  return { steps }
}

const tokenDigest: Handler = ({ input }) => {
  const version = text(input, 'version')
  const timestamp = integer(input, 'timestamp')
  const digest = computeTokenDigest(bytes(input, 'tokenSecret'), { version, timestamp, nonce: bytes(input, 'nonce') })
  const header =
    `PowerAuth token_id="${text(input, 'tokenId')}", token_digest="${toBase64(digest)}", ` +
    `nonce="${text(input, 'nonce')}", timestamp="${timestamp}", version="${version}"`
  const parsed = v3.parseTokenHeader(header, SCHEMES)
  expect(parsed && v3.verifyTokenDigest(bytes(input, 'tokenSecret'), parsed)).toBe(true)
  return { digest, header }
}

const temporaryKeyRequest: Handler = async ({ input }) => {
  const jwt = text(input, 'jwt')
  const secret = text(input, 'applicationSecret')
  const keyTransport = optional(bytes, input, 'transportKey')
  const request = parseTemporaryKeyRequest(jwt)
  const isForUs =
    request?.applicationKey === text(input, 'applicationKey') && request.activationId === optional(text, input, 'activationId')
  if (!request || !isForUs || !request.verify(secret, keyTransport && { keyTransport })) return { valid: false }
  const { applicationKey, activationId, challenge } = request
  const known = { applicationKey, challenge, ...(activationId === undefined ? {} : { activationId }) }
  return { valid: true, hmacKey: deriveRequestKey(secret, keyTransport), claims: { ...decodeJwt(jwt), ...known } }
}

const temporaryKeyResponse: Handler = async ({ input }) => {
  const verificationKey = publicKeyFromPoint('P-256', bytes(input, 'verificationKey'))
  if (!verificationKey) throw new Error('verificationKey is not valid')
  const given = await readJws(text(input, 'jwt'), verificationKey)
  if (!given.valid || !has(input, 'signingKey')) return given
  // The given answer reads as ours would: made again from its claims and its key, it says the same.
  const claims = members(given, 'claims')
  const publicKey = bytes(claims, 'publicKey')
  if (has(input, 'temporaryPrivateKey')) {
    const temporaryKey = privateKeyFromScalar('P-256', bytes(input, 'temporaryPrivateKey'))
    expect(publicKeyOf(temporaryKey)).toEqual(publicKey)
  }
  const answer = {
    temporaryKeyId: text(claims, 'sub'),
    applicationKey: text(claims, 'applicationKey'),
    activationId: optional(text, claims, 'activationId'),
    challenge: text(claims, 'challenge'),
    publicKey,
    issuedAt: integer(claims, 'iat_ms'),
    expiresAt: integer(claims, 'exp_ms'),
  }
  const ours = createTemporaryKeyAnswer(answer, privateKeyFromScalar('P-256', bytes(input, 'signingKey')))
  return readJws(ours, verificationKey)
}

async function readJws(jwt: string, key: KeyObject) {
  try {
    const { protectedHeader, payload } = await compactVerify(jwt, key, { algorithms: ['ES256'] })
    return { valid: true, header: protectedHeader, claims: JSON.parse(toText(payload)) as unknown }
  } catch {
    return { valid: false }
  }
}

function computeCode(keys: ActivationKeys, version: string, factors: Factors, counter: Uint8Array, data: Uint8Array): string {
  const components = computeComponents(selectFactorKeys(keys, factors), counter, data)
  return capabilitiesOf(version)?.decimalCodes ? toDecimalCode(components, 8) : toBase64(toBinaryCode(components))
}

/** The keys of an activation from its key pairs. */
export function readActivationKeys(input: Members): ActivationKeys {
  const serverPrivateKey = privateKeyFromScalar('P-256', bytes(input, 'serverPrivateKey'))
  const masterSecret = v3.agreeMasterSecret(serverPrivateKey, bytes(input, 'devicePublicKey'))
  if (!masterSecret) throw new Error('devicePublicKey is not valid')
  if (has(input, 'devicePrivateKey')) {
    const devicePrivateKey = privateKeyFromScalar('P-256', bytes(input, 'devicePrivateKey'))
    expect(agreeMasterSecret(devicePrivateKey, bytes(input, 'serverPublicKey'))).toEqual(masterSecret)
  }
  return deriveActivationKeys(masterSecret)
}

const readFactorKeys = (input: Members): ActivationKeys => ({
  possession: bytes(input, 'possessionKey'),
  knowledge: bytes(input, 'knowledgeKey'),
  biometry: bytes(input, 'biometryKey'),
  keyTransport: new Uint8Array(16),
  keyTransportIv: new Uint8Array(16),
  keyTransportCtr: new Uint8Array(16),
  keyEncryptionVault: new Uint8Array(16),
})

function readFactors(from: Members): Factors {
  return text(from, 'signatureType').toUpperCase() as Factors
}

function readState(input: Members) {
  const status = text(input, 'activationStatus')
  const state = (['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED'] as const).find((known) => known === status)
  if (!state) throw new Error(`unknown state ${status}`)
  return state
}

const decimal = (components: readonly Uint8Array[]): string => toDecimalCode(components, 8)

export const authenticationFamilies: Readonly<Record<string, Handler>> = {
  'header-parse': headerParse,
  'signature-base-string': baseString,
  'query-canonicalization': ({ input }) => ({ canonical: toText(canonicalizeQuery(optional(text, input, 'query'))) }),
  'public-signature-decimal': signature(decimal),
  'public-signature-base64': signature(toBinaryCode),
  'public-signature-offline': signature((components, input) => toDecimalCode(components, integer(input, 'componentLength'))),
  'signature-decimal-length': signature((components, input) => toDecimalCode(components, integer(input, 'length'))),
  'signature-http': signatureHttp,
  'signature-sequence': signatureSequence,
  'token-digest': tokenDigest,
  'temporary-key-request': temporaryKeyRequest,
  'temporary-key-response': temporaryKeyResponse,
}
