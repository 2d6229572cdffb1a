// Implements a phone as protocol 4.0 describes it (v4 §8 to §11), with any of the three algorithms. It shares no code with the server. Every
// request is prepared first and sent later, so that a test can spoil it, repeat it, or send it many times at once.
import { v4DeviceSigners } from '../device-signature.ts'
import type { HttpReply } from '../http.ts'
import { member, send } from '../http.ts'
import { OIDC_CONFIG_PATH } from '../oidc.ts'
import { bodyOfOffline, type OfflineCovered } from '../offline-text.ts'
import { b64, bytesOf, signedData, unb64 } from '../v3/crypto.ts'
import type { EncryptedSigned } from '../v3/channel.ts'
import type { PhoneFactors, PhoneScope, PhoneToken, Prepared, SignOptions } from '../v3/state.ts'
import { accepted, parseObject } from '../v3/state.ts'
import {
  bytesIn,
  fetchV4TemporaryKey,
  moveV4Counter,
  newV4TemporaryKeyRequest,
  openV4TemporaryKey,
  prepareV4Encrypted,
  prepareV4EncryptedSigned,
  prepareV4Signed,
  prepareV4SignedEncrypted,
  sealV4,
  v4BodyOf,
  v4EncryptionHeader,
  v4FactorKeys,
  type V4RequestToSign,
  v4ServerTime,
  type V4TemporaryKeyRequest,
  v4TokenHeader,
} from './channel.ts'
import {
  agree,
  deriveV4Keys,
  kmac,
  newKemPair,
  offlineCode,
  openV4StatusBlob,
  type PhonePair,
  sharedSecretRequest,
  type SharedSecretResponse,
  v4CtrDataHash,
  v4Fingerprint,
  type V4StatusBlob,
} from './crypto.ts'
import type { V4EnvelopeOptions, V4PhoneContext, V4PhoneOptions, V4PhoneState, V4PlaintextOption } from './state.ts'
import { newV4State, v4KeysOf } from './state.ts'

export interface VirtualPhoneV4 extends ReturnType<typeof bindPhone> {
  /** A phone of the same activation that speaks another dialect. */
  readonly speaking: (change: Partial<V4PhoneOptions>) => VirtualPhoneV4
}

/** Makes a new phone, or with `state` a phone that goes on from that state. */
export const createPhoneV4 = (options: V4PhoneOptions, state = newV4State(options.algorithm)): VirtualPhoneV4 => ({
  ...bindPhone({ options, state }),
  speaking: (change) => createPhoneV4({ ...options, ...change }, state),
})

type ProtectedOptions = SignOptions & V4EnvelopeOptions & V4PlaintextOption
type EncryptedOptions = V4EnvelopeOptions & V4PlaintextOption

