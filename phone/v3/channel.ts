// Signs and encrypts the requests of a phone: headers, temporary keys, and the two orders of signing and encryption (v3 §5 to §7, §10).
import type { HttpReply } from '../http.ts'
import { member, NO_BODY, sendJson } from '../http.ts'
import {
  b64,
  bytesOf,
  canonicalQuery,
  computeSignature,
  hasTemporaryKeys,
  hasTimestamp,
  hs256Jwt,
  kdfInternal,
  nextCtrData,
  openEs256Jwt,
  random,
  signedData,
  tokenDigest,
  unb64,
} from './crypto.ts'
import type { EnvelopeContext, SealedRequest, TemporaryKey } from './envelope.ts'
import { sealEnvelope } from './envelope.ts'
import { headerOf } from '../header.ts'
import type { EnvelopeOptions, PhoneContext, PhoneScope, PhoneToken, PlaintextOption, Prepared, SignOptions } from './state.ts'
import { accepted, keysOf, parseObject } from './state.ts'

export interface RequestToSign extends SignOptions {
  readonly method?: string
  readonly path: string
  /** Without the question mark. */
  readonly query?: string
  readonly resourceId: string
  readonly body?: Uint8Array | string
  /** The bytes that the signature covers in place of the body. */
  readonly signedBody?: Uint8Array
  /** The content type: JSON when absent, none when undefined. */
  readonly contentType?: string | undefined
}

/** Reads the server's clock, with which phones synchronize before they stamp a request (v3 §13, §14). Milliseconds since 1970. */
export async function serverTime({ options }: PhoneContext): Promise<number> {
  const reply = await sendJson(options.url, 'POST', '/pa/v3/status')
  return Number(member(accepted(reply), 'responseObject', 'serverTime'))
}

/** Prepares a signed request, and moves the counter of the phone. */
export function prepareSigned(phone: PhoneContext, request: RequestToSign): Prepared<unknown> {
  const { method = 'POST', path, query } = request
  const body = typeof request.body === 'string' ? bytesOf(request.body) : (request.body ?? NO_BODY)
  const contentType = 'contentType' in request ? request.contentType : method === 'GET' ? undefined : 'application/json'
  return {
    method,
    path: query === undefined ? path : `${path}?${query}`,
    headers: { ...(contentType && { 'Content-Type': contentType }), ...authorizationHeader(phone, { ...request, body }) },
    body,
    open: accepted,
  }
}

export interface EncryptedSigned {
  readonly path: string
  readonly resourceId: string
  readonly label: string
  readonly plaintext: Uint8Array
}

/** Encrypts, then signs the envelope as it is sent (v3 §5.4, E-S). */
export async function prepareEncryptedSigned<T>(
  phone: PhoneContext,
  request: EncryptedSigned,
  options: SignOptions & EnvelopeOptions,
  read: (plaintext: Uint8Array) => T,
): Promise<Prepared<T>> {
  const sealed = await seal(phone, request.label, 'activation', request.plaintext, options)
  const signed = prepareSigned(phone, { ...request, ...options, body: bodyOf(sealed, options) })
  return { ...signed, open: (reply) => read(sealed.open(accepted(reply))) }
}

/** Signs the plaintext, then encrypts it (v3 §5.4, S-E). */
export async function prepareSignedEncrypted(
  phone: PhoneContext,
  request: EncryptedSigned,
  options: SignOptions & EnvelopeOptions,
): Promise<Prepared<Record<string, unknown>>> {
  const sealed = await seal(phone, request.label, 'activation', request.plaintext, options)
  const body = bodyOf(sealed, options)
  const signed = prepareSigned(phone, { ...request, ...options, body, signedBody: request.plaintext })
  return { ...signed, open: (reply) => parseObject(sealed.open(accepted(reply))) }
}

/** Prepares a request that is encrypted and not signed, with the generic label of its scope. */
export async function prepareEncrypted(
  phone: PhoneContext,
  path: string,
  options: EnvelopeOptions & PlaintextOption = {},
  scope: PhoneScope = 'activation',
): Promise<Prepared<Record<string, unknown>>> {
  const sealed = await seal(phone, `/pa/generic/${scope}`, scope, bytesOf(options.plaintext ?? '{}'), options)
  return {
    method: 'POST',
    path,
    headers: { 'Content-Type': 'application/json', ...encryptionHeader(phone, scope) },
    body: bodyOf(sealed, options),
    open: (reply) => parseObject(sealed.open(accepted(reply))),
  }
}

/** The bytes of an envelope, altered by `alterEnvelope` if it is given. */
export const bodyOf = ({ envelope }: SealedRequest, { alterEnvelope }: EnvelopeOptions): Uint8Array =>
  bytesOf(JSON.stringify(alterEnvelope ? alterEnvelope(envelope) : envelope))

