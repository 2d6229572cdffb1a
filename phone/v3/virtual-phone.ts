// Implements a phone as the protocol describes it, for versions 3.0 to 3.3 (v3 §8 to §13). It shares no code with the server. Every
// request is prepared first and sent later, so that a test can spoil it, repeat it, or send it many times at once.
import type { HttpReply } from '../http.ts'
import { member, send, sendJson } from '../http.ts'
import type { EncryptedSigned, RequestToSign } from './channel.ts'
import {
  bodyOf,
  encryptionHeader,
  fetchTemporaryKey,
  newTemporaryKeyRequest,
  openTemporaryKey,
  prepareEncrypted,
  prepareEncryptedSigned,
  prepareSigned,
  prepareSignedEncrypted,
  seal,
  serverTime,
  tokenHeader,
} from './channel.ts'
import type { StatusBlob } from './crypto.ts'
import {
  b64,
  bytesOf,
  ctrDataHash,
  deriveKeys,
  fingerprint,
  hasNonce,
  hasTemporaryKeys,
  hasTimestamp,
  newKeyPair,
  nextCtrData,
  openStatusBlob,
  openVaultKey,
  random,
  unb64,
} from './crypto.ts'
import type { EnvelopeJson, TemporaryKey } from './envelope.ts'
import { v3DeviceSigners } from '../device-signature.ts'
import { OIDC_CONFIG_PATH } from '../oidc.ts'
import { bindOperations } from '../operations.ts'
import type {
  EnvelopeOptions,
  PhoneContext,
  PhoneFactors,
  PhoneOptions,
  PhoneScope,
  PhoneState,
  PhoneToken,
  PlaintextOption,
  Prepared,
  SignOptions,
} from './state.ts'
import { accepted, keysOf, newState, parseObject } from './state.ts'

export interface VirtualPhone extends ReturnType<typeof bindPhone> {
  /** A phone of the same activation that speaks another version or dialect. */
  readonly speaking: (change: Partial<PhoneOptions>) => VirtualPhone
}

/** Makes a new phone, or with `state` a phone that goes on from that state. */
export const createPhone = (options: PhoneOptions, state: PhoneState = newState()): VirtualPhone => ({
  ...bindPhone({ options, state }),
  speaking: (change) => createPhone({ ...options, ...change }, state),
})

function bindPhone(phone: PhoneContext) {
  const { options, state } = phone
  const exchange = async <T>(request: Prepared<T>, url = options.url): Promise<T> => request.open(await send(url, request))
  const signed =
    (path: string, resourceId: string) =>
    (request: Omit<RequestToSign, 'path' | 'resourceId'> = {}) =>
      prepareSigned(phone, { path, resourceId, ...request })
  return {
    ...phone,
    ...bindOperations(phone),
    version: options.version,
    serverTime: () => serverTime(phone),
    send: <T>(request: Prepared<T>, url = options.url): Promise<HttpReply> => send(url, request),
    /** Sends the request and opens the answer; throws when it was refused. */
    exchange,
    newTemporaryKeyRequest: (scope: PhoneScope) => newTemporaryKeyRequest(phone, scope),
    openTemporaryKey: (scope: PhoneScope, challenge: string, reply: HttpReply) =>
      openTemporaryKey(phone, scope, challenge, reply),
    fetchTemporaryKey: (scope: PhoneScope) => fetchTemporaryKey(phone, scope),
    encryptionHeader: (scope: PhoneScope) => encryptionHeader(phone, scope),
    tokenHeader: (token: PhoneToken, timestamp: number, nonce?: Uint8Array) => tokenHeader(phone, token, timestamp, nonce),
    prepareActivation: (code: string, request?: ActivationOptions) => prepareActivation(phone, code, request),
    prepareSigned: (request: RequestToSign) => prepareSigned(phone, request),
    prepareValidation: signed('/pa/v3/signature/validate', '/pa/signature/validate'),
    prepareRemove: signed('/pa/v3/activation/remove', '/pa/activation/remove'),
    prepareTokenRemove: (tokenId: unknown, request: Partial<RequestToSign> = {}) =>
      signed('/pa/v3/token/remove', '/pa/token/remove')({ body: JSON.stringify({ requestObject: { tokenId } }), ...request }),
    prepareTokenCreate: (request?: ProtectedOptions) => prepareTokenCreate(phone, request),
    prepareVaultUnlock: (request?: ProtectedOptions) => prepareVaultUnlock(phone, request),
    prepareRename: (activationName: unknown, request?: ProtectedOptions) => prepareRename(phone, activationName, request),
    prepareUserInfo: (request?: EnvelopeOptions & PlaintextOption) => prepareEncrypted(phone, '/pa/v3/user/info', request),
    prepareEncrypted: (path: string, request?: EnvelopeOptions & PlaintextOption) => prepareEncrypted(phone, path, request),
    /** Asks for the settings of an OpenID provider (v3 §8.8). */
    prepareOidcConfig: (providerId: unknown, request: EnvelopeOptions & PlaintextOption = {}) =>
      prepareEncrypted(phone, OIDC_CONFIG_PATH, { plaintext: JSON.stringify({ providerId }), ...request }, 'application'),
    /** Prepares a request that is encrypted with the generic label, and signed over its plaintext. */
    prepareSignedEncrypted: (request: Omit<EncryptedSigned, 'label'>, more: SignOptions & EnvelopeOptions = {}) =>
      prepareSignedEncrypted(phone, { label: '/pa/generic/activation', ...request }, more),
    prepareDetail: (token: PhoneToken, request?: DetailOptions) => prepareDetail(phone, token, request),
    readStatus: (request?: StatusOptions) => readStatus(phone, request),
    activate: async (code: string, request?: ActivationOptions) => exchange(await prepareActivation(phone, code, request)),
    createToken: async (factors: PhoneFactors = 'possession_knowledge') => exchange(await prepareTokenCreate(phone, { factors })),
    deviceSigners: () => v3DeviceSigners(state.device),
    /** Moves the counter ahead, as do requests that never arrive. */
    skip: (steps: number) => {
      for (let i = 0; i < steps; i++) state.ctrData = nextCtrData(state.ctrData)
      state.counter += steps
    },
    /** Every secret the phone holds, by name. */
    secrets: (): Record<string, Uint8Array> => ({
      ...state.keys,
      devicePrivateKey: state.device.privateKey,
      ctrData: state.ctrData,
      ...Object.fromEntries(state.tokens.map((token, i) => [`tokenSecret${i}`, token.secret])),
    }),
  }
}

