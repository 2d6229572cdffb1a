// Requests of one source are refused unread after too many failures in a minute. Other sources are served as before.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { random } from '../../../phone/v3/crypto.ts'
import { withPair } from '../../../phone/header.ts'
import { type HttpReply, type HttpRequest, send, sendJson } from '../../../phone/http.ts'
import type { VirtualPhone } from '../../../phone/v3/virtual-phone.ts'
import type { TestServer } from '../../helpers/app.ts'
import { expectError, expectRefused, MINUTE, readCounters } from '../../helpers/expectations.ts'
import { expectOk, startServerWithWorld, type World } from '../../helpers/world.ts'
import { openPhonesV4 } from '../../helpers/world-v4.ts'

const FAILURES = 20
const STRANGER = '192.0.2.66'
const UNKNOWN_ID = '00000000-0000-4000-8000-00000000000c'

let server: TestServer
let world: World
let phone: VirtualPhone
beforeAll(async () => {
  const env = { PAWL_TRUSTED_PROXIES: '127.0.0.1', PAWL_SOURCE_FAILURES_PER_MINUTE: String(FAILURES) }
  ;({ server, world } = await startServerWithWorld({ env, worksInBackground: false }))
  server.clock.stop()
})
beforeEach(async () => {
  await world.advance(MINUTE)
  ;({ phone } = await world.activePhone('3.3'))
})
afterAll(() => world.close())

const from = <R extends HttpRequest>(ip: string, request: R): R => ({
  ...request,
  headers: { ...request.headers, 'X-Forwarded-For': ip },
})
const post = (request: HttpRequest, ip = STRANGER): Promise<HttpReply> => send(world.url, from(ip, request))
/** A code for an activation nobody knows; the phone does not move for it. */
const guess = (body?: Uint8Array): HttpRequest => {
  const { ctrData, counter } = phone.state
  const request = withPair(phone.prepareValidation(body && { body }), 'pa_activation_id', UNKNOWN_ID)
  Object.assign(phone.state, { ctrData, counter })
  return request
}
const expectTooMany = (reply: HttpReply): void => {
  expectError(reply, 429, 'TOO_MANY_REQUESTS')
  expect(Number(reply.headers['retry-after'])).toBeGreaterThan(0)
}
const countAuditRows = async (): Promise<number> =>
  (await server.context.db.selectFrom('audit_trail').select('event_type').execute()).length

test('a source that failed too often is told so, unread, while others pass and until the minute is over', async () => {
  for (let i = 0; i < FAILURES; i += 1) expectRefused(await post(guess()), 'signature')
  const rows = await countAuditRows()
  const right = phone.prepareValidation()
  for (const request of [guess(), right]) expectTooMany(await post(request))
  expectTooMany(
    await sendJson(world.url, 'POST', '/pa/v3/activation/status', { requestObject: {} }, { 'X-Forwarded-For': STRANGER }),
  )
  expectTooMany(await sendJson(world.url, 'POST', '/api/auth/token/app/operation/list', {}, { 'X-Forwarded-For': STRANGER }))
  expect(await countAuditRows()).toBe(rows)
  expectOk(await post(right, '192.0.2.67'))
  await world.advance(MINUTE)
  expectOk(await post(phone.prepareValidation()))
})

test.each([
  ['what is not a request', () => ({ method: 'POST', path: '/pa/v3/activation/status', headers: {}, body: Buffer.from('{') })],
  ['no header', () => ({ ...guess(), headers: { 'Content-Type': 'application/json' } })],
  ['an envelope that does not open', () => ({ ...guess(), path: '/pa/v3/user/info' })],
  [
    'an unknown temporary key',
    () => ({ ...guess(Buffer.from('{"requestObject":{"jwt":"a.b.c"}}')), path: '/pa/v3/keystore/create' }),
  ],
] satisfies [string, () => HttpRequest][])('%s takes a failure', async (_, make) => {
  for (let i = 0; i < FAILURES; i += 1) expect([400, 401]).toContain((await post(make())).status)
  expectTooMany(await post(make()))
})

test('a long body takes more of them', async () => {
  for (let i = 0; i < 4; i += 1) expectRefused(await post(guess(random(64 * 1024))), 'signature')
  expectTooMany(await post(guess()))
})

test('right requests take no place of the budget, nor do refusals of a right code', async () => {
  for (let i = 0; i < 2 * FAILURES; i += 1) expectOk(await post(phone.prepareValidation()))
  const approval = () => phone.prepareAuthorize({ id: UNKNOWN_ID, data: 'A2' })
  for (let i = 0; i < 2 * FAILURES; i += 1) expectError(await post(approval()), 400, 'INVALID_OPERATION')
  expectOk(await post(phone.prepareValidation()))
})

test('a long body has a shorter look-ahead, in both generations, and a short one the whole', async () => {
  const { phone: newer } = await (await openPhonesV4(world)).activePhone('EC_P384')
  const body = random(64 * 1024)
  for (const own of [phone, newer]) {
    const ask = (request: Parameters<typeof own.prepareValidation>[0]) =>
      post(own.prepareValidation(request as never), '192.0.2.68')
    own.skip(1)
    expectOk(await ask({ body }))
    own.skip(2)
    expect((await ask({ body })).status).toBe(401)
    own.skip(16)
    expectOk(await ask({ body: '{}' }))
  }
  expect((await readCounters(phone)).failedAttempts).toBe(0)
})

test('a body that a code covers is at most as long as the setting says', async () => {
  const body = random(128 * 1024 + 1)
  expectError(await post(phone.prepareValidation({ body })), 400, 'ERR_VALIDATION')
  // Published clients sign as much.
  expectOk(await post(phone.prepareValidation({ body: random(100 * 1024) })))
  expect((await readCounters(phone)).failedAttempts).toBe(0)
})
