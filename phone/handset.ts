// The phone of a user, of either generation: it is bound once, stored between two uses, and asks for a password. It stores each step of its
// counter before a request leaves, as the SDKs do, so it never makes a code twice.
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
  /** The same for `/api`, where that is another one. */
  readonly operationsUrl?: string
  readonly dialect: Dialect
  readonly version: PhoneVersion | '4.0'
  /** The algorithm of a phone of 4.0. */
  readonly algorithm?: PhoneAlgorithm
  readonly app: HandsetApp
}

export type HandsetFactors = 'possession' | 'possession_knowledge' | 'possession_biometry'

/** Keys beside the state, by which a request proves more than possession. */
export interface Proof {
  readonly factors: HandsetFactors
  readonly wrongKeys: { readonly knowledge?: Uint8Array }
}

/** The user's proof: the password, or biometry, for which a terminal has no reader. */
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
  /** The version that the server has it in, and the one that it may move to. */
  readonly currentVersion?: number
  readonly upgradeVersion?: number
}

/** Members of a direct activation (v3 §8.6, §8.8). */
export type Identity = Readonly<Record<string, string>>

/** What one generation of the protocol has to say; the rest is the same for both. */
export interface Generation {
  /** The state of the phone; undefined members are not there yet. */
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
  /** An encrypted request, in activation scope with the generic label; with a proof it is signed as well, over its plaintext. */
  readonly prepareEncrypted: (request: EncryptedRequest, proof: Proof | undefined) => Promise<Prepared<unknown>>
  readonly prepareToken: (proof: Proof) => Promise<Prepared<unknown>>
  readonly prepareRemove: (proof: Proof) => Prepared<unknown>
  readonly prepareRename: (name: string, proof: Proof) => Promise<Prepared<unknown>>
  readonly prepareTokenRemove: (id: string) => Prepared<unknown>
  /** Headers of a token for one request. */
  readonly tokenHeader: () => Promise<Record<string, string>>
  /** Agrees on a new key of knowledge where the server has one; the key of before where it has not. */
  readonly prepareNewKnowledge: (proof: Proof) => Promise<Prepared<Uint8Array>>
  /** Switches biometry on or off. Undefined when that is the phone's own affair. */
  readonly prepareBiometry: (isOn: boolean, proof: Proof) => Promise<Prepared<void>> | undefined
  readonly readStatus: () => Promise<HandsetStatus>
  /** The endpoint that checks a code over any body. */
  readonly validation: { readonly path: string; readonly resourceId: string }
  /** The request after the bank's commit: 4.0 confirms the activation. */
  readonly prepareConfirm: ((proof: Proof) => Prepared<unknown>) | undefined
}

/** What both generations say alike. */
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
      const { state: number, failedAttempts, maxFailedAttempts, currentVersion, upgradeVersion } = await phone.readStatus()
      return { state: STATES[number - 1] ?? `${number}`, failedAttempts, maxFailedAttempts, currentVersion, upgradeVersion }
    },
  }) satisfies Partial<Generation>

/** What the bank is told about this phone (v3 §8.2). */
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

/** Everything that has to be kept; JSON but for its bytes. */
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
  /** Writes the record down, before it returns. */
  readonly persist: () => void
}

export type Handset = ReturnType<typeof createHandset>

/** Makes a phone out of what is kept of it. */
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
  /** Throws when the way is not open to this phone. */
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
    /** Exchanges keys for an activation code or a login, and sets the password; the fingerprint that user and bank compare. */
    bind: async (by: string | Identity, name: string, password: string, otp?: string): Promise<string> => {
      const request = await generation.prepareBind(by, name, otp)
      const { fingerprint } = request.open(await transfer(request))
      // The keys are hidden before anything of them is written down.
      record.knowledge = hideKey(generation.takeKnowledge(), password)
      persist()
      return fingerprint
    },
    /** Confirms the activation after the bank's commit, in 4.0 and if it was not done before. */
    confirm: async (unlock: Unlock): Promise<void> => {
      if (record.isConfirmed || generation.prepareConfirm === undefined) return
      const reply = await transfer(generation.prepareConfirm(proofOf(unlock)))
      // A right code with this refusal: the activation is confirmed already, and that answer was lost (v4 §9.6).
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
    /** A request with a code, which counts as sent. */
    sign: (request: SignedRequest, unlock: Unlock | undefined): Prepared<unknown> => {
      const prepared = generation.prepareCode(request, unlock === undefined ? possession : proofOf(unlock))
      persist()
      return prepared
    },
    /** An encrypted request; with an unlock it is signed as well, and counts as sent. `open` of it gives the plaintext of the answer. */
    encrypt: async (request: EncryptedRequest, unlock: Unlock | undefined): Promise<Prepared<unknown>> => {
      const prepared = await generation.prepareEncrypted(request, unlock && proofOf(unlock))
      persist()
      return prepared
    },
    /**
     * Asks for a code by which another application of the bank is bound, with an OTP that both apps know (mobile-token §9). The text is that of a
     * QR code: code and signature.
     */
    askForCode: async (applicationId: string, otp: string, unlock: Unlock): Promise<string> => {
      const plaintext = JSON.stringify({ requestObject: { applicationId, otp } })
      const request = { path: '/api/activation/code', resourceId: '/api/activation/code', plaintext }
      const answer = await exchange(await generation.prepareEncrypted(request, proofOf(unlock)), identity.operationsUrl)
      const given = member(answer, 'responseObject')
      return `${String(member(given, 'activationCode'))}#${String(member(given, 'activationSignature'))}`
    },
    transfer,
    status: () => generation.readStatus(),
    rename: async (name: string, unlock: Unlock): Promise<unknown> =>
      exchange(await generation.prepareRename(name, proofOf(unlock))),
    remove: async (unlock: Unlock): Promise<unknown> => exchange(generation.prepareRemove(proofOf(unlock))),
    /** Throws when the server says that the old one is wrong, and changes nothing then. */
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

/** The activation code of a QR code or of what was typed. Throws when the text is signed, and by nobody whom the app knows (v3 §4.2). */
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
