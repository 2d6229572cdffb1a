// Credentials that are bound to addresses (cloud §2.2).
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type HttpReply, member, sendJson } from '../../../phone/http.ts'
import type { TestServer } from '../../helpers/app.ts'
import { basicAuthorization } from '../../helpers/bank.ts'
import { runCli } from '../../helpers/cli.ts'
import { expectOk, startServerWithWorld, type World } from '../../helpers/world.ts'

let server: TestServer
let world: World
beforeAll(async () => {
  const env = { PAWL_TRUSTED_PROXIES: '127.0.0.1', PAWL_CREDENTIAL_FAILURES_PER_MINUTE: '3' }
  ;({ server, world } = await startServerWithWorld({ env }))
})
afterAll(() => world.close())

const USER = { role: 'integration', application: 'test-app' }
const PASSWORD = 'a password of my own'

const create = (username: string, more: Readonly<Record<string, unknown>> = {}): Promise<HttpReply> =>
  world.bank.call('POST', '/admin/users', { ...USER, username, password: PASSWORD, ...more })

/** A call through the proxy, from this address. */
const callFrom = (address: string, username: string, password = PASSWORD): Promise<HttpReply> =>
  sendJson(world.url, 'GET', '/registration?userId=nobody', undefined, {
    ...basicAuthorization(`${username}:${password}`),
    'X-Forwarded-For': address,
  })

test('it is good from its addresses alone, and elsewhere refused as a wrong password is', async () => {
  expectOk(await create('bound', { allowedAddresses: ['10.20.0.0/16', '2001:db8::/32'] }))
  const wrong = await callFrom('192.0.2.1', 'bound', 'a wrong password')
  // Also after this process has seen the right one.
  for (const address of ['10.20.3.4', '2001:db8::7', '10.20.3.4']) expectOk(await callFrom(address, 'bound'))
  const elsewhere = await callFrom('192.0.2.2', 'bound')
  expect([elsewhere.status, elsewhere.text]).toEqual([401, wrong.text])
  expect(elsewhere.headers['www-authenticate']).toBe(wrong.headers['www-authenticate'])
  expect((await callFrom('unknown', 'bound')).status).toBe(401)
})

test('right passwords from elsewhere count as wrong ones', async () => {
  const replies: number[] = []
  for (let i = 0; i < 5; i += 1) replies.push((await callFrom('192.0.2.9', 'bound')).status)
  expect(replies).toEqual([401, 401, 401, 429, 429])
  expectOk(await callFrom('10.20.3.4', 'bound'))
})

test('the list is replaced at once, shown, recorded, and emptied', async () => {
  expectOk(await create('moving'))
  expectOk(await callFrom('198.51.100.1', 'moving'))
  const put = (allowedAddresses: unknown) => world.bank.call('PUT', '/admin/users/moving/allowed-addresses', { allowedAddresses })
  expectOk(await put(['10.0.0.7']))
  expect((await callFrom('198.51.100.2', 'moving')).status).toBe(401)
  expectOk(await callFrom('10.0.0.7', 'moving'))
  const { json } = expectOk(await world.bank.call('GET', '/admin/users'))
  expect(member(json, 'users')).toContainEqual({ ...USER, username: 'moving', isDisabled: false, allowedAddresses: ['10.0.0.7'] })
  const events = await server.context.db.selectFrom('admin_event').select('after').where('target', '=', 'user moving').execute()
  expect(events.at(-1)?.after).toContain('"allowedAddresses":["10.0.0.7"]')
  expectOk(await put([]))
  expectOk(await callFrom('198.51.100.3', 'moving'))
})

test.each([
  ['a range of everyone', ['0.0.0.0/0']],
  ['a name', ['bank.example']],
  ['a text', '10.0.0.1'],
  ['two that are the same', ['10.0.0.1', '10.0.0.1']],
  ['more than fifty', Array.from({ length: 51 }, (_, i) => `10.0.0.${i}`)],
])('%s is refused, and nothing changes', async (_, allowedAddresses) => {
  expect((await create('never', { allowedAddresses })).status).toBe(400)
  expect((await world.bank.call('PUT', '/admin/users/moving/allowed-addresses', { allowedAddresses })).status).toBe(400)
  expect((await world.bank.call('GET', '/admin/users')).text).not.toContain('never')
  expectOk(await callFrom('198.51.100.4', 'moving'))
})

test('a user who is not there is told', async () => {
  expect((await world.bank.call('PUT', '/admin/users/missing/allowed-addresses', { allowedAddresses: [] })).status).toBe(400)
})

test('a list that is taken out of the database by hand leaves no credential', async () => {
  expectOk(await create('altered', { allowedAddresses: ['10.0.0.7'] }))
  await server.context.db.updateTable('credential').set({ allowed_addresses: '' }).where('username', '=', 'altered').execute()
  expect((await callFrom('10.0.0.7', 'altered')).status).toBe(401)
})

test('the command line sets it', async () => {
  const env = { PAWL_URL: world.url, PAWL_ADMIN: String(world.bank.credential) }
  expect((await runCli(['user', 'allow', 'moving', '--from', '10.9.0.0/16', '--from', '::1'], env)).code).toBe(0)
  const shown = await runCli(['user', 'show', 'moving', '--json'], env)
  expect(JSON.parse(shown.stdout)).toMatchObject({ allowedAddresses: ['10.9.0.0/16', '::1'] })
})