function bindPhone(phone: V4PhoneContext) {
  const { options, state } = phone
  const exchange = async <T>(request: Prepared<T>, url = options.url): Promise<T> => request.open(await send(url, request))
  const signed =
    (name: string, usual: Partial<V4RequestToSign> = {}) =>
    (request: Partial<V4RequestToSign> = {}) =>
      prepareV4Signed(phone, { path: `/pa/v4/${name}`, resourceId: `/pa/${name}`, ...usual, ...request })
  const confirmation = (enableBiometry: boolean) => ({ body: JSON.stringify({ requestObject: { enableBiometry } }) })
  return {
    ...phone,
    serverTime: () => v4ServerTime(phone),
    send: <T>(request: Prepared<T>, url = options.url): Promise<HttpReply> => send(url, request),
    /** Sends the request and opens the answer; throws when it was refused. */
    exchange,
    newTemporaryKeyRequest: (scope: PhoneScope) => newV4TemporaryKeyRequest(phone, scope),
    openTemporaryKey: (scope: PhoneScope, request: V4TemporaryKeyRequest, reply: HttpReply) =>
      openV4TemporaryKey(phone, scope, request, reply),
    fetchTemporaryKey: (scope: PhoneScope) => fetchV4TemporaryKey(phone, scope),
    encryptionHeader: (scope: PhoneScope) => v4EncryptionHeader(phone, scope),
    tokenHeader: (token: PhoneToken, timestamp: number, nonce?: Uint8Array) => v4TokenHeader(phone, token, timestamp, nonce),
    prepareActivation: (code: string, request?: V4ActivationOptions) => prepareActivation(phone, code, request),
    prepareConfirm: (enableBiometry: boolean, request: Partial<V4RequestToSign> = {}) =>
      signed('activation/confirm', confirmation(enableBiometry))(request),
    prepareSigned: (request: V4RequestToSign) => prepareV4Signed(phone, request),
    prepareValidation: signed('auth/validate'),
    prepareRemove: signed('activation/remove'),
    prepareTokenRemove: (tokenId: unknown, request: Partial<V4RequestToSign> = {}) =>
      signed('token/remove', { body: JSON.stringify({ requestObject: { tokenId } }) })(request),
    prepareTokenCreate: (request?: ProtectedOptions) => prepareTokenCreate(phone, request),
    prepareVaultUnlock: (keyIdentifier: unknown, request?: ProtectedOptions) => prepareVaultUnlock(phone, keyIdentifier, request),
    preparePasswordChange: (request?: FactorOptions) => prepareNewFactorKey(phone, 'password/change', request),
    prepareBiometryAdd: (request?: FactorOptions) => prepareNewFactorKey(phone, 'biometry/add', request),
    prepareBiometryRemove: signed('biometry/remove', { factors: 'possession' }),
    prepareRename: (activationName: unknown, request?: ProtectedOptions) => prepareRename(phone, activationName, request),
    prepareDetail: (token: PhoneToken, request?: DetailOptions) => prepareDetail(phone, token, request),
    /** Prepares a request that is encrypted with the generic label, with a code over its plaintext. */
    prepareSignedEncrypted: (request: Omit<EncryptedSigned, 'label'>, more: SignOptions & V4EnvelopeOptions = {}) =>
      prepareV4SignedEncrypted(phone, { label: '/pa/generic/activation', ...request }, more),
    /** Asks for the settings of an OpenID provider (v4 §8.8). */
    prepareOidcConfig: (providerId: unknown, request: EncryptedOptions = {}) =>
      prepareV4Encrypted(phone, OIDC_CONFIG_PATH, 'application', { plaintext: JSON.stringify({ providerId }), ...request }),
    prepareEncrypted: (path: string, scope: PhoneScope, request?: EncryptedOptions) =>
      prepareV4Encrypted(phone, path, scope, request),
    prepareUserInfo: (request?: EncryptedOptions) => prepareV4Encrypted(phone, '/pa/v4/user/info', 'activation', request),
    prepareConfiguration: (scope: PhoneScope, request?: EncryptedOptions) =>
      prepareV4Encrypted(phone, `/pa/v4/config/${scope}`, scope, request),
    prepareUpgradeStart: (authorize: Authorize, request?: UpgradeOptions) => prepareUpgradeStart(phone, authorize, request),
    prepareUpgradeConfirm: signed('upgrade/confirm', { factors: 'possession', body: '{}' }),
    readStatus: (request?: V4EnvelopeOptions) => readStatus(phone, request),
    activate: async (code: string, request?: V4ActivationOptions) => exchange(await prepareActivation(phone, code, request)),
    createToken: async (factors: PhoneFactors = 'possession_knowledge') => exchange(await prepareTokenCreate(phone, { factors })),
    /** Takes over a factor key that password/change or biometry/add gave. */
    adopt: (keys: Partial<Record<'knowledge' | 'biometry', Uint8Array>>) => {
      state.keys = { ...v4KeysOf(state), ...keys }
    },
    typeOtp: ({ operationId, operationData, ...request }: OfflineRequest) =>
      answerOffline(phone, { ...request, resourceId: '/operation/authorize/offline', body: `${operationId}&${operationData}` }),
    /** Computes the one-time password for free data of the bank. The counter moves. */
    answerOffline: (covered: OfflineCovered, options?: V4OfflineOptions) => answerOffline(phone, { ...covered, ...options }),
    isPersonalized: (payload: string) => isPersonalized(phone, payload),
    deviceSigners: () => v4DeviceSigners(options.algorithm, state.device),
    /** Moves the counter ahead, as do requests that never arrive. */
    skip: (steps: number) => moveV4Counter(phone, steps),
    /** Every secret the phone holds, by name. */
    secrets: (): Record<string, Uint8Array> => ({
      ...state.keys,
      devicePrivateKey: state.device.ecPrivate,
      ...(state.device.seed && { deviceSeed: state.device.seed }),
      ctrData: state.ctrData,
      ...Object.fromEntries(state.tokens.map((token, i) => [`tokenSecret${i}`, token.secret])),
    }),
  }
}

