// Expects refusals with their exact form, and that a refusal changes nothing.
import { expect } from 'vitest'
import type { HttpReply } from '../../phone/http.ts'
import { member } from '../../phone/http.ts'
import type { Dialect } from '../../phone/header.ts'
import type { VirtualPhone } from '../../phone/v3/virtual-phone.ts'

/** State byte of the status blob (v3 §9.3). */
export const STATE = { CREATED: 1, PENDING_COMMIT: 2, ACTIVE: 3, BLOCKED: 4, REMOVED: 5 } as const

/** Time windows (v3 §14) and lifetimes (v3 §18), milliseconds. */
export const SECOND = 1_000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE

/** Refusals of the device API that many endpoints share: HTTP status, code, message without its prefix (v3 §16). */
export const REFUSED = {
  signature: [401, 'ERR_AUTHENTICATION', 'SIGNATURE_INVALID'],
  request: [401, 'ERR_AUTHENTICATION', 'REQUEST_INVALID'],
  header: [401, 'ERR_AUTHENTICATION', 'HTTP_HEADER_MISSING'],
  token: [401, 'ERR_AUTHENTICATION', 'TOKEN_ERROR'],
  encryption: [400, 'ERR_ENCRYPTION', 'ENCRYPTION_FAILED'],
  activation: [400, 'ERR_ACTIVATION', 'ACTIVATION_INVALID'],
  vault: [400, 'ERR_SECURE_VAULT', 'SECURE_VAULT_INVALID'],
  userInfo: [400, 'ERR_USER_INFO', 'USER_INFO_ERROR'],
  temporaryKey: [400, 'ERR_TEMPORARY_KEY', 'TEMPORARY_KEY_FAILURE'],
} as const satisfies Record<string, readonly [number, string, string]>

/** Expects a refusal of the device API with exactly this status, code and message. */
export function expectRefused(reply: HttpReply, refusal: keyof typeof REFUSED, dialect: Dialect = 'PowerAuth'): void {
  const [status, code, message] = REFUSED[refusal]
  const prefix = dialect === 'Svc' ? 'SVC_' : 'POWER_AUTH_'
  expect({ status: reply.status, json: reply.json }).toEqual({
    status,
    json: { status: 'ERROR', responseObject: { code, message: prefix + message } },
  })
  expect(reply.headers['content-type']).toMatch(/^application\/json/)
}

/** Expects an error envelope with this status and code and a message of any text (ERR_VALIDATION, ERROR_NOT_FOUND, cloud API). */
export function expectError(reply: HttpReply, status: number, code: string): void {
  const message = member(reply.json, 'responseObject', 'message')
  expect({ status: reply.status, envelope: member(reply.json, 'status'), code: errorCode(reply) }, reply.text).toEqual({
    status,
    envelope: 'ERROR',
    code,
  })
  expect(typeof message === 'string' && message.length > 0, reply.text).toBe(true)
  // An error whose code stands for many mistakes must say which it was.
  if (['ERROR_REQUEST', 'ERROR_ADMIN', 'ERROR_AUDIT'].includes(code))
    expect(member(reply.json, 'responseObject', 'violations', '0', 'hint'), reply.text).toEqual(expect.any(String))
  expect(reply.headers['content-type']).toMatch(/^application\/json/)
}

/** Code of an error envelope. */
export const errorCode = (reply: HttpReply): unknown => member(reply.json, 'responseObject', 'code')

export interface Counters {
  readonly state: number
  readonly ctrByte: number
  readonly failedAttempts: number
}

/** Reads state and counts of an activation from the status blob (v3 §9.3). */
export async function readCounters(phone: VirtualPhone, url = phone.options.url): Promise<Counters> {
  const { state, ctrByte, failedAttempts } = await phone.readStatus({ withChallenge: true, url })
  return { state, ctrByte, failedAttempts }
}

/** Runs `act` and expects that state, counter and failed attempts are as before. */
export async function expectUntouched(phone: VirtualPhone, act: () => Promise<void>): Promise<void> {
  const before = await readCounters(phone)
  await act()
  expect(await readCounters(phone)).toEqual(before)
}