export interface ActivationOptions extends EnvelopeOptions {
  /** Members that replace those of layer 1 and layer 2; undefined removes one. */
  readonly layer1?: Readonly<Record<string, unknown>>
  readonly layer2?: Readonly<Record<string, unknown>>
  /** The timestamp of layer 2; by default that of layer 1. */
  readonly innerTimestamp?: number
  /** Seals layer 2 for another key. */
  readonly innerPublicKey?: Uint8Array
  /** Changes the envelope of layer 2 before it is sealed in layer 1. */
  readonly alterInner?: (envelope: EnvelopeJson) => unknown
}

export interface ActivationResult {
  readonly activationId: string
  readonly fingerprint: string
  /** The opened answers of both layers. */
  readonly layer1: Readonly<Record<string, unknown>>
  readonly layer2: Readonly<Record<string, unknown>>
}

type ProtectedOptions = SignOptions & EnvelopeOptions & PlaintextOption
type DetailOptions = EnvelopeOptions & PlaintextOption & { readonly tokenTimestamp?: number }
interface StatusOptions {
  /** Whether the request has a challenge; true by default from 3.1 on. Any version may ask for either form. */
  readonly withChallenge?: boolean
  readonly url?: string
}

/** Prepares both layers of an activation. The phone is activated when the answer is opened (v3 §8.3). */
async function prepareActivation(
  phone: PhoneContext,
  code: string,
  options: ActivationOptions = {},
): Promise<Prepared<ActivationResult>> {
  const { version } = phone.options
  const temporaryKey = await temporaryKeyOf(phone, options)
  const timestamp = options.timestamp ?? (hasTimestamp(version) ? await serverTime(phone) : 0)
  const innerKey = options.innerPublicKey ?? options.publicKey
  const inner = await seal(phone, '/pa/activation', 'application', layer2Of(phone, options), {
    temporaryKey,
    timestamp: options.innerTimestamp ?? timestamp,
    ...(innerKey && { publicKey: innerKey }),
  })
  const activationData = options.alterInner ? options.alterInner(inner.envelope) : inner.envelope
  const layer1 = bytesOf(JSON.stringify({ type: 'CODE', identityAttributes: { code }, activationData, ...options.layer1 }))
  const outer = await seal(phone, '/pa/generic/application', 'application', layer1, { ...options, temporaryKey, timestamp })
  return {
    method: 'POST',
    path: '/pa/v3/activation/create',
    headers: { 'Content-Type': 'application/json', ...encryptionHeader(phone, 'application') },
    body: bodyOf(outer, options),
    open: (reply) => {
      const answer = parseObject(outer.open(accepted(reply)))
      return adoptActivation(phone, answer, parseObject(inner.open(answer.activationData)))
    },
  }
}

/** Both layers use the same temporary key (v3 §7.4). */
async function temporaryKeyOf(phone: PhoneContext, options: EnvelopeOptions): Promise<TemporaryKey | undefined> {
  if (!hasTemporaryKeys(phone.options.version)) return undefined
  return options.temporaryKey ?? fetchTemporaryKey(phone, 'application')
}

function layer2Of({ options: { compressed = true }, state }: PhoneContext, options: ActivationOptions): Uint8Array {
  const devicePublicKey = b64(compressed ? state.device.compressed : state.device.uncompressed)
  const members = { activationName: 'Test phone', platform: 'ios', deviceInfo: 'iPhone16,2' }
  return bytesOf(JSON.stringify({ devicePublicKey, ...members, ...options.layer2 }))
}

