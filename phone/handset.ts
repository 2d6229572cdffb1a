// Implements the phone of a user, of either generation: it is bound once, stored between two uses, and needs a password. It stores each step
// of its counter before a request leaves, as the SDKs do, so it never makes a code twice.
import { isEcdsa, type PhoneVersion, unb64 } from './v3/crypto.ts'
import type { Dialect } from './header.ts'
import { type HttpReply, member, send } from './http.ts'
import type { OidcConfig } from './oidc.ts'
import { type OfflineCovered, type OfflineText, splitOfflineText } from './offline-text.ts'
import { type OperationQr, SIGNED_CALLS, TOKEN_PATHS } from './operations.ts'
import { hideKey, type HiddenKey, revealKey } from './password.ts'
import { accepted, type Prepared } from './v3/state.ts'
import type { VirtualPhone } from './v3/virtual-phone.ts'
import { isEs384, type PhoneAlgorithm } from './v4/crypto.ts'
import { readSdkConfiguration } from './v4/state.ts'
import type { VirtualPhoneV4 } from './v4/virtual-phone.ts'

/** The values that are compiled into the app. A phone of 3.x needs the P-256 key, one of 4.0 the text for SDKs. */
export interface HandsetApp {
  /** Base64 of 16 bytes. */
  readonly applicationKey: string
  readonly applicationSecret: string
  /** Base64 of a point of P-256. */
  readonly masterPublicKey?: string
  readonly mobileSdkConfig?: string
}

export interface HandsetIdentity {
  /** The server's address for phones, with the path before `/pa`. */
  readonly url: string
  /** The server's address with the path before `/api`; by default `url`. */
  readonly operationsUrl?: string
  readonly dialect: Dialect
  readonly version: PhoneVersion | '4.0'
  /** The algorithm of a phone of 4.0. */
  readonly algorithm?: PhoneAlgorithm
  readonly app: HandsetApp
}

export type HandsetFactors = 'possession' | 'possession_knowledge' | 'possession_biometry'

/** The factors of a code, and the keys that are not in the state, by which a request proves more than possession. */
export interface Proof {
  readonly factors: HandsetFactors
  readonly wrongKeys: { readonly knowledge?: Uint8Array }
}

/** The user's proof: the password, or biometry. A terminal has no reader for biometry, so the phone simulates it. */
export interface Unlock {
  readonly password?: string
  readonly isByBiometry?: boolean
}

/** An operation as the phone lists it (mobile-token §4). */
export interface ListedOperation {
  readonly id: string
  readonly name?: string
  /** The data that the phone signs. */
  readonly data: string
  readonly status?: string
  readonly operationExpires?: string
  readonly formData: {
    readonly title: string
    readonly message: string
    readonly attributes?: readonly Record<string, unknown>[]
  }
}

export interface HandsetStatus {
  readonly state: string
  /** This and the next members come from the status blob, which 4.0 in the dialect Svc does not have. */
  readonly failedAttempts?: number
  readonly maxFailedAttempts?: number
  /** The version of the activation on the server, and the version that it may move to. */
  readonly currentVersion?: number
  readonly upgradeVersion?: number
}

/** Members of a direct activation (v3 §8.6, §8.8). */
export type Identity = Readonly<Record<string, string>>

