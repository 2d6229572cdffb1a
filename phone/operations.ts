// Lists, approves and rejects operations as a phone does, online and by a QR code, registers for pushes and reads the inbox (mobile-token §4,
// §7, §8; v3 §15). It was written from the specification, without code of the server.
import { prepareSigned, serverTime, tokenHeader } from './v3/channel.ts'
import type { PhoneKeys } from './v3/crypto.ts'
import { bodyOfOffline, type OfflineCovered, type OfflineText } from './offline-text.ts'
import { bytesOf, computeSignature, isEcdsa, nextCtrData, signedData, unb64 } from './v3/crypto.ts'
import type { PhoneContext, PhoneFactors, PhoneToken, Prepared, SignOptions } from './v3/state.ts'
import { accepted, keysOf } from './v3/state.ts'

export const TOKEN_PATHS = {
  list: '/api/auth/token/app/operation/list',
  detail: '/api/auth/token/app/operation/detail',
  claim: '/api/auth/token/app/operation/detail/claim',
  push: '/api/push/device/register',
  pushToken: '/api/push/device/register/token',
  inboxCount: '/api/inbox/count',
  inboxList: '/api/inbox/message/list',
  inboxDetail: '/api/inbox/message/detail',
  inboxRead: '/api/inbox/message/read',
  inboxReadAll: '/api/inbox/message/read-all',
} as const
export type TokenCall = keyof typeof TOKEN_PATHS

/** Path and resource id of the calls with a code. */
export const SIGNED_CALLS = {
  authorize: ['/api/auth/token/app/operation/authorize', '/operation/authorize'],
  cancel: ['/api/auth/token/app/operation/cancel', '/operation/cancel'],
  history: ['/api/auth/token/app/operation/history', '/operation/history'],
} as const
export type SignedCall = keyof typeof SIGNED_CALLS

export interface TokenOptions {
  /** The body to send unchanged, in place of the request object. */
  readonly body?: string | Uint8Array
  /** Milliseconds; the server's time when absent. */
  readonly timestamp?: number
  readonly nonce?: Uint8Array
  readonly language?: string
}

export interface OperationSignOptions extends SignOptions {
  /** The body to sign and send, in place of the usual one. */
  readonly body?: string | Uint8Array
  /** The content type: JSON when absent, none when undefined. */
  readonly contentType?: string | undefined
  readonly language?: string
}

export interface AuthorizeOptions extends OperationSignOptions {
  readonly proximityCheck?: unknown
  readonly mobileTokenData?: unknown
}

export interface RejectOptions extends OperationSignOptions {
  readonly reason?: unknown
  readonly mobileTokenData?: unknown
}

/** The members of an operation that an approval needs. */
export interface ApprovableOperation {
  readonly id: unknown
  readonly data?: unknown
}

/** The contents of a QR code with a right signature. */
export interface OperationQr {
  readonly operationId: string
  readonly title: string
  readonly message: string
  readonly data: string
  readonly flags: string
  /** The digits of a proximity check; undefined without one. */
  readonly totp: string | undefined
  /** Base64 of 16 bytes. */
  readonly nonce: string
}

/** The calls of the mobile token API, for one phone. */
export const bindOperations = (phone: PhoneContext) => ({
  /** A call with a token; `requestObject` undefined sends `{}`. */
  prepareTokenCall: (call: TokenCall, token: PhoneToken, requestObject?: unknown, options?: TokenOptions) =>
    prepareTokenCall(phone, TOKEN_PATHS[call], token, requestObject, options),
  prepareSignedCall: (call: SignedCall, requestObject?: unknown, options?: OperationSignOptions) =>
    prepareSignedCall(phone, call, requestObject, options),
  prepareAuthorize: ({ id, data }: ApprovableOperation, options: AuthorizeOptions = {}) => {
    const { proximityCheck, mobileTokenData } = options
    return prepareSignedCall(phone, 'authorize', { id, data, proximityCheck, mobileTokenData }, options)
  },
  prepareReject: (id: unknown, options: RejectOptions = {}) => {
    const { reason, mobileTokenData } = options
    return prepareSignedCall(phone, 'cancel', { id, reason, mobileTokenData }, { factors: 'possession', ...options })
  },
  /** Reads a QR code as the SDKs do; throws when they would refuse it. */
  scanOperation: (text: string) => scanOperation(text, phone.state.serverPublicKey),
  /** Computes the one-time password for a scanned operation: two groups of eight digits. The counter moves. */
  computeOtp: (qr: OperationQr, options?: SignOptions) => answerOffline(phone, coveredOf(qr), options),
  /** Whether the server key of this activation made the proof of a QR text. */
  isForThisPhone: ({ kind, head, proof }: OfflineText) =>
    kind === '1' && isEcdsa(phone.state.serverPublicKey, bytesOf(head), proof),
  /** Computes the one-time password for free data of the bank. The counter moves. */
  answerOffline: (covered: OfflineCovered, options?: SignOptions) => answerOffline(phone, covered, options),
})

