// Wrong codes of one activation from one source: after some of them nothing is looked at for a minute (v3 §10.5).
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { random } from '../../../phone/v3/crypto.ts'
import { withPair } from '../../../phone/header.ts'
import type { HttpRequest } from '../../../phone/http.ts'
import { expectRefused, MINUTE, readCounters, STATE } from '../../helpers/expectations.ts'
import { expectOk, startServerWithWorld, type World } from '../../helpers/world.ts'
import type { TestServer } from '../../helpers/app.ts'

let server: TestServer
let world: World
beforeAll(async () => {
  const env = { PAWL_TRUSTED_PROXIES: '127.0.0.1', PAWL_CODE_FAILURES_PER_MINUTE: '8' }
  ;({ server, world } = await startServerWithWorld({ env, worksInBackground: false }))
  server.clock.stop()
})
afterAll(() => world.close())

const LIMIT = 8
const from = <R extends HttpRequest>(ip: string, request: R): R => ({
  ...request,
  headers: { ...request.headers, 'X-Forwarded-For': ip },
})
const countAuditRows = async (activationId: string): Promise<number> => {
  const { db } = server.context
  const rows = await db.selectFrom('audit_trail').select('event_type').where('activation_id', '=', activationId).execute()
  return rows.length
}

test('beyond the limit a right code is refused like a wrong one, unread, until the minute is over', async () => {
  const { phone } = await world.activePhone('3.0')
  const guess = () => from('192.0.2.1', phone.prepareValidation({ factors: 'possession', wrongKeys: { possession: random(16) } }))
  for (let i = 0; i < LIMIT; i += 1) expectRefused(await phone.send(guess()), 'signature')
  const rows = await countAuditRows(phone.state.activationId)
  const right = phone.prepareValidation()
  const refusals = [await phone.send(from('192.0.2.1', right)), await phone.send(guess())]
  for (const reply of refusals) expectRefused(reply, 'signature')
  expect(refusals.map(({ headers }) => Object.keys(headers).toSorted())).toHaveLength(2)
  expect(await countAuditRows(phone.state.activationId)).toBe(rows)
  expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: expect.any(Number) as number, failedAttempts: 0 })
  // The code was not looked at, so it is good from a source that has not guessed, or later.
  expectOk(await phone.send(from('192.0.2.2', right)))
  await world.advance(MINUTE)
  expectOk(await phone.send(from('192.0.2.1', phone.prepareValidation())))
})

test('the addresses of one IPv6 network are one source', async () => {
  const { phone } = await world.activePhone('3.3')
  for (let i = 0; i < LIMIT; i += 1) {
    const guess = phone.prepareValidation({ factors: 'possession', wrongKeys: { possession: random(16) } })
    expectRefused(await phone.send(from(`2001:db8:0:7::${i}`, guess)), 'signature')
  }
  expectRefused(await phone.send(from('2001:db8:0:7:1:2:3:4', phone.prepareValidation())), 'signature')
  expectOk(await phone.send(from('2001:db8:0:8::1', phone.prepareValidation())))
})

test('guesses that come at once are no more than the limit, and right codes take no place of it', async () => {
  const { phone } = await world.activePhone('3.3')
  for (let i = 0; i < 2 * LIMIT; i += 1) expectOk(await phone.send(from('192.0.2.3', phone.prepareValidation())))
  const rows = await countAuditRows(phone.state.activationId)
  const guesses = Array.from({ length: 40 }, () =>
    from('192.0.2.3', phone.prepareValidation({ factors: 'possession', wrongKeys: { possession: random(16) } })),
  )
  for (const reply of await Promise.all(guesses.map((guess) => phone.send(guess)))) expectRefused(reply, 'signature')
  expect((await countAuditRows(phone.state.activationId)) - rows).toBe(LIMIT)
})

test('an activation nobody knows has the same limit', async () => {
  const { phone } = await world.activePhone('3.3')
  const unknown = '00000000-0000-4000-8000-00000000000b'
  for (let i = 0; i < LIMIT + 2; i += 1)
    expectRefused(
      await phone.send(from('192.0.2.4', withPair(phone.prepareValidation(), 'pa_activation_id', unknown))),
      'signature',
    )
  const { rows } = await sql`select codes::int from stranger_count where network = '192.0.2.0/24'`.execute(server.context.db)
  expect(rows).toEqual([{ codes: LIMIT }])
})
