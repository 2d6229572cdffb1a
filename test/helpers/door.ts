// Converts requests of phones to endpoints of the bank into the bank's calls of doors (cloud §12).
import type { HttpReply, HttpRequest } from '../../phone/http.ts'
import { member, sendJson } from '../../phone/http.ts'
import { type Bank, basicAuthorization } from './bank.ts'
import { expectOk } from './world.ts'

/** The address of phones in tests. */
export const PHONE_ADDRESS = '203.0.113.7'

/** The resource id of the bank's endpoint. */
export const RESOURCE = '/transfer'

export interface DoorBody extends Readonly<Record<string, unknown>> {
  readonly client: Readonly<Record<string, unknown>>
}

/** The body of a call of the door for codes, for a request of a phone. */
export function toDoor(request: HttpRequest, more: Readonly<Record<string, unknown>> = {}): DoorBody {
  const [, query] = request.path.split(/\?(.*)/s)
  const { method, body } = request
  return {
    authorization: headerOf(request, 'Authorization'),
    method,
    resourceId: RESOURCE,
    ...(body.length > 0 && { body: Buffer.from(body).toString('base64') }),
    ...(query !== undefined && { query }),
    client: { address: PHONE_ADDRESS, userAgent: 'phone' },
    ...more,
  }
}

/** The value of a protocol header, in either dialect. */
export const headerOf = ({ headers }: HttpRequest, kind: 'Authorization' | 'Token'): string =>
  headers[`X-PowerAuth-${kind}`] ?? headers[`X-Svc-${kind}`] ?? ''

/** Calls a door. */
export const callDoor = (bank: Bank, door: string, body: unknown, key?: string): Promise<HttpReply> =>
  sendJson(bank.url, 'POST', `/verification/${door}`, body, {
    ...basicAuthorization(bank.credential),
    ...(key !== undefined && { 'Idempotency-Key': key }),
  })

/** Has a request of a phone verified, and returns the verdict. */
export const verdictOf = async (
  bank: Bank,
  request: HttpRequest,
  more: Readonly<Record<string, unknown>> = {},
  key?: string,
): Promise<Readonly<Record<string, unknown>>> => readVerdict(await callDoor(bank, 'code', toDoor(request, more), key))

/** The verdict in an answer; throws when it is an error. */
export const readVerdict = (reply: HttpReply): Readonly<Record<string, unknown>> =>
  expectOk(reply).json as Readonly<Record<string, unknown>>

/** Creates a credential of a role, for an application if one is named. */
export async function createCaller(admin: Bank, username: string, role: string, application?: string): Promise<Bank> {
  const created = expectOk(await admin.call('POST', '/admin/users', { username, role, application }))
  return admin.as(`${username}:${String(member(created.json, 'password'))}`)
}
