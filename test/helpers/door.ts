// The bank's own endpoints, to which a phone sends its requests: what a back end makes of one for a door (cloud §12).
import type { HttpReply, HttpRequest } from '../../phone/http.ts'
import { member, sendJson } from '../../phone/http.ts'
import { type Bank, basicAuthorization } from './bank.ts'
import { expectOk } from './world.ts'

/** Where tests say that phones are. */
export const PHONE_ADDRESS = '203.0.113.7'

/** What the phone signs for, at the bank. */
export const RESOURCE = '/transfer'

export interface DoorBody extends Readonly<Record<string, unknown>> {
  readonly client: Readonly<Record<string, unknown>>
}

/** A request of a phone as the door for codes is told of it. */
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

/** The value of a protocol header, in whatever spelling. */
export const headerOf = ({ headers }: HttpRequest, kind: 'Authorization' | 'Token'): string =>
  headers[`X-PowerAuth-${kind}`] ?? headers[`X-Svc-${kind}`] ?? ''

/** Any call of a door. */
export const callDoor = (bank: Bank, door: string, body: unknown, key?: string): Promise<HttpReply> =>
  sendJson(bank.url, 'POST', `/verification/${door}`, body, {
    ...basicAuthorization(bank.credential),
    ...(key !== undefined && { 'Idempotency-Key': key }),
  })

/** The verdict on a request of a phone. */
export const verdictOf = async (
  bank: Bank,
  request: HttpRequest,
  more: Readonly<Record<string, unknown>> = {},
  key?: string,
): Promise<Readonly<Record<string, unknown>>> => readVerdict(await callDoor(bank, 'code', toDoor(request, more), key))

/** The verdict in an answer; throws when it is an error. */
export const readVerdict = (reply: HttpReply): Readonly<Record<string, unknown>> =>
  expectOk(reply).json as Readonly<Record<string, unknown>>

/** A credential of a role, with an application if it has one. */
export async function createCaller(admin: Bank, username: string, role: string, application?: string): Promise<Bank> {
  const created = expectOk(await admin.call('POST', '/admin/users', { username, role, application }))
  return admin.as(`${username}:${String(member(created.json, 'password'))}`)
}