export interface V4ActivationOptions extends V4EnvelopeOptions, V4PlaintextOption {
  /** Members that replace those of layer 1 and layer 2; undefined removes one. */
  readonly layer1?: Readonly<Record<string, unknown>>
  readonly layer2?: Readonly<Record<string, unknown>>
  /** A given timestamp and nonce for layer 2. */
  readonly innerTimestamp?: number
  readonly innerNonce?: Uint8Array
  /** Another temporary key for layer 2. */
  readonly innerTemporaryKey?: V4EnvelopeOptions['temporaryKey']
  /** Changes the envelope of layer 2 before it is sealed in layer 1. */
  readonly alterInner?: (envelope: Record<string, string | number>) => unknown
}

export interface V4ActivationResult {
  readonly activationId: string
  readonly fingerprint: string
  /** The opened answers of both layers. */
  readonly layer1: Readonly<Record<string, unknown>>
  readonly layer2: Readonly<Record<string, unknown>>
}

/** Prepares both layers of an activation. The phone is activated when the answer is opened (v4 §8.4). */
async function prepareActivation(
  phone: V4PhoneContext,
  code: string,
  options: V4ActivationOptions = {},
): Promise<Prepared<V4ActivationResult>> {
  const temporaryKey = options.temporaryKey ?? (await fetchV4TemporaryKey(phone, 'application'))
  const timestamp = options.timestamp ?? (await v4ServerTime(phone))
  const pair = newKemPair(phone.options.algorithm)
  const members = { activationName: 'Test phone', platform: 'ios', deviceInfo: 'iPhone16,2' }
  const layer2 = bytesOf(JSON.stringify({ ...keyMembers(phone, pair), ...members, ...options.layer2 }))
  const inner = await sealV4(phone, '/pa/activation', 'application', layer2, {
    temporaryKey: options.innerTemporaryKey ?? temporaryKey,
    timestamp: options.innerTimestamp ?? timestamp,
    ...(options.innerNonce && { nonce: options.innerNonce }),
  })
  const activationData = options.alterInner ? options.alterInner(inner.envelope) : inner.envelope
  const usual = JSON.stringify({ type: 'CODE', identityAttributes: { code }, activationData, ...options.layer1 })
  const layer1 = bytesOf(options.plaintext ?? usual)
  const outer = await sealV4(phone, '/pa/generic/application', 'application', layer1, { ...options, temporaryKey, timestamp })
  return {
    method: 'POST',
    path: '/pa/v4/activation/create',
    headers: { 'Content-Type': 'application/json', ...v4EncryptionHeader(phone, 'application') },
    body: v4BodyOf(outer, options),
    open: (reply) => {
      const answer = parseObject(outer.open(accepted(reply)))
      const opened = parseObject(inner.open(answer.activationData))
      phone.state.activationId = String(opened.activationId)
      phone.state.counter = 0
      return { ...adoptKeys(phone, pair, opened), layer1: answer, layer2: opened }
    },
  }
}

/** The members by which the phone agrees on the secret of an activation. Device keys are compressed, as in the SDK (v4 §1.7). */
const keyMembers = ({ options, state: { device } }: V4PhoneContext, pair: PhonePair) => ({
  sharedSecretRequest: sharedSecretRequest(options.algorithm, pair),
  devicePublicKeys: { ecdsa: b64(device.ecCompressed), ...(device.spki && { mldsa: b64(device.spki) }) },
})

