// The virtual phone of the demo, of either generation: bound, kept in a file between two commands, listing and approving operations.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { unb64 } from '../phone/crypto.ts'
import { type HttpReply, member } from '../phone/http.ts'
import { type OperationQr, SIGNED_CALLS, TOKEN_PATHS } from '../phone/operations.ts'
import { accepted, type PhoneState, type Prepared } from '../phone/state.ts'
import type { PhoneAlgorithm } from '../phone/v4-crypto.ts'
import { readSdkConfiguration, type V4PhoneState } from '../phone/v4-state.ts'
import { createPhoneV4, type VirtualPhoneV4 } from '../phone/virtual-phone-v4.ts'
import { createPhone, type VirtualPhone } from '../phone/virtual-phone.ts'

/** Whose phone it is, and of which app. */
export interface PhoneIdentity {
  /** Where phones reach the server. */
  readonly url: string
  readonly applicationId: string
  readonly userId: string
  /** Of protocol 4.0; without it the phone speaks 3.3. */
  readonly algorithm?: PhoneAlgorithm
  /** What is compiled into its app, as the administration API tells it. */
  readonly app: { appKey: string; appSecret: string; masterServerPublicKey: string; mobileSdkConfig: string }
}

/** An operation as the phone lists it. */
export interface ListedOperation {
  readonly id: string
  /** What is signed. */
  readonly data: string
  readonly formData: { readonly title: string; readonly message: string; readonly attributes: Record<string, unknown>[] }
}

export interface DemoPhone {
  readonly identity: PhoneIdentity
  readonly activationId: string
  /** Exchanges keys for an activation code; the fingerprint that user and bank compare. */
  readonly bind: (code: string) => Promise<string>
  /** What the phone does once the bank has committed it: 4.0 confirms, and both make the token that lists operations. */
  readonly begin: () => Promise<void>
  /** A request with a code of possession and knowledge over this body. */
  readonly prepareSigned: (body: string) => Prepared<unknown>
  readonly send: (request: Prepared<unknown>) => Promise<HttpReply>
  readonly list: () => Promise<readonly ListedOperation[]>
  /** Throws when the server refuses. */
  readonly approve: (operation: ListedOperation) => Promise<unknown>
  /** Checks and reads a QR code as the SDKs do. Throws when they would refuse it. */
  readonly scan: (text: string) => OperationQr
  /** The one-time password for a scanned operation; the phone has no connection. */
  readonly computeOtp: (qr: OperationQr) => string
  /** Writes it down, counter and keys included. */
  readonly save: (path: string) => void
}

/** A new phone, or with `state` one that goes on where another stopped. */
export function createDemoPhone(identity: PhoneIdentity, state?: PhoneState | V4PhoneState): DemoPhone {
  const phone = identity.algorithm === undefined ? createOf3(identity, state) : createOf4(identity, identity.algorithm, state)
  return {
    ...phone,
    identity,
    get activationId() {
      return phone.state.activationId
    },
    list: async () => (await phone.callWithToken(TOKEN_PATHS.list)) as readonly ListedOperation[],
    approve: async ({ id, data }) => {
      const request = phone.prepareCode(...SIGNED_CALLS.authorize, JSON.stringify({ requestObject: { id, data } }))
      return request.open(await phone.send(request))
    },
    save: (path) => {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      writeFileSync(path, `${JSON.stringify(encode({ identity, state: phone.state }))}\n`, { mode: 0o600 })
    },
  }
}

/** The phone that a file holds; undefined when there is none. */
export function loadDemoPhone(path: string): DemoPhone | undefined {
  try {
    const { identity, state } = decode(JSON.parse(readFileSync(path, 'utf8'))) as { identity: PhoneIdentity; state: PhoneState }
    return createDemoPhone(identity, state)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw new Error(`${path} holds no phone of the demo`, { cause: error })
  }
}

