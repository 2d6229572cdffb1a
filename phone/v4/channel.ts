// Authenticates and encrypts the requests of a phone of protocol 4.0: headers, temporary keys, and the data that a code covers (v4 §4 to §7).
import type { HttpReply } from '../http.ts'
import { member, NO_BODY, sendJson } from '../http.ts'
import { b64, bytesOf, canonicalQuery, random, signedData, unb64 } from '../v3/crypto.ts'
import { headerOf } from '../header.ts'
import type { EncryptedSigned, RequestToSign } from '../v3/channel.ts'
import type { PhoneScope, PhoneToken, Prepared, SignOptions } from '../v3/state.ts'
import { accepted, parseObject } from '../v3/state.ts'
import type { SharedSecretResponse } from './crypto.ts'
import {
  agree,
  applicationMacKey,
  hs384Jwt,
  newKemPair,
  nextV4CtrData,
  onlineCode,
  openGeneralJws,
  type PhonePair,
  sharedSecretRequest,
  tokenV4Digest,
} from './crypto.ts'
import type { V4Sealed, V4TemporaryKey } from './envelope.ts'
import { sealV4Envelope } from './envelope.ts'
import type { V4EnvelopeOptions, V4PhoneContext, V4PlaintextOption } from './state.ts'
import { v4KeysOf } from './state.ts'

/** A request of 4.0 to sign. It has a content type if it has a body. */
export type V4RequestToSign = Omit<RequestToSign, 'contentType'>

/** Reads the server's clock, with which phones synchronize before they stamp a request (v4 §9.1). Milliseconds since 1970. */
export async function v4ServerTime({ options }: V4PhoneContext): Promise<number> {
  const reply = await sendJson(options.url, 'POST', '/pa/v4/status')
  return Number(member(accepted(reply), 'responseObject', 'serverTime'))
}

/** Prepares a request with a code, and moves the counter of the phone (v4 §7). */
export function prepareV4Signed(phone: V4PhoneContext, request: V4RequestToSign): Prepared<unknown> {
  const { method = 'POST', path, query } = request
  const body = typeof request.body === 'string' ? bytesOf(request.body) : (request.body ?? NO_BODY)
  return {
    method,
    path: query === undefined ? path : `${path}?${query}`,
    headers: {
      ...(body.length > 0 && { 'Content-Type': 'application/json' }),
      ...authorizationHeader(phone, { ...request, body }),
    },
    body,
    open: accepted,
  }
}

/** Encrypts, then signs: the code covers the envelope as it is sent (v4 §5.7). */
export async function prepareV4EncryptedSigned<T>(
  phone: V4PhoneContext,
  request: EncryptedSigned,
  options: SignOptions & V4EnvelopeOptions,
  read: (plaintext: Uint8Array) => T,
): Promise<Prepared<T>> {
  const sealed = await sealV4(phone, request.label, 'activation', request.plaintext, options)
  const signed = prepareV4Signed(phone, { ...request, ...options, body: v4BodyOf(sealed, options) })
  return { ...signed, open: (reply) => read(sealed.open(accepted(reply))) }
}

/** Signs, then encrypts: the code covers the plaintext (v4 §5.7). The request has both headers, as that of the library. */
export async function prepareV4SignedEncrypted(
  phone: V4PhoneContext,
  request: EncryptedSigned,
  options: SignOptions & V4EnvelopeOptions,
): Promise<Prepared<Record<string, unknown>>> {
  const sealed = await sealV4(phone, request.label, 'activation', request.plaintext, options)
  const body = v4BodyOf(sealed, options)
  const signed = prepareV4Signed(phone, { ...request, ...options, body, signedBody: request.plaintext })
  const headers = { ...signed.headers, ...v4EncryptionHeader(phone, 'activation') }
  return { ...signed, headers, open: (reply) => parseObject(sealed.open(accepted(reply))) }
}

/** Prepares a request that is encrypted and has no code, with the generic label of its scope. */
export async function prepareV4Encrypted(
  phone: V4PhoneContext,
  path: string,
  scope: PhoneScope,
  options: V4EnvelopeOptions & V4PlaintextOption = {},
): Promise<Prepared<Record<string, unknown>>> {
  const sealed = await sealV4(phone, `/pa/generic/${scope}`, scope, bytesOf(options.plaintext ?? '{}'), options)
  return {
    method: 'POST',
    path,
    headers: { 'Content-Type': 'application/json', ...v4EncryptionHeader(phone, scope) },
    body: v4BodyOf(sealed, options),
    open: (reply) => parseObject(sealed.open(accepted(reply))),
  }
}

/** The bytes of an envelope, altered by `alterEnvelope` if it is given. */
export const v4BodyOf = ({ envelope }: V4Sealed, { alterEnvelope }: V4EnvelopeOptions): Uint8Array =>
  bytesOf(JSON.stringify(alterEnvelope ? alterEnvelope(envelope) : envelope))

/** Encrypts with a temporary key of the scope (v4 §5). */
export async function sealV4(
  phone: V4PhoneContext,
  label: string,
  scope: PhoneScope,
  plaintext: Uint8Array,
  options: V4EnvelopeOptions,
): Promise<V4Sealed> {
  const { state } = phone
  const { applicationKey, applicationSecret } = phone.options.app
  const temporaryKey = options.temporaryKey ?? (await fetchV4TemporaryKey(phone, scope))
  const timestamp = options.timestamp ?? (await v4ServerTime(phone))
  const bound = scope === 'activation' && { activationId: state.activationId, keySharedInfo2: v4KeysOf(state).sharedInfo2 }
  const context = { label, applicationKey, applicationSecret, temporaryKey, ...bound }
  return sealV4Envelope(context, plaintext, timestamp, options.nonce)
}

