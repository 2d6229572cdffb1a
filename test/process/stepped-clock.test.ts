// Limits of a minute while somebody sets the clock of the process: they last a minute, no longer and no shorter.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { random } from '../../phone/v3/crypto.ts'
import { withPair } from '../../phone/header.ts'
import { type HttpReply, type HttpRequest, member, send, sendJson } from '../../phone/http.ts'
import type { TestServer } from '../helpers/app.ts'
import { basicAuthorization } from '../helpers/bank.ts'
import { HOUR, MINUTE, SECOND } from '../helpers/expectations.ts'
import { expectOk, startServerWithWorld, type World } from '../helpers/world.ts'

const LIMIT = 3
const DAY = 24 * HOUR

let server: TestServer
let world: World
beforeAll(async () => {
  const env = {
    PAWL_TRUSTED_PROXIES: '127.0.0.1',
    PAWL_CODE_FAILURES_PER_MINUTE: String(LIMIT),
    PAWL_SOURCE_FAILURES_PER_MINUTE: String(2 * LIMIT),
    PAWL_TEMPORARY_KEYS_PER_MINUTE: String(LIMIT),
    PAWL_MOBILE_READS_PER_MINUTE: String(LIMIT),
    PAWL_OTP_ATTEMPTS_PER_MINUTE: String(LIMIT),
    PAWL_CREDENTIAL_FAILURES_PER_MINUTE: '1',
  }
  ;({ server, world } = await startServerWithWorld({ env, worksInBackground: false }))
  server.clock.stop()
})
afterAll(() => world.close())

test.each([
  ['an hour back', -HOUR],
  ['a day on', DAY],
  ['a day back', -DAY],
])('lines in the log of one source are limited for a minute when the clock is set %s', async (_, step) => {
  const source = newSource()
  const told = () => server.log().split('mobile utility request refused').length - 1
  const ask = () => sendJson(world.url, 'GET', '/app/init?appName=nobody', undefined, source)
  const before = told()
  for (let i = 0; i < 61; i += 1) await ask()
  expect(told() - before).toBe(60)
  server.clock.step(step)
  try {
    await ask()
    expect(told() - before).toBe(60)
    await world.advance(MINUTE + 1)
    await ask()
    expect(told() - before).toBe(61)
  } finally {
    server.clock.step(-step)
    await world.advance(MINUTE)
  }
})

/** One who tries and tries, from an address of its own. */
type Caller = () => Promise<HttpReply>

let sources = 0
const newSource = (): Record<string, string> => ({ 'X-Forwarded-For': `192.0.2.${(sources += 1)}` })
const from = <R extends HttpRequest>(source: Record<string, string>, request: R): R => ({
  ...request,
  headers: { ...request.headers, ...source },
})

const CALLERS: Record<string, { readonly open: () => Promise<Caller>; readonly refusal: number; readonly allowed?: number }> = {
  'wrong codes of an activation': {
    refusal: 401,
    open: async () => {
      const { phone } = await world.activePhone('3.0')
      const source = newSource()
      let wrong = LIMIT
      // A right code is refused as the wrong ones are, once they are too many.
      return () =>
        wrong-- > 0
          ? phone.send(from(source, phone.prepareValidation({ factors: 'possession', wrongKeys: { possession: random(16) } })))
          : phone.send(from(source, phone.prepareValidation()))
    },
  },
  'refused requests of a source': {
    refusal: 429,
    allowed: 2 * LIMIT,
    open: async () => {
      const { phone } = await world.activePhone('3.1')
      const source = newSource()
      const unknown = '00000000-0000-4000-8000-00000000000c'
      return () => send(world.url, from(source, withPair(phone.prepareValidation(), 'pa_activation_id', unknown)))
    },
  },
  'temporary keys of a source': {
    refusal: 429,
    open: async () => {
      const source = newSource()
      const phone = world.newPhone('3.3')
      const ask = () => phone.newTemporaryKeyRequest('application').json
      return () => sendJson(world.url, 'POST', '/pa/v3/keystore/create', ask(), source)
    },
  },
  'reads of a phone': {
    refusal: 429,
    open: async () => {
      const { phone } = await world.activePhone('3.1')
      const token = await phone.createToken('possession')
      return async () => phone.send(await phone.prepareTokenCall('list', token))
    },
  },
  'one-time passwords for a phone': {
    refusal: 429,
    open: async () => {
      const { userId } = await world.activePhone('3.3')
      return async () => {
        const created = expectOk(await world.bank.createOperation({ userId, template: 'login' }))
        return world.bank.offlineOtp(member(created.json, 'operationId'), '1234567812345678', 'x')
      }
    },
  },
  'wrong passwords of a user': {
    refusal: 429,
    allowed: 1,
    open: async () => {
      const source = newSource()
      const name = world.newUser()
      return () => sendJson(world.url, 'GET', '/admin/users', undefined, { ...basicAuthorization(`${name}:wrong`), ...source })
    },
  },
  'wrong passwords of a source': {
    refusal: 429,
    allowed: 10,
    open: async () => {
      const source = newSource()
      const login = () => basicAuthorization(`${world.newUser()}:wrong`)
      return () => sendJson(world.url, 'GET', '/admin/users', undefined, { ...login(), ...source })
    },
  },
}

describe.each(Object.entries(CALLERS))('%s', (_, { open, refusal, allowed = LIMIT }) => {
  const expectRefusal = (reply: HttpReply): void => {
    expect(reply.status).toBe(refusal)
    if (refusal !== 429) return
    expect(Number(reply.headers['retry-after'])).toBeGreaterThan(0)
    expect(Number(reply.headers['retry-after'])).toBeLessThanOrEqual(60)
  }

  test.each([
    ['an hour back', -HOUR],
    ['an hour on', HOUR],
    ['a day back', -DAY],
    ['ninety seconds back', -90 * SECOND],
  ])('are limited for a minute when the clock is set %s', async (__, step) => {
    const call = await open()
    for (let i = 0; i < allowed; i += 1) await call()
    expectRefusal(await call())
    server.clock.step(step)
    try {
      expectRefusal(await call())
      await world.advance(50 * SECOND)
      expectRefusal(await call())
      await world.advance(10 * SECOND + 1)
      expect([200, 400, 401]).toContain((await call()).status)
    } finally {
      server.clock.step(-step)
      await world.advance(MINUTE)
    }
  })
})
