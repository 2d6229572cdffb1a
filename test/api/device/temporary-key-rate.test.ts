// A source may have only so many temporary keys made in a minute, and so may one activation at a source. Everybody who has an app has its key and
// secret, so such requests of a stranger are right.
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type HttpReply, sendJson } from '../../../phone/http.ts'
import type { TestServer } from '../../helpers/app.ts'
import { expectError, MINUTE } from '../../helpers/expectations.ts'
import { expectOk, startServerWithWorld, type World } from '../../helpers/world.ts'
import { openPhonesV4 } from '../../helpers/world-v4.ts'

const KEYS = 6
const STRANGER = '192.0.2.66'

let server: TestServer
let world: World
beforeAll(async () => {
  const env = { PAWL_TRUSTED_PROXIES: '127.0.0.1', PAWL_TEMPORARY_KEYS_PER_MINUTE: String(KEYS) }
  ;({ server, world } = await startServerWithWorld({ env, worksInBackground: false }))
  server.clock.stop()
})
beforeEach(() => world.advance(MINUTE))
afterAll(() => world.close())

const ask = (path: 'v3' | 'v4', json: unknown, ip = STRANGER): Promise<HttpReply> =>
  sendJson(world.url, 'POST', `/pa/${path}/keystore/create`, json, { 'X-Forwarded-For': ip })
const countKeys = async (): Promise<number> => (await sql`select from temporary_key`.execute(server.context.db)).rows.length

test('a source that had its keys made is told so, in both generations, while others pass and until the minute is over', async () => {
  const { newPhone } = await openPhonesV4(world)
  const v3 = () => world.newPhone('3.3').newTemporaryKeyRequest('application').json
  const v4 = () => newPhone('EC_P384').newTemporaryKeyRequest('application').json
  for (let i = 0; i < KEYS / 2; i += 1) {
    expectOk(await ask('v3', v3()))
    expectOk(await ask('v4', v4()))
  }
  const made = await countKeys()
  for (const reply of [await ask('v3', v3()), await ask('v4', v4())]) {
    expectError(reply, 429, 'TOO_MANY_REQUESTS')
    expect(Number(reply.headers['retry-after'])).toBeGreaterThan(0)
  }
  expect(await countKeys()).toBe(made)
  expectOk(await ask('v4', v4(), '192.0.2.67'))
  await world.advance(MINUTE)
  expectOk(await ask('v3', v3()))
})

test('an activation has keys of its own, in both generations, at each source', async () => {
  for (let i = 0; i < KEYS; i += 1) expectOk(await ask('v3', world.newPhone('3.3').newTemporaryKeyRequest('application').json))
  const { activePhone } = await openPhonesV4(world)
  const bound = [
    { path: 'v3', phone: (await world.activePhone('3.3')).phone },
    { path: 'v4', phone: (await activePhone('EC_P384')).phone },
  ] as const
  await world.advance(MINUTE)
  for (const { path, phone } of bound) {
    // The same request may come again and again.
    const { json } = phone.newTemporaryKeyRequest('activation')
    for (let i = 0; i < KEYS; i += 1) expectOk(await ask(path, json))
    const made = await countKeys()
    expectError(await ask(path, json), 429, 'TOO_MANY_REQUESTS')
    expect(await countKeys()).toBe(made)
    expectOk(await ask(path, json, '192.0.2.67'))
  }
  await world.advance(MINUTE)
  for (const { path, phone } of bound) expectOk(await ask(path, phone.newTemporaryKeyRequest('activation').json))
})

test('nobody else uses up the keys of an activation, also at its source', async () => {
  const { phone } = await world.activePhone('3.3')
  const { json } = phone.newTemporaryKeyRequest('activation')
  const { jwt } = (json as { requestObject: { jwt: string } }).requestObject
  const forged = { requestObject: { jwt: `${jwt.slice(0, jwt.lastIndexOf('.'))}.${Buffer.alloc(32).toString('base64url')}` } }
  for (let i = 0; i < 2 * KEYS; i += 1) expect((await ask('v3', forged)).status).toBe(400)
  expectOk(await ask('v3', json))
})

test('a wrong MAC takes a place too, so that what is no longer looked at costs nothing', async () => {
  const { jwt } = (world.newPhone('3.3').newTemporaryKeyRequest('application').json as { requestObject: { jwt: string } })
    .requestObject
  const wrong = { requestObject: { jwt: `${jwt.slice(0, jwt.lastIndexOf('.'))}.${Buffer.alloc(32).toString('base64url')}` } }
  for (let i = 0; i < KEYS; i += 1) expect((await ask('v3', wrong)).status).toBe(400)
  expectError(await ask('v3', wrong), 429, 'TOO_MANY_REQUESTS')
})
