// Calls the cloud and administration API as a bank, with HTTP Basic (cloud §2, §3, §6, §10).
import type { HttpReply } from '../../phone/http.ts'
import { member, send, sendJson } from '../../phone/http.ts'
import { unb64 } from '../../phone/v3/crypto.ts'
import type { AppConfiguration } from '../../phone/v3/state.ts'

export interface Bank {
  readonly url: string
  /** The credential as `user:password`; undefined sends none. */
  readonly credential: string | undefined
  /** Sends a request with a JSON body, or without a body. */
  readonly call: (method: string, path: string, json?: unknown) => Promise<HttpReply>
  /** Sends a request with a body of any bytes and type. */
  readonly callRaw: (method: string, path: string, body: Uint8Array | string, contentType?: string) => Promise<HttpReply>
  readonly createApplication: (id: unknown) => Promise<HttpReply>
  readonly register: (userId: unknown) => Promise<HttpReply>
  readonly commit: (userId: unknown, more?: Readonly<Record<string, unknown>>) => Promise<HttpReply>
  readonly change: (userId: unknown, change: unknown, more?: Readonly<Record<string, unknown>>) => Promise<HttpReply>
  readonly remove: (userId: string) => Promise<HttpReply>
  readonly view: (userId: string) => Promise<HttpReply>
  readonly createOperation: (body: unknown, headers?: Readonly<Record<string, string>>) => Promise<HttpReply>
  /** Creates an operation at /v2, with `registrationId`, `applicationFlag`, `expiresAt`, or without a user (cloud §6.10). */
  readonly createDeviceOperation: (body: unknown, headers?: Readonly<Record<string, string>>) => Promise<HttpReply>
  readonly readOperation: (operationId: string) => Promise<HttpReply>
  readonly cancelOperation: (operationId: string, statusReason?: string) => Promise<HttpReply>
  readonly offlineQr: (operationId: string) => Promise<HttpReply>
  readonly offlineOtp: (operationId: unknown, otp: unknown, nonce: unknown) => Promise<HttpReply>
  /** The same client with another credential or address. */
  readonly as: (credential: string | undefined, url?: string) => Bank
}

/** Makes a client of `url` that sends `credential` (`user:password`). */
export function createBank(url: string, credential: string | undefined): Bank {
  const headers = basicAuthorization(credential)
  const call = (method: string, path: string, json?: unknown): Promise<HttpReply> => sendJson(url, method, path, json, headers)
  return {
    url,
    credential,
    call,
    callRaw: (method, path, body, contentType) =>
      send(url, {
        method,
        path,
        headers: { ...headers, ...(contentType && { 'Content-Type': contentType }) },
        body: Buffer.from(body),
      }),
    createApplication: (id) => call('POST', '/admin/application', { id }),
    register: (userId) => call('POST', '/registration', { userId }),
    commit: (userId, more) => call('POST', '/registration/commit', { userId, ...more }),
    change: (userId, change, more) => call('PUT', '/registration', { userId, change, ...more }),
    remove: (userId) => call('DELETE', `/registration?userId=${encodeURIComponent(userId)}`),
    view: (userId) => call('GET', `/registration?userId=${encodeURIComponent(userId)}`),
    createDeviceOperation: (body, more) => sendJson(url, 'POST', '/v2/operations', body, { ...headers, ...more }),
    createOperation: (body, more) => sendJson(url, 'POST', '/operations', body, { ...headers, ...more }),
    readOperation: (operationId) => call('GET', `/operations?operationId=${encodeURIComponent(operationId)}`),
    cancelOperation: (operationId, statusReason) => {
      const reason = statusReason === undefined ? '' : `&statusReason=${encodeURIComponent(statusReason)}`
      return call('DELETE', `/operations?operationId=${encodeURIComponent(operationId)}${reason}`)
    },
    offlineQr: (operationId) => call('GET', `/operations/offline/qr?operationId=${encodeURIComponent(operationId)}`),
    offlineOtp: (operationId, otp, nonce) => call('POST', '/operations/offline/otp', { operationId, otp, nonce }),
    as: (other, otherUrl = url) => createBank(otherUrl, other),
  }
}

/** `Authorization: Basic ...` of a credential, UTF-8. */
export const basicAuthorization = (credential: string | undefined): Record<string, string> =>
  credential === undefined ? {} : { Authorization: `Basic ${Buffer.from(credential, 'utf8').toString('base64')}` }

/** The application configuration in an answer of /admin/application; throws when the answer is a refusal. */
export function readApplication(reply: HttpReply): AppConfiguration {
  const object = member(reply.json, 'responseObject')
  if (reply.status !== 200) throw new Error(`HTTP ${reply.status} ${reply.text}`)
  return {
    applicationKey: String(member(object, 'appKey')),
    applicationSecret: String(member(object, 'appSecret')),
    masterPublicKey: unb64(String(member(object, 'masterServerPublicKey'))),
  }
}

/** The activation code and its signature in `activationQrCodeData`; throws when the answer is a refusal. */
export function readQrCode(reply: HttpReply): { code: string; signature: Uint8Array } {
  const qr = member(reply.json, 'activationQrCodeData')
  if (reply.status !== 200 || typeof qr !== 'string') throw new Error(`HTTP ${reply.status} ${reply.text}`)
  const [code = '', signature = ''] = qr.split('#')
  return { code, signature: unb64(signature) }
}
