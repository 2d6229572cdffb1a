// Logins under attack: guesses, floods and callers who go (cloud §2). The sources are addresses behind a trusted proxy.
import { request as openRequest } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deleteCredential } from '../../src/storage/credential/credentials.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { basicAuthorization } from '../helpers/bank.ts'
import { MINUTE, SECOND } from '../helpers/expectations.ts'
import type { HttpReply } from '../../phone/http.ts'
import { sendJson } from '../../phone/http.ts'
import { expectOk } from '../helpers/world.ts'

const PASSWORD = 'chosen by somebody'
const proxy = { PAWL_TRUSTED_PROXIES: '127.0.0.1' }

/** A caller at an address, who shows a credential. */
const callAs = (server: TestServer, source: string, credential: string, method = 'GET', path = '/admin/users', json?: unknown) =>
  sendJson(server.url, method, path, json, { ...basicAuthorization(credential), 'X-Forwarded-For': source })
const statusAs = async (server: TestServer, source: string, credential: string): Promise<number> =>
  (await callAs(server, source, credential)).status

/** The administrator at an address of his own. */
const asAdmin = async (server: TestServer, method: string, path: string, json?: unknown): Promise<HttpReply> =>
  expectOk(await callAs(server, '192.0.2.1', `${server.admin.user}:${server.admin.password}`, method, path, json))
const createAdmin = (server: TestServer, username: string) =>
  asAdmin(server, 'POST', '/admin/users', { username, role: 'admin', password: PASSWORD })

describe('waits', () => {
  let server: TestServer
  beforeAll(async () => {
    server = await startTestServer({ env: proxy })
    // Twenty slow hashes take a minute of a busy machine.
    server.clock.stop()
  })
  afterAll(() => server.close())

  test('the 46th of 46 guesses does not pass though it is right, from elsewhere the credential works', async () => {
    await createAdmin(server, 'guessed')
    const statuses: number[] = []
    for (let guess = 1; guess <= 45; guess += 1)
      statuses.push(await statusAs(server, '198.51.100.1', `guessed:wrong guess ${guess}`))
    expect(statuses.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => 401))
    expect(statuses.slice(20)).toEqual(Array.from({ length: 25 }, () => 429))
    expect(await statusAs(server, '198.51.100.1', `guessed:${PASSWORD}`)).toBe(429)
    expect(await statusAs(server, '198.51.100.2', `guessed:${PASSWORD}`)).toBe(200)
    expect(await statusAs(server, '198.51.100.1', `guessed:${PASSWORD}`)).toBe(429)
    server.clock.advance(MINUTE + SECOND)
    expect(await statusAs(server, '198.51.100.1', `guessed:${PASSWORD}`)).toBe(200)
  })

  test('of 40 different guesses at once 20 are checked', async () => {
    await createAdmin(server, 'guessed-at-once')
    const guesses = Array.from(
      { length: 40 },
      (_, guess) => `guessed-at-once:${guess === 39 ? PASSWORD : `wrong guess ${guess}`}`,
    )
    const statuses = await Promise.all(guesses.map((guess) => statusAs(server, '198.51.100.3', guess)))
    expect(statuses.filter((status) => status !== 429).length).toBeLessThanOrEqual(20)
  })

  test('a wait is twice as long the next time, and comes sooner', async () => {
    const guess = () => callAs(server, '198.51.100.4', 'nobody at all:wrong')
    const fail = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i += 1) expect((await guess()).status).toBe(401)
    }
    await fail(20)
    expect(Number((await guess()).headers['retry-after'])).toBeLessThanOrEqual(60)
    server.clock.advance(MINUTE + SECOND)
    await fail(5)
    expect(Number((await guess()).headers['retry-after'])).toBeGreaterThan(100)
    server.clock.advance(MINUTE + SECOND)
    expect((await guess()).status).toBe(429)
    server.clock.advance(MINUTE)
    await fail(1)
  })

  test('a /64 of IPv6 is one source', async () => {
    for (let i = 0; i < 20; i += 1) expect(await statusAs(server, `2001:db8::${i}`, 'nobody of IPv6:wrong')).toBe(401)
    expect(await statusAs(server, '2001:db8::ffff', 'nobody of IPv6:wrong')).toBe(429)
    expect(await statusAs(server, '2001:db8:0:1::1', 'nobody of IPv6:wrong')).toBe(401)
  })

  test('a credential that another process deletes is dead within five seconds', async () => {
    server.clock.go()
    await createAdmin(server, 'deleted-elsewhere')
    expect(await statusAs(server, '198.51.100.5', `deleted-elsewhere:${PASSWORD}`)).toBe(200)
    await deleteCredential(server.context.db, 'deleted-elsewhere')
    server.clock.advance(5 * SECOND)
    expect(await statusAs(server, '198.51.100.5', `deleted-elsewhere:${PASSWORD}`)).toBe(401)
  })
})