/** The parts of a handset that differ between the generations of the protocol. */
export interface Generation {
  readonly state: { activationId: string; readonly tokens: { readonly id: string; readonly factors: string }[] }
  /** Prepares an activation by a code, or by the values with which a provider of the bank recognises the user. */
  readonly prepareBind: (
    by: string | Identity,
    name: string,
    activationOtp?: string,
  ) => Promise<Prepared<{ fingerprint: string }>>
  readonly prepareOidcConfig: (providerId: string) => Promise<Prepared<Record<string, unknown>>>
  /** Takes the key of knowledge out of the state. */
  readonly takeKnowledge: () => Uint8Array
  readonly scan: (text: string) => OperationQr
  readonly computeOtp: (qr: OperationQr, proof: Proof) => string
  /** Whether a text was made for this activation. */
  readonly isForThisPhone: (text: OfflineText) => boolean
  readonly answerOffline: (covered: OfflineCovered, proof: Proof) => string
  readonly prepareCode: (request: SignedRequest, proof: Proof) => Prepared<unknown>
  /** Prepares an encrypted request, in activation scope with the generic label. With a proof it is also signed, over its plaintext. */
  readonly prepareEncrypted: (request: EncryptedRequest, proof: Proof | undefined) => Promise<Prepared<unknown>>
  readonly prepareToken: (proof: Proof) => Promise<Prepared<unknown>>
  readonly prepareRemove: (proof: Proof) => Prepared<unknown>
  readonly prepareRename: (name: string, proof: Proof) => Promise<Prepared<unknown>>
  readonly prepareTokenRemove: (id: string) => Prepared<unknown>
  readonly tokenHeader: () => Promise<Record<string, string>>
  /** Agrees with the server on a new key of knowledge in 4.0; in 3.x the answer opens to the present key. */
  readonly prepareNewKnowledge: (proof: Proof) => Promise<Prepared<Uint8Array>>
  /** Switches biometry on or off; undefined when no request is needed for it. */
  readonly prepareBiometry: (isOn: boolean, proof: Proof) => Promise<Prepared<void>> | undefined
  readonly readStatus: () => Promise<HandsetStatus>
  /** The endpoint that checks a code over any body. */
  readonly validation: { readonly path: string; readonly resourceId: string }
  /** The request after the bank's commit: 4.0 confirms the activation. */
  readonly prepareConfirm: ((proof: Proof) => Prepared<unknown>) | undefined
}

/** The parts that are the same for both generations. */
export const createShared = (phone: VirtualPhone | VirtualPhoneV4) =>
  ({
    prepareBind: async (by, name, activationOtp) =>
      phone.prepareActivation(typeof by === 'string' ? by : '', {
        ...(typeof by !== 'string' && { layer1: { type: 'DIRECT', identityAttributes: by } }),
        layer2: { activationName: name, ...DEVICE, activationOtp },
      }),
    prepareOidcConfig: (providerId) => phone.prepareOidcConfig(providerId),
    answerOffline: (covered, proof) => phone.answerOffline(covered, proof),
    prepareCode: (request, proof) => phone.prepareSigned({ ...request, ...proof }),
    prepareToken: (proof) => phone.prepareTokenCreate(proof),
    prepareRemove: (proof) => phone.prepareRemove(proof),
    prepareRename: (name, proof) => phone.prepareRename(name, proof),
    prepareTokenRemove: (id) => phone.prepareTokenRemove(id, { factors: 'possession' }),
    tokenHeader: async () => {
      const [token] = phone.state.tokens
      if (token === undefined) throw new Error('the phone has no token')
      return phone.tokenHeader(token, await phone.serverTime())
    },
    readStatus: async () => {
      const { state: number, distance = 0, lookAhead, ...blob } = await phone.readStatus()
      if ('isDeadlocked' in blob && blob.isDeadlocked)
        throw new Error('the two counters of the server disagree: the activation is of no use any more (v4 §9.4)')
      const { failedAttempts, maxFailedAttempts, currentVersion, upgradeVersion } = blob
      // The server is ahead after codes whose answer was lost, and after a fence (v3 §9.3, v4 §9.4).
      if (distance < lookAhead) phone.skip(distance)
      return { state: STATES[number - 1] ?? `${number}`, failedAttempts, maxFailedAttempts, currentVersion, upgradeVersion }
    },
  }) satisfies Partial<Generation>

/** The phone's description of itself, which the bank can read (v3 §8.2). */
const DEVICE = { platform: 'unknown', deviceInfo: 'pawl phone' }

/** Numbers of the status blob, from 1 on (v3 §9.3). */
const STATES = ['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED']

export interface SignedRequest {
  readonly method?: string
  readonly path: string
  readonly query?: string
  readonly resourceId: string
  readonly body?: string
}

export interface EncryptedRequest {
  readonly path: string
  /** The resource id of the endpoint in the code, if there is a code. */
  readonly resourceId: string
  readonly plaintext: string
}

/** The stored data of a phone: JSON, apart from members that are bytes. */
export interface HandsetRecord {
  readonly identity: HandsetIdentity
  state: Generation['state']
  knowledge: HiddenKey | undefined
  isConfirmed: boolean
  isBiometryOn: boolean
  /** The record of the phone after its upgrade, once the server has confirmed it. */
  pending?: HandsetRecord
}