function createOf3({ url, app }: PhoneIdentity, state: PhoneState | V4PhoneState | undefined) {
  const { appKey: applicationKey, appSecret: applicationSecret, masterServerPublicKey } = app
  const options = {
    url,
    version: '3.3',
    app: { applicationKey, applicationSecret, masterPublicKey: unb64(masterServerPublicKey) },
  } as const
  const phone: VirtualPhone = createPhone(options, state as PhoneState | undefined)
  return {
    state: phone.state,
    send: (request: Prepared<unknown>) => phone.send(request),
    bind: async (code: string) => (await phone.activate(code)).fingerprint,
    begin: async () => void (await phone.createToken()),
    prepareSigned: (body: string) => phone.prepareValidation({ body }),
    prepareCode: (path: string, resourceId: string, body: string) => phone.prepareSigned({ path, resourceId, body }),
    callWithToken: async (path: string) => {
      const [token] = phone.state.tokens
      if (token === undefined) throw new Error('the phone has no token')
      return post(phone, path, phone.tokenHeader(token, await phone.serverTime()))
    },
    scan: (text: string) => phone.scanOperation(text),
    computeOtp: (qr: OperationQr) => phone.computeOtp(qr),
  }
}

function createOf4({ url, app }: PhoneIdentity, algorithm: PhoneAlgorithm, state: PhoneState | V4PhoneState | undefined) {
  const options = { url, algorithm, app: readSdkConfiguration(app.mobileSdkConfig) }
  const phone: VirtualPhoneV4 = createPhoneV4(options, state as V4PhoneState | undefined)
  return {
    state: phone.state,
    send: (request: Prepared<unknown>) => phone.send(request),
    bind: async (code: string) => (await phone.activate(code)).fingerprint,
    begin: async () => {
      await phone.exchange(phone.prepareConfirm(true))
      await phone.createToken()
    },
    prepareSigned: (body: string) => phone.prepareValidation({ body }),
    prepareCode: (path: string, resourceId: string, body: string) => phone.prepareSigned({ path, resourceId, body }),
    callWithToken: async (path: string) => {
      const [token] = phone.state.tokens
      if (token === undefined) throw new Error('the phone has no token')
      return post(phone, path, phone.tokenHeader(token, await phone.serverTime()))
    },
    scan: (text: string) => scanOf4(phone, text),
    computeOtp: ({ operationId, data, nonce, totp }: OperationQr) =>
      phone.typeOtp({ operationId, operationData: data, nonce, ...(totp !== undefined && { totp }) }),
  }
}

/** Calls the mobile token API; the answer's object. */
async function post(
  phone: { readonly send: (request: Prepared<unknown>) => Promise<HttpReply> },
  path: string,
  token: Record<string, string>,
): Promise<unknown> {
  const headers = { 'Content-Type': 'application/json', ...token }
  const request = { method: 'POST', path, headers, body: Buffer.from('{"requestObject":{}}'), open: accepted }
  return member(request.open(await phone.send(request)), 'responseObject')
}

/** A QR code of 4.0 proves itself by a MAC of the activation (v4 §11.2). */
function scanOf4(phone: VirtualPhoneV4, text: string): OperationQr {
  if (!phone.isPersonalized(text)) throw new Error('the QR code was not made for this phone')
  const lines = text.split('\n')
  const [operationId = '', title = '', message = '', data = '', flags = '', totp] = lines
  return { operationId, title, message, data, flags, totp: lines.length > 7 ? totp : undefined, nonce: lines.at(-2) ?? '' }
}

/** Bytes as `{"base64":"..."}`, everything else as JSON has it. */
function encode(value: unknown): unknown {
  if (value instanceof Uint8Array) return { base64: Buffer.from(value).toString('base64') }
  if (Array.isArray(value)) return value.map(encode)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, encode(part)]))
}

function decode(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(decode)
  if (typeof value !== 'object' || value === null) return value
  const { base64, ...others } = value as Record<string, unknown>
  if (typeof base64 === 'string' && Object.keys(others).length === 0) return unb64(base64)
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, decode(part)]))
}