test('a source that tries many names waits for new ones, and goes on with those it logged in with', async () => {
  const server = await startTestServer({ env: { ...proxy, PAWL_CREDENTIAL_FAILURES_PER_MINUTE: '2' } })
  server.clock.stop()
  try {
    await createAdmin(server, 'good')
    await createAdmin(server, 'late')
    expect(await statusAs(server, '198.51.100.1', `good:${PASSWORD}`)).toBe(200)
    for (let i = 0; i < 20; i += 1) expect(await statusAs(server, '198.51.100.1', `name ${i}:wrong`)).toBe(401)
    expect(await statusAs(server, '198.51.100.1', 'another name:wrong')).toBe(429)
    expect(await statusAs(server, '198.51.100.1', `late:${PASSWORD}`)).toBe(429)
    expect(await statusAs(server, '198.51.100.1', `good:${PASSWORD}`)).toBe(200)
    // Not by what is remembered alone: its wrong passwords are checked and counted as ever.
    expect(await statusAs(server, '198.51.100.1', 'good:wrong')).toBe(401)
    expect(await statusAs(server, '198.51.100.2', `late:${PASSWORD}`)).toBe(200)
  } finally {
    await server.close()
  }
})

test('a flood from other sources does not delay callers who logged in before, and new callers by one round at most', async () => {
  const server = await startTestServer({ env: proxy })
  try {
    for (const name of ['good', 'first']) await createAdmin(server, name)
    expectOk(await callAs(server, '192.0.2.2', `good:${PASSWORD}`))
    // Nothing is remembered of the new password: it has to be hashed.
    await asAdmin(server, 'POST', '/admin/users/good/password', { password: 'chosen after the flood' })
    const answered: number[] = []
    const flood = Array.from({ length: 12 * 6 }, async (_, i) => {
      const reply = await callAs(server, `198.51.100.${i % 12}`, `name ${i}:wrong`)
      if (reply.status === 401) answered.push(i)
      return reply.status
    })
    while (answered.length === 0) await sleep(5)
    const before = answered.length
    expectOk(await callAs(server, '192.0.2.2', 'good:chosen after the flood'))
    expect(answered.length - before).toBeLessThanOrEqual(12)
    expectOk(await callAs(server, '192.0.2.3', `first:${PASSWORD}`))
    expect(answered.length - before).toBeLessThanOrEqual(36)
    expect(answered.length).toBeLessThan(flood.length)
    expect(new Set(await Promise.all(flood))).toEqual(new Set([401]))
  } finally {
    await server.close()
  }
})

test('a password is not hashed for a caller who has gone', async () => {
  const server = await startTestServer({ env: proxy })
  try {
    const requests = Array.from({ length: 15 }, (_, i) =>
      openRequest(`${server.url}/admin/users`, {
        headers: { ...basicAuthorization(`gone:wrong guess ${i}`), 'X-Forwarded-For': '198.51.100.1' },
      }).on('error', () => undefined),
    )
    for (const request of requests) request.end()
    while (!server.log().includes('credential refused')) await sleep(5)
    for (const request of requests) request.destroy()
    // Comes after all that wait of the same source.
    expect(await statusAs(server, '198.51.100.1', 'here:wrong')).toBe(401)
    const refused = server.log().split('credential refused').length - 1
    expect(refused).toBeLessThanOrEqual(5)
  } finally {
    await server.close()
  }
})