const coveredOf = ({ operationId, data, nonce, totp }: OperationQr): OfflineCovered => ({
  resourceId: '/operation/authorize/offline',
  body: `${operationId}&${data}`,
  nonce,
  totp,
})

async function prepareTokenCall(
  phone: PhoneContext,
  path: string,
  token: PhoneToken,
  requestObject: unknown,
  options: TokenOptions = {},
): Promise<Prepared<unknown>> {
  const { body = JSON.stringify({ requestObject }), language } = options
  const timestamp = options.timestamp ?? (await serverTime(phone))
  return {
    method: 'POST',
    path,
    headers: {
      'Content-Type': 'application/json',
      ...(language !== undefined && { 'Accept-Language': language }),
      ...tokenHeader(phone, token, timestamp, options.nonce),
    },
    body: typeof body === 'string' ? bytesOf(body) : body,
    open: accepted,
  }
}

function prepareSignedCall(
  phone: PhoneContext,
  call: SignedCall,
  requestObject: unknown,
  options: OperationSignOptions = {},
): Prepared<unknown> {
  const [path, resourceId] = SIGNED_CALLS[call]
  const { language } = options
  const prepared = prepareSigned(phone, { body: JSON.stringify({ requestObject }), ...options, path, resourceId })
  return language === undefined ? prepared : { ...prepared, headers: { ...prepared.headers, 'Accept-Language': language } }
}

function scanOperation(text: string, serverPublicKey: Uint8Array): OperationQr {
  const lines = text.split('\n')
  if (lines.length < 7) throw new Error(`the QR text of an operation has 7 lines or more, and this one has ${lines.length}`)
  const [operationId = '', title = '', message = '', data = '', flags = '', totp] = lines
  const nonce = lines.at(-2) ?? ''
  const last = lines.at(-1) ?? ''
  const signature = unb64(last.slice(1))
  const signed = bytesOf(text.slice(0, text.length - last.length + 1))
  if (!last.startsWith('1')) throw new Error(`a QR text signed with the key ${last.slice(0, 1)}`)
  if (unb64(nonce).length !== 16) throw new Error('the nonce of a QR text has not 16 bytes')
  if (signature.length < 64 || !isEcdsa(serverPublicKey, signed, signature))
    throw new Error('the signature of a QR text is wrong')
  return { operationId, title, message, data, flags, totp: lines.length > 7 ? totp : undefined, nonce }
}

function answerOffline({ state }: PhoneContext, covered: OfflineCovered, options: SignOptions = {}): string {
  const { factors = 'possession_knowledge', wrongKeys = {} } = options
  const own: PhoneKeys = { ...keysOf(state), ...wrongKeys }
  const keys = factors.split('_').map((factor) => own[factor as Extract<PhoneFactors, 'possession' | 'knowledge' | 'biometry'>])
  const signed = signedData('POST', covered.resourceId, unb64(covered.nonce), bodyOfOffline(covered), 'offline')
  // One-time passwords are decimal in every version, as all codes of 3.0 are.
  const otp = computeSignature('3.0', keys, state.ctrData, signed)
  state.ctrData = nextCtrData(state.ctrData)
  state.counter += 1
  return otp
}
