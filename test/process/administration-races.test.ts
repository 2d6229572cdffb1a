// Changes that administrators make at the same time, or while a process remembers a caller's credential (cloud §2).
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { type Bank, createBank } from '../helpers/bank.ts'
import { SECOND } from '../helpers/expectations.ts'
import { type HttpReply, member } from '../../phone/http.ts'
import { expectOk } from '../helpers/world.ts'

let server: TestServer
let bank: Bank
beforeAll(async () => {
  server = await startTestServer()
  bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
  for (const id of ['one', 'two']) expectOk(await bank.createApplication(id))
})
afterAll(() => server.close())

const passwordOf = (reply: HttpReply): string => String(member(expectOk(reply).json, 'password'))
const reset = (name: string, more: Readonly<Record<string, unknown>> = {}) =>
  bank.call('POST', `/admin/users/${name}/password`, more)
const create = async (username: string, more: Readonly<Record<string, unknown>> = {}): Promise<string> =>
  passwordOf(await bank.call('POST', '/admin/users', { username, role: 'integration', application: 'one', ...more }))
const statusOf = async (username: string, password: string): Promise<number> =>
  (await bank.as(`${username}:${password}`).view('nobody')).status
const times = <T>(count: number, work: (i: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, i) => work(i)))

test('of passwords reset at the same time exactly one is valid afterwards', async () => {
  await create('racer')
  for (let round = 0; round < 5; round += 1) {
    const passwords = (await times(4, () => reset('racer'))).map(passwordOf)
    const statuses = await Promise.all(passwords.map((password) => statusOf('racer', password)))
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
  }
})

test('a reset that races with the removal of its user is done or refused, never a failure', async () => {
  for (let round = 0; round < 8; round += 1) {
    await create(`gone-${round}`)
    const replies = await Promise.all([
      reset(`gone-${round}`),
      bank.call('DELETE', `/admin/users/gone-${round}`),
      reset(`gone-${round}`),
    ])
    for (const { status } of replies) expect([200, 400]).toContain(status)
  }
})

test('two applications that become the default at the same time leave one default', async () => {
  const replies = await times(20, (i) => bank.call('PATCH', `/admin/applications/${i % 2 ? 'one' : 'two'}`, { isDefault: true }))
  expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200))
  const { applications } = expectOk(await bank.call('GET', '/admin/applications')).json as {
    applications: { isDefault: boolean }[]
  }
  expect(applications.filter(({ isDefault }) => isDefault)).toHaveLength(1)
})

test('a previous password ends when it was said to, also while it is remembered', async () => {
  const previous = await create('rotating')
  const next = passwordOf(await reset('rotating', { keepPreviousSeconds: 10 }))
  expect([await statusOf('rotating', previous), await statusOf('rotating', next)]).toEqual([200, 200])
  server.clock.advance(11 * SECOND)
  expect([await statusOf('rotating', previous), await statusOf('rotating', next)]).toEqual([401, 200])
})

test('of two earlier passwords the older one ends with the next reset', async () => {
  const first = await create('three')
  const second = passwordOf(await reset('three', { keepPreviousSeconds: 600 }))
  const third = passwordOf(await reset('three', { keepPreviousSeconds: 600 }))
  const statuses = [await statusOf('three', first), await statusOf('three', second), await statusOf('three', third)]
  expect(statuses).toEqual([401, 200, 200])
})

test('a chosen password that was right before passes while strangers keep the slow hash busy', async () => {
  const password = 'a password somebody chose'
  await create('person', { password })
  expect(await statusOf('person', password)).toBe(200)
  // Longer than a verified credential is remembered without another look at the database.
  server.clock.advance(31 * SECOND)
  const strangers = times(30, (i) => statusOf(`stranger-${i}`, 'wrong'))
  expect(await statusOf('person', password)).toBe(200)
  for (const status of await strangers) expect([401, 429]).toContain(status)
})