/** Encrypts for the key that version and scope demand (v3 §6, table). */
export async function seal(
  phone: PhoneContext,
  label: string,
  scope: PhoneScope,
  plaintext: Uint8Array,
  options: EnvelopeOptions,
): Promise<SealedRequest> {
  const { state } = phone
  const { app, version, compressed = true } = phone.options
  const temporary = hasTemporaryKeys(version) ? (options.temporaryKey ?? (await fetchTemporaryKey(phone, scope))) : undefined
  const isBound = scope === 'activation'
  const context: EnvelopeContext = {
    version,
    label,
    applicationKey: app.applicationKey,
    applicationSecret: app.applicationSecret,
    activationId: isBound ? state.activationId : undefined,
    keyTransport: isBound ? keysOf(state).transport : undefined,
    publicKey: options.publicKey ?? temporary?.publicKey ?? (isBound ? state.serverPublicKey : app.masterPublicKey),
    temporaryKeyId: temporary?.id,
  }
  const timestamp = options.timestamp ?? (hasTimestamp(version) ? await serverTime(phone) : 0)
  return sealEnvelope(context, plaintext, { timestamp, compressed })
}

export interface TemporaryKeyRequest {
  readonly challenge: string
  readonly claims: Readonly<Record<string, string>>
  /** Key of the JWT: 16 bytes. */
  readonly secret: Uint8Array
  readonly json: { readonly requestObject: { readonly jwt: string } }
}

/** Makes a temporary key request of this phone (v3 §7.1). */
export function newTemporaryKeyRequest({ options, state }: PhoneContext, scope: PhoneScope): TemporaryKeyRequest {
  const { applicationKey, applicationSecret } = options.app
  const challenge = b64(random(18))
  const isBound = scope === 'activation'
  const secret = isBound ? kdfInternal(keysOf(state).transport, unb64(applicationSecret)) : unb64(applicationSecret)
  const claims = { applicationKey, ...(isBound && { activationId: state.activationId }), challenge }
  return { challenge, claims, secret, json: { requestObject: { jwt: hs256Jwt(claims, secret) } } }
}

/** Reads the answer and checks it as a phone does: signature, application, activation and challenge (v3 §7.2). */
export function openTemporaryKey(
  { options, state }: PhoneContext,
  scope: PhoneScope,
  challenge: string,
  reply: HttpReply,
): TemporaryKey {
  const isBound = scope === 'activation'
  const verificationKey = isBound ? state.serverPublicKey : options.app.masterPublicKey
  const { claims } = openEs256Jwt(String(member(accepted(reply), 'responseObject', 'jwt')), verificationKey)
  const isMine = claims.applicationKey === options.app.applicationKey && claims.challenge === challenge
  if (!isMine || claims.activationId !== (isBound ? state.activationId : undefined)) {
    throw new Error('the temporary key answers another request')
  }
  return { id: String(claims.sub), publicKey: unb64(String(claims.publicKey)), expiresAt: Number(claims.exp_ms) }
}

export async function fetchTemporaryKey(phone: PhoneContext, scope: PhoneScope): Promise<TemporaryKey> {
  const request = newTemporaryKeyRequest(phone, scope)
  const reply = await sendJson(phone.options.url, 'POST', '/pa/v3/keystore/create', request.json)
  return openTemporaryKey(phone, scope, request.challenge, reply)
}

export function encryptionHeader(phone: PhoneContext, scope: PhoneScope): Record<string, string> {
  const { app, version } = phone.options
  const activationId = scope === 'activation' ? phone.state.activationId : undefined
  return headerOf(phone.options, 'Encryption', { version, application_key: app.applicationKey, activation_id: activationId })
}

/** The token header of one request (v3 §11.2). */
export function tokenHeader(
  phone: PhoneContext,
  token: PhoneToken,
  timestamp: number,
  nonce: Uint8Array = random(16),
): Record<string, string> {
  const { version } = phone.options
  const digest = tokenDigest(version, token.secret, nonce, String(timestamp))
  const pairs = { token_id: token.id, token_digest: b64(digest), nonce: b64(nonce), timestamp: String(timestamp), version }
  return headerOf(phone.options, 'Token', pairs)
}

function authorizationHeader(phone: PhoneContext, request: RequestToSign & { body: Uint8Array }): Record<string, string> {
  const { state } = phone
  const { app, version } = phone.options
  const { method = 'POST', factors = 'possession_knowledge', wrongKeys = {} } = request
  const nonce = random(16)
  const own = { ...keysOf(state), ...wrongKeys }
  const covered = method === 'GET' ? bytesOf(canonicalQuery(request.query ?? '')) : (request.signedBody ?? request.body)
  const factorKeys = factors.split('_').map((factor) => own[factor as 'possession' | 'knowledge' | 'biometry'])
  const signed = signedData(method, request.resourceId, nonce, covered, app.applicationSecret)
  const signature = computeSignature(version, factorKeys, state.ctrData, signed)
  state.ctrData = nextCtrData(state.ctrData)
  state.counter += 1
  return headerOf(phone.options, 'Authorization', {
    pa_activation_id: state.activationId,
    pa_application_key: app.applicationKey,
    pa_nonce: b64(nonce),
    pa_signature_type: factors,
    pa_signature: signature,
    pa_version: version,
  })
}