/** Derives the keys from an opened answer, and stores them in the state, which has the activation id already. */
function adoptKeys({ options, state }: V4PhoneContext, pair: PhonePair, opened: Record<string, unknown>) {
  const mldsa = member(opened, 'serverPublicKeys', 'mldsa')
  state.serverKeys = {
    ecdsa: bytesIn(opened, 'serverPublicKeys', 'ecdsa'),
    ...(mldsa !== undefined && { mldsa: unb64(String(mldsa)) }),
  }
  state.ctrData = unb64(String(opened.ctrData))
  state.keys = deriveV4Keys(agree(options.algorithm, pair, opened.sharedSecretResponse as SharedSecretResponse))
  const device = { ecdsa: state.device.ecPublic, mldsa: state.device.spki }
  const fingerprint = v4Fingerprint(options.algorithm, device, state.activationId, state.serverKeys)
  return { activationId: state.activationId, fingerprint }
}

/** v4 §9.9 */
function prepareTokenCreate(phone: V4PhoneContext, options: ProtectedOptions = {}): Promise<Prepared<PhoneToken>> {
  const { factors = 'possession_knowledge', plaintext = '{}' } = options
  return prepareV4EncryptedSigned(phone, protectedRequest('token/create', plaintext), options, (opened) => {
    const { tokenId, tokenSecret } = parseObject(opened)
    const token = { id: String(tokenId), secret: unb64(String(tokenSecret)), factors }
    phone.state.tokens.push(token)
    return token
  })
}

/** v4 §9.10. The answer opens to the vault key. */
function prepareVaultUnlock(
  phone: V4PhoneContext,
  keyIdentifier: unknown,
  options: ProtectedOptions = {},
): Promise<Prepared<Uint8Array>> {
  const { plaintext = JSON.stringify({ keyIdentifier, reason: 'FETCH_ENCRYPTION_KEY' }) } = options
  const request = protectedRequest('vault/unlock', plaintext)
  return prepareV4EncryptedSigned(phone, request, options, (opened) => bytesIn(parseObject(opened), 'vaultEncryptionKey'))
}

type FactorOptions = ProtectedOptions & { readonly pair?: PhonePair }

/** v4 §9.12, §9.13. The answer opens to the new key, which the phone uses only after `adopt`. */
function prepareNewFactorKey(
  phone: V4PhoneContext,
  name: 'password/change' | 'biometry/add',
  options: FactorOptions = {},
): Promise<Prepared<Uint8Array>> {
  const { algorithm } = phone.options
  const { pair = newKemPair(algorithm) } = options
  const { plaintext = JSON.stringify(sharedSecretRequest(algorithm, pair)) } = options
  return prepareV4EncryptedSigned(phone, protectedRequest(name, plaintext), options, (opened) =>
    agree(algorithm, pair, parseObject(opened) as unknown as SharedSecretResponse),
  )
}

const protectedRequest = (name: string, plaintext: string | Uint8Array) => ({
  path: `/pa/v4/${name}`,
  resourceId: `/pa/${name}`,
  label: `/pa/${name}`,
  plaintext: bytesOf(plaintext),
})

/** v4 §9.7 */
function prepareRename(phone: V4PhoneContext, activationName: unknown, options: ProtectedOptions = {}) {
  const { plaintext = JSON.stringify({ activationName }) } = options
  const request = { ...protectedRequest('activation/rename', plaintext), label: '/pa/generic/activation' }
  return prepareV4SignedEncrypted(phone, request, options)
}

type DetailOptions = EncryptedOptions & { readonly tokenTimestamp?: number }

/** v4 §9.7 */
async function prepareDetail(phone: V4PhoneContext, token: PhoneToken, options: DetailOptions = {}) {
  const prepared = await prepareV4Encrypted(phone, '/pa/v4/activation/detail', 'activation', options)
  const header = v4TokenHeader(phone, token, options.tokenTimestamp ?? (await v4ServerTime(phone)))
  return { ...prepared, headers: { ...prepared.headers, ...header } }
}

export interface V4Status extends V4StatusBlob {
  /** The number of steps by which the server's counter is ahead of the phone's; undefined when it is behind, or more than 255 ahead. */
  readonly distance: number | undefined
  /** Whether number and hash of the counter disagree. A phone that sees this gives up (v4 §9.4). */
  readonly isDeadlocked: boolean
  /** The opened answer. */
  readonly answer: Readonly<Record<string, unknown>>
}