function adoptActivation(
  { state }: PhoneContext,
  layer1: Record<string, unknown>,
  layer2: Record<string, unknown>,
): ActivationResult {
  state.activationId = String(layer2.activationId)
  state.serverPublicKey = unb64(String(layer2.serverPublicKey))
  state.ctrData = unb64(String(layer2.ctrData))
  state.counter = 0
  state.keys = deriveKeys(state.device.privateKey, state.serverPublicKey)
  const shown = fingerprint(state.device.uncompressed, state.activationId, state.serverPublicKey)
  return { activationId: state.activationId, fingerprint: shown, layer1, layer2 }
}

/** v3 §11.1 */
function prepareTokenCreate(phone: PhoneContext, options: ProtectedOptions = {}): Promise<Prepared<PhoneToken>> {
  const { factors = 'possession_knowledge', plaintext = '{}' } = options
  const path = '/pa/v3/token/create'
  const request = { path, resourceId: '/pa/token/create', label: '/pa/token/create', plaintext: bytesOf(plaintext) }
  return prepareEncryptedSigned(phone, request, options, (opened) => {
    const { tokenId, tokenSecret } = parseObject(opened)
    const token = { id: String(tokenId), secret: unb64(String(tokenSecret)), factors }
    phone.state.tokens.push(token)
    return token
  })
}

/** v3 §12. The answer opens to the vault key. */
function prepareVaultUnlock(phone: PhoneContext, options: ProtectedOptions = {}): Promise<Prepared<Uint8Array>> {
  const { plaintext = '{"reason":"ADD_BIOMETRY"}' } = options
  const path = '/pa/v3/vault/unlock'
  const request = { path, resourceId: '/pa/vault/unlock', label: '/pa/vault/unlock', plaintext: bytesOf(plaintext) }
  return prepareEncryptedSigned(phone, request, options, (opened) => {
    const { encryptedVaultEncryptionKey } = parseObject(opened)
    return openVaultKey(keysOf(phone.state).transport, unb64(String(encryptedVaultEncryptionKey)))
  })
}

/** v3 §13 */
function prepareRename(
  phone: PhoneContext,
  activationName: unknown,
  options: ProtectedOptions = {},
): Promise<Prepared<Record<string, unknown>>> {
  const { plaintext = JSON.stringify({ activationName }) } = options
  const path = '/pa/v3/activation/rename'
  const request = { path, resourceId: '/pa/activation/rename', label: '/pa/generic/activation', plaintext: bytesOf(plaintext) }
  return prepareSignedEncrypted(phone, request, options)
}

/** v3 §13 */
async function prepareDetail(
  phone: PhoneContext,
  token: PhoneToken,
  options: DetailOptions = {},
): Promise<Prepared<Record<string, unknown>>> {
  const prepared = await prepareEncrypted(phone, '/pa/v3/activation/detail', options)
  const header = tokenHeader(phone, token, options.tokenTimestamp ?? (await serverTime(phone)))
  return { ...prepared, headers: { ...prepared.headers, ...header } }
}

interface Status extends StatusBlob {
  /** The number of steps by which the server's counter is ahead of the phone's; undefined when it is behind, more than 255 ahead, or in 3.0. */
  readonly distance: number | undefined
}

/** The decrypted status of the activation (v3 §9.2 to §9.4); throws when the answer does not decrypt. */
async function readStatus({ options, state }: PhoneContext, request: StatusOptions = {}): Promise<Status> {
  const { withChallenge = hasNonce(options.version), url = options.url } = request
  const challenge = withChallenge ? random(16) : undefined
  const requestObject = { activationId: state.activationId, ...(challenge && { challenge: b64(challenge) }) }
  const answer = accepted(await sendJson(url, 'POST', '/pa/v3/activation/status', { requestObject }))
  const nonce = member(answer, 'responseObject', 'nonce')
  if ((nonce !== undefined) !== withChallenge) throw new Error('the nonce of the status answer does not fit the request')
  const blob = unb64(String(member(answer, 'responseObject', 'encryptedStatusBlob')))
  const opened = openStatusBlob(keysOf(state), blob, challenge, nonce === undefined ? undefined : unb64(String(nonce)))
  if (!opened) throw new Error('the status blob does not decrypt')
  return { ...opened, distance: findDistance(state, opened.ctrDataHash) }
}

function findDistance(state: PhoneState, hash: Uint8Array): number | undefined {
  for (let distance = 0, { ctrData } = state; distance < 256; distance += 1, ctrData = nextCtrData(ctrData))
    if (Buffer.compare(ctrDataHash(keysOf(state), ctrData), hash) === 0) return distance
  return undefined
}

/** A temporary key that no server issued, for requests that must be refused before the key is used. */
export const unknownTemporaryKey = (id: string): TemporaryKey => ({ id, publicKey: newKeyPair().uncompressed, expiresAt: 0 })