export interface HandsetParts {
  readonly record: HandsetRecord
  readonly generation: Generation
  /** Stores the record durably before it returns. */
  readonly persist: () => void
}

export type Handset = ReturnType<typeof createHandset>

export function createHandset({ record, generation, persist }: HandsetParts) {
  const { identity } = record
  const transfer = async (request: Prepared<unknown>, url = identity.url): Promise<HttpReply> => {
    persist()
    return send(url, request)
  }
  const exchange = async <T>(request: Prepared<T>, url?: string): Promise<T> => {
    const opened = request.open(await transfer(request, url))
    persist()
    return opened
  }
  /** Makes the proof. Throws when biometry is off, or when the password is missing. */
  const proofOf = ({ password, isByBiometry = false }: Unlock): Proof => {
    if (isByBiometry && !record.isBiometryOn) throw new Error('biometry is switched off on this phone')
    if (isByBiometry) return { factors: 'possession_biometry', wrongKeys: {} }
    if (password === undefined || record.knowledge === undefined) throw new Error('the password of the phone is needed')
    return { factors: 'possession_knowledge', wrongKeys: { knowledge: revealKey(record.knowledge, password) } }
  }
  const possession: Proof = { factors: 'possession', wrongKeys: {} }
  const callWithToken = async (path: string, requestObject: unknown, language?: string): Promise<unknown> => {
    const headers = {
      'Content-Type': 'application/json',
      ...(language !== undefined && { 'Accept-Language': language }),
      ...(await generation.tokenHeader()),
    }
    const request = { method: 'POST', path, headers, body: Buffer.from(JSON.stringify({ requestObject })), open: accepted }
    return member(await exchange(request, identity.operationsUrl), 'responseObject')
  }
  const signed = (call: keyof typeof SIGNED_CALLS, requestObject: unknown, proof: Proof) => {
    const [path, resourceId] = SIGNED_CALLS[call]
    const body = JSON.stringify({ requestObject })
    return exchange(generation.prepareCode({ path, resourceId, body }, proof), identity.operationsUrl)
  }
  return {
    record,
    generation,
    exchange,
    proofOf,
    /** Reads the settings for a login of the user at an OpenID provider. */
    readOidcConfig: async (providerId: string): Promise<OidcConfig> => {
      const request = await generation.prepareOidcConfig(providerId)
      return (await exchange(request, identity.operationsUrl))['responseObject'] as OidcConfig
    },
    /** Exchanges keys by an activation code or a login, and sets the password. Returns the fingerprint, which user and bank compare. */
    bind: async (by: string | Identity, name: string, password: string, otp?: string): Promise<string> => {
      const request = await generation.prepareBind(by, name, otp)
      const { fingerprint } = request.open(await transfer(request))
      // The password hides the key before the record is stored.
      record.knowledge = hideKey(generation.takeKnowledge(), password)
      persist()
      return fingerprint
    },
    /** Confirms the activation after the bank's commit; does nothing in 3.x, and when it is confirmed already. */
    confirm: async (unlock: Unlock): Promise<void> => {
      if (record.isConfirmed || generation.prepareConfirm === undefined) return
      const reply = await transfer(generation.prepareConfirm(proofOf(unlock)))
      // This refusal of a right code means that the activation is confirmed already, and that the answer was lost (v4 §9.6).
      if (member(reply.json, 'responseObject', 'code') !== 'ERR_ACTIVATION') accepted(reply)
      record.isConfirmed = true
      persist()
    },
    hasToken: (): boolean => generation.state.tokens.length > 0,
    createToken: async (unlock: Unlock): Promise<void> => void (await exchange(await generation.prepareToken(proofOf(unlock)))),
    removeTokens: async (): Promise<number> => {
      const tokens = [...generation.state.tokens]
      for (const { id } of tokens) {
        await exchange(generation.prepareTokenRemove(id))
        generation.state.tokens.splice(0, 1)
        persist()
      }
      return tokens.length
    },
    list: async (language?: string) => (await callWithToken(TOKEN_PATHS.list, {}, language)) as readonly ListedOperation[],
    approve: async ({ id, data }: ListedOperation, unlock: Unlock): Promise<unknown> =>
      signed('authorize', { id, data }, proofOf(unlock)),
    reject: async (id: string, reason: string | undefined): Promise<unknown> => signed('cancel', { id, reason }, possession),
    scan: (text: string): OperationQr => generation.scan(text),
    computeOtp: (qr: OperationQr, unlock: Unlock): string => {
      const otp = generation.computeOtp(qr, proofOf(unlock))
      persist()
      return otp
    },
    /** Reads a text over free data. Throws when neither this activation nor its application has signed it. */
    scanFree: (text: string, hasTotp: boolean): OfflineText => {
      const read = splitOfflineText(text, hasTotp)
      const isOfMaster = read.kind === '0' && isSignedByMaster(identity.app, read.head, read.proof)
      if (!isOfMaster && !generation.isForThisPhone(read)) throw new Error('the QR code was not made for this phone')
      return read
    },
    answerOffline: (covered: OfflineCovered, unlock: Unlock): string => {
      const otp = generation.answerOffline(covered, proofOf(unlock))
      persist()
      return otp
    },
    /** Prepares a request with a code. The counter moves, whether the request is sent or not. */
    sign: (request: SignedRequest, unlock: Unlock | undefined): Prepared<unknown> => {
      const prepared = generation.prepareCode(request, unlock === undefined ? possession : proofOf(unlock))
      persist()
      return prepared
    },
    /** Prepares an encrypted request. With an unlock it is also signed, and the counter moves. Its `open` returns the plaintext of the answer. */
    encrypt: async (request: EncryptedRequest, unlock: Unlock | undefined): Promise<Prepared<unknown>> => {
      const prepared = await generation.prepareEncrypted(request, unlock && proofOf(unlock))
      persist()
      return prepared
    },
    /**
     * Asks for a code that binds another application of the bank, with an OTP that both apps know (mobile-token §9). Returns the text of a QR code:
     * code and signature.
     */
    askForCode: async (applicationId: string, otp: string, unlock: Unlock): Promise<string> => {
      const plaintext = JSON.stringify({ requestObject: { applicationId, otp } })
      const request = { path: '/api/activation/code', resourceId: '/api/activation/code', plaintext }
      const answer = await exchange(await generation.prepareEncrypted(request, proofOf(unlock)), identity.operationsUrl)
      const given = member(answer, 'responseObject')
      return `${String(member(given, 'activationCode'))}#${String(member(given, 'activationSignature'))}`
    },
    transfer,
    /** Reads the status, and moves the counter on to that of the server when it is ahead by less than the look-ahead. */
    status: async () => {
      const status = await generation.readStatus()
      persist()
      return status
    },
    rename: async (name: string, unlock: Unlock): Promise<unknown> =>
      exchange(await generation.prepareRename(name, proofOf(unlock))),
    remove: async (unlock: Unlock): Promise<unknown> => exchange(generation.prepareRemove(proofOf(unlock))),
    /** Changes the password. Throws and changes nothing when the server refuses the old one. */
    changePassword: async (password: string, next: string): Promise<void> => {
      const key = await exchange(await generation.prepareNewKnowledge(proofOf({ password })))
      record.knowledge = hideKey(key, next)
      persist()
    },
    setBiometry: async (isOn: boolean, unlock: Unlock): Promise<void> => {
      const request = generation.prepareBiometry(isOn, isOn ? proofOf(unlock) : possession)
      if (request !== undefined) await exchange(await request)
      record.isBiometryOn = isOn
      persist()
    },
  }
}

/** Reads the activation code in the text of a QR code or in a typed text. Throws when a signature is not of a master key (v3 §4.2). */
export function readActivationCode(text: string, app: HandsetApp): string {
  const [code = '', signature] = text.trim().split('#')
  if (signature === undefined) return code
  if (!isSignedByMaster(app, code, unb64(signature)))
    throw new Error('the QR code is not signed by the server of this application')
  return code
}

/** Whether a master key of the application has signed a text. */
function isSignedByMaster(app: HandsetApp, text: string, signature: Uint8Array): boolean {
  const sdk = app.mobileSdkConfig === undefined ? undefined : readSdkConfiguration(app.mobileSdkConfig)
  const p256 = app.masterPublicKey === undefined ? sdk?.p256 : unb64(app.masterPublicKey)
  const message = Buffer.from(text)
  return (
    (p256 !== undefined && isEcdsa(p256, message, signature)) ||
    (sdk !== undefined && isEs384(sdk.p384, message, signature, 'der'))
  )
}