/** Reads the status of the activation, and checks its MAC (v4 §9.4). */
async function readStatus(phone: V4PhoneContext, options: V4EnvelopeOptions = {}): Promise<V4Status> {
  const { state } = phone
  const request = await prepareV4Encrypted(phone, '/pa/v4/activation/status', 'activation', options)
  const answer = request.open(await send(phone.options.url, request))
  const blob = openV4StatusBlob(v4KeysOf(state), bytesIn(answer, 'activationStatus'))
  const distance = findDistance(phone, blob.ctrDataHash)
  const isDeadlocked = distance !== undefined && ((state.counter + distance) & 0xff) !== blob.ctrByte
  return { ...blob, distance, isDeadlocked, answer }
}

function findDistance({ state }: V4PhoneContext, hash: Uint8Array): number | undefined {
  const probe: V4PhoneState = { ...state }
  for (let distance = 0; distance < 256; distance += 1) {
    if (Buffer.compare(v4CtrDataHash(v4KeysOf(state), probe.ctrData), hash) === 0) return distance
    moveV4Counter({ options: {} as V4PhoneOptions, state: probe }, 1)
  }
  return undefined
}

/** The 3.x authorization header over a body, for `/pa/upgrade/start`, of the phone that is to be upgraded. */
export type Authorize = (body: Uint8Array) => Readonly<Record<string, string>>

interface UpgradeOptions extends EncryptedOptions {
  readonly enableBiometry?: boolean
  /** The numeric counter of the 3.x activation, which goes on. */
  readonly counter?: number
  readonly members?: Readonly<Record<string, unknown>>
}

/** v4 §10.2: prepares a code of 3.x over an envelope of 4.0 in application scope. The state must have the activation's id. */
async function prepareUpgradeStart(phone: V4PhoneContext, authorize: Authorize, options: UpgradeOptions = {}) {
  const pair = newKemPair(phone.options.algorithm)
  const members = { ...keyMembers(phone, pair), enableBiometry: options.enableBiometry ?? false, ...options.members }
  const plaintext = bytesOf(options.plaintext ?? JSON.stringify(members))
  const sealed = await sealV4(phone, '/pa/upgrade/start', 'application', plaintext, options)
  const body = v4BodyOf(sealed, options)
  const prepared: Prepared<{ activationId: string; fingerprint: string }> = {
    method: 'POST',
    path: '/pa/v4/upgrade/start',
    headers: { 'Content-Type': 'application/json', ...v4EncryptionHeader(phone, 'application'), ...authorize(body) },
    body,
    open: (reply) => {
      const adopted = adoptKeys(phone, pair, parseObject(sealed.open(accepted(reply))))
      phone.state.counter = options.counter ?? phone.state.counter
      return adopted
    },
  }
  return prepared
}

interface V4OfflineOptions extends SignOptions {
  readonly length?: number
}

export interface OfflineRequest extends V4OfflineOptions {
  readonly operationId: string
  readonly operationData: string
  /** Base64 text of the QR code. */
  readonly nonce: string
  readonly totp?: string
}

/** Computes the digits that the user types (v4 §11.1). The counter moves. */
function answerOffline(phone: V4PhoneContext, request: OfflineCovered & V4OfflineOptions): string {
  const data = signedData('POST', request.resourceId, unb64(request.nonce), bodyOfOffline(request), 'offline')
  const otp = offlineCode(v4FactorKeys(phone, request), phone.state.ctrData, data, request.length ?? 8)
  moveV4Counter(phone, 1)
  return otp
}

/** Whether the MAC in the text of a QR code is of this activation (v4 §11.2). */
function isPersonalized({ state }: V4PhoneContext, payload: string): boolean {
  const last = payload.slice(payload.lastIndexOf('\n') + 1)
  const head = payload.slice(0, payload.length - last.length + 1)
  return last.startsWith('2') && last.slice(1) === b64(kmac(v4KeysOf(state).macPersonalizedData, bytesOf(head), 'PA4MAC-QR'))
}