export interface V4TemporaryKeyRequest {
  readonly challenge: string
  readonly claims: Readonly<Record<string, unknown>>
  /** Key of the JWT: 32 bytes. */
  readonly macKey: Uint8Array
  readonly pair: PhonePair
  readonly json: { readonly requestObject: { readonly jwt: string } }
}

/** Makes a temporary key request of this phone (v4 §4.1). */
export function newV4TemporaryKeyRequest({ options, state }: V4PhoneContext, scope: PhoneScope): V4TemporaryKeyRequest {
  const { applicationKey, applicationSecret } = options.app
  const [challenge, pair] = [b64(random(32)), newKemPair(options.algorithm)]
  const isBound = scope === 'activation'
  const macKey = isBound ? v4KeysOf(state).macTemporaryKey : applicationMacKey(applicationSecret)
  const claims = {
    applicationKey,
    ...(isBound && { activationId: state.activationId }),
    challenge,
    sharedSecretRequest: sharedSecretRequest(options.algorithm, pair),
  }
  return { challenge, claims, macKey, pair, json: { requestObject: { jwt: hs384Jwt(claims, macKey) } } }
}

/** Reads the answer and checks it as a phone does: all signatures, application, activation and challenge (v4 §4.3). */
export function openV4TemporaryKey(
  { options, state }: V4PhoneContext,
  scope: PhoneScope,
  { challenge, pair }: Pick<V4TemporaryKeyRequest, 'challenge' | 'pair'>,
  reply: HttpReply,
): V4TemporaryKey {
  const { algorithm, app } = options
  const isBound = scope === 'activation'
  const master = { ecdsa: app.p384, mldsa: algorithm === 'EC_P384_ML_L3' ? app.mlDsa65 : app.mlDsa87 }
  const text = String(member(accepted(reply), 'responseObject', 'jwt'))
  const claims = openGeneralJws(algorithm, text, isBound ? state.serverKeys : master)
  const isMine = claims.applicationKey === app.applicationKey && claims.challenge === challenge
  if (!isMine || (claims.activationId ?? undefined) !== (isBound ? state.activationId : undefined) || !claims.sub) {
    throw new Error('the temporary key answers another request')
  }
  const secret = agree(algorithm, pair, claims.sharedSecretResponse as SharedSecretResponse)
  return { id: String(claims.sub), secret, expiresAt: Number(claims.exp_ms) }
}

export async function fetchV4TemporaryKey(phone: V4PhoneContext, scope: PhoneScope): Promise<V4TemporaryKey> {
  const request = newV4TemporaryKeyRequest(phone, scope)
  const reply = await sendJson(phone.options.url, 'POST', '/pa/v4/keystore/create', request.json)
  return openV4TemporaryKey(phone, scope, request, reply)
}

/** The encryption header of a scope (v4 §6.3). */
export function v4EncryptionHeader(phone: V4PhoneContext, scope: PhoneScope): Record<string, string> {
  const activationId = scope === 'activation' ? phone.state.activationId : undefined
  const pairs = { version: '4.0', application_key: phone.options.app.applicationKey, activation_id: activationId }
  return headerOf(phone.options, 'Encryption', pairs)
}

/** The token header of one request (v4 §6.4, §9.9). */
export function v4TokenHeader(
  phone: V4PhoneContext,
  token: PhoneToken,
  timestamp: number,
  nonce: Uint8Array = random(16),
): Record<string, string> {
  const digest = b64(tokenV4Digest(token.secret, nonce, String(timestamp)))
  const pairs = { token_id: token.id, token_digest: digest, nonce: b64(nonce), timestamp: String(timestamp), version: '4.0' }
  return headerOf(phone.options, 'Token', pairs)
}

/** Moves the counter by `steps`. Every code that the phone makes moves it by one. */
export function moveV4Counter({ state }: V4PhoneContext, steps: number): void {
  for (let i = 0; i < steps; i++) state.ctrData = nextV4CtrData(state.ctrData)
  state.counter += steps
}

/** The keys of a combination of factors, in the order of v4 §7.3. */
export function v4FactorKeys({ state }: V4PhoneContext, { factors = 'possession_knowledge', wrongKeys = {} }: SignOptions) {
  const own = { ...v4KeysOf(state), ...wrongKeys }
  return factors.split('_').map((factor) => own[factor as 'possession' | 'knowledge' | 'biometry'])
}

function authorizationHeader(phone: V4PhoneContext, request: V4RequestToSign & { body: Uint8Array }): Record<string, string> {
  const { state } = phone
  const { applicationKey, applicationSecret } = phone.options.app
  const nonce = random(16)
  const body = request.signedBody ?? request.body
  const covered = body.length > 0 ? body : bytesOf(canonicalQuery(request.query ?? ''))
  const data = signedData(request.method ?? 'POST', request.resourceId, nonce, covered, applicationSecret)
  const code = onlineCode(v4FactorKeys(phone, request), state.ctrData, data)
  moveV4Counter(phone, 1)
  return headerOf(phone.options, 'Authorization', {
    pa_activation_id: state.activationId,
    pa_application_key: applicationKey,
    pa_nonce: b64(nonce),
    pa_auth_code_type: request.factors ?? 'possession_knowledge',
    pa_auth_code: code,
    pa_version: '4.0',
  })
}

/** The bytes of a member of an answer that is a Base64 text. */
export const bytesIn = (json: unknown, ...path: readonly string[]): Uint8Array => unb64(String(member(json, ...path)))
