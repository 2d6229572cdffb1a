// Rights of credentials (cloud §2.4).
import { importHmacKey } from '../../../src/crypto/hash.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { authenticateRow } from '../../../src/domain/secrets/row-mac.ts'
import { isCredentialAuthentic } from '../../../src/domain/credential/mac.ts'
import type { CredentialWithPasswords } from '../../../src/storage/credential/credentials.ts'
import { member } from '../../../phone/http.ts'
import type { TestServer } from '../../helpers/app.ts'
import { createBank } from '../../helpers/bank.ts'
import { runCli } from '../../helpers/cli.ts'
import { expectError } from '../../helpers/expectations.ts'
import { expectOk, startServerWithWorld, type World } from '../../helpers/world.ts'

let server: TestServer
let world: World
beforeAll(async () => {
  ;({ server, world } = await startServerWithWorld({}))
})
afterAll(() => world.close())

const USER = { role: 'integration', application: 'test-app' }
const create = async (username: string): Promise<string> =>
  String(member(expectOk(await world.bank.call('POST', '/admin/users', { ...USER, username })).json, 'password'))
const entitle = (username: string, rights: unknown) => world.bank.call('PATCH', `/admin/users/${username}`, { rights })
const statusOf = async (username: string, password: string): Promise<number> =>
  (await createBank(world.url, `${username}:${password}`).view('x')).status
const shown = async (username: string) =>
  (member(expectOk(await world.bank.call('GET', '/admin/users')).json, 'users') as { username: string }[]).find(
    (user) => user.username === username,
  )

test('a new credential has none; they are given, recorded, shown and taken away', async () => {
  const password = await create('web')
  expect(await shown('web')).toEqual({ ...USER, username: 'web', isDisabled: false })
  expectOk(await entitle('web', ['keys:derive', 'envelopes:application']))
  expect(await shown('web')).toEqual({
    ...USER,
    username: 'web',
    isDisabled: false,
    rights: ['envelopes:application', 'keys:derive'],
  })
  expect(await statusOf('web', password)).toBe(200)
  const events = await server.context.db.selectFrom('admin_event').selectAll().where('target', '=', 'user web').execute()
  expect(events.at(-1)).toMatchObject({ action: 'PATCH /admin/users/{name}' })
  expect(events.at(-1)?.before).not.toContain('rights')
  expect(events.at(-1)?.after).toContain('"rights":["envelopes:application","keys:derive"]')
  expectOk(await entitle('web', []))
  expect(await shown('web')).toEqual({ ...USER, username: 'web', isDisabled: false })
  expect(await statusOf('web', password)).toBe(200)
})

test.each([
  ['one that there is not', ['keys:all']],
  ['one twice', ['keys:derive', 'keys:derive']],
  ['a text', 'keys:derive'],
  ['nothing', undefined],
])('%s is refused', async (_, rights) => {
  expectError(await entitle('web', rights), 400, 'ERROR_REQUEST')
})

test('a user who is not there is told, and only administrators give rights', async () => {
  expectError(await entitle('missing', []), 400, 'ERROR_ADMIN')
  const bank = createBank(world.url, `clerk:${await create('clerk')}`)
  expectError(await bank.call('PATCH', '/admin/users/clerk', { rights: ['keys:derive'] }), 403, 'HTTP_403')
})

test.each([
  ['given', [], 'keys:derive'],
  ['taken away', ['keys:derive'], ''],
  ['changed', ['keys:derive'], 'envelopes:application'],
])('a right that is %s in the database by hand leaves no credential', async (how, rights, column) => {
  const name = `by-hand-${how.replaceAll(' ', '-')}`
  const password = await create(name)
  expectOk(await entitle(name, rights))
  await server.context.db.updateTable('credential').set({ rights: column }).where('username', '=', name).execute()
  expect(await statusOf(name, password)).toBe(401)
  expectError(await entitle(name, ['keys:derive']), 400, 'ERROR_ADMIN')
})

test('the MAC of a row of before the rights still verifies, with addresses and certificates or without', () => {
  const key = importHmacKey(Buffer.alloc(32, 7))
  const old = {
    username: 'old',
    role: 'integration',
    applicationId: 'test-app',
    isDisabled: false,
    expiresAt: null,
    rights: [],
    salt: Buffer.alloc(16, 1),
    passwords: [{ passwordId: 'p', scheme: 'generated', passwordHash: Buffer.alloc(32, 2), expiresAt: null }],
  } as const
  const row = ['old', 'integration', 'test-app', 'false', null, '01'.repeat(16), 'p', 'generated', '02'.repeat(32), null]
  const isAuthentic = (
    more: Pick<CredentialWithPasswords, 'allowedAddresses' | 'certificates'>,
    ...fields: string[]
  ): boolean => {
    const mac = Buffer.from(authenticateRow(key, { table: 'credential', fields: [...row, ...fields] }))
    return isCredentialAuthentic(key, { ...old, ...more, mac })
  }
  expect(isAuthentic({ allowedAddresses: [], certificates: [] })).toBe(true)
  expect(isAuthentic({ allowedAddresses: ['::1'], certificates: [] }, 'allowed addresses', '::1')).toBe(true)
  const both = { allowedAddresses: ['::1'], certificates: ['ab'] }
  expect(isAuthentic(both, 'addresses and certificates', '::1', 'ab')).toBe(true)
  expect(isAuthentic(both, 'allowed addresses', '::1')).toBe(false)
})

test('the command line gives them and the doctor says who has them', async () => {
  await create('tier')
  const env = { PAWL_URL: world.url, PAWL_ADMIN: String(world.bank.credential) }
  expect((await runCli(['user', 'rights', 'tier', '--right', 'keys:derive'], env)).code).toBe(0)
  const said = await runCli(['user', 'show', 'tier', '--json'], env)
  expect(JSON.parse(said.stdout)).toMatchObject({ rights: ['keys:derive'] })
  expect((await runCli(['user', 'rights', 'tier'], env)).code).toBe(0)
  expect(JSON.parse((await runCli(['user', 'show', 'tier', '--json'], env)).stdout)).not.toHaveProperty('rights')
})
