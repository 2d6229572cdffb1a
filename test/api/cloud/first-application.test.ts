// Before any application exists: what is refused says so, in the answer and in the log; and a start can make the first one (cloud §2).
import { afterEach, describe, expect, test } from 'vitest'
import { bootstrapApplication } from '../../../src/domain/application/application.ts'
import { member } from '../../../phone/http.ts'
import { startTestServer, type TestServer, type TestServerOptions } from '../../helpers/app.ts'
import { type Bank, createBank } from '../../helpers/bank.ts'
import { expectError } from '../../helpers/expectations.ts'
import { expectOk } from '../../helpers/world.ts'

const ID = '00000000-0000-4000-8000-000000000000'
const CALLS = [
  ['POST', '/registration', { userId: 'alice' }],
  ['GET', '/registration?userId=alice', undefined],
  ['PUT', '/registration', { userId: 'alice', change: 'BLOCK' }],
  ['DELETE', '/registration?userId=alice', {}],
  ['POST', '/registration/commit', { userId: 'alice' }],
  ['POST', '/operations', { userId: 'alice', template: 'login' }],
  ['GET', `/operations?operationId=${ID}`, undefined],
  ['DELETE', `/operations?operationId=${ID}`, {}],
  ['GET', `/operations/offline/qr?operationId=${ID}`, undefined],
  ['POST', '/operations/offline/otp', { operationId: ID, otp: '1', nonce: 'n' }],
  ['GET', '/push/registration?userId=alice', undefined],
  ['POST', '/inbox/messages', { userId: 'alice', subject: 's', summary: 's', body: 'b' }],
  ['GET', '/audit/log?userId=alice', undefined],
] as const
const CALL_THAT_MAKES_ONE = 'POST /admin/application {"id":"my-app"}'

let server: TestServer
afterEach(() => server.close())

async function start(options?: TestServerOptions): Promise<Bank> {
  server = await startTestServer(options)
  return createBank(server.url, `${server.admin.user}:${server.admin.password}`)
}

const hintOf = (json: unknown): unknown => member((member(json, 'responseObject', 'violations') as unknown[])[0], 'hint')

test('every call for an application says that there is none, and the call that makes one', async () => {
  const bank = await start()
  for (const [method, path, body] of CALLS) {
    const reply = await bank.call(method, path, body)
    expectError(reply, 400, path.startsWith('/audit') ? 'ERROR_AUDIT' : 'ERROR_REGISTRATION_NOT_FOUND')
    expect(hintOf(reply.json), path).toBe(`there is no application yet: ${CALL_THAT_MAKES_ONE} creates one`)
  }
  const lines = server
    .log()
    .split('\n')
    .filter((line) => line.includes('a call for an application was refused'))
  expect(lines).toHaveLength(CALLS.length)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    username: 'admin',
    reason: expect.stringContaining(CALL_THAT_MAKES_ONE) as unknown,
  })

  expectOk(await bank.createApplication('my-app'))
  expectOk(await bank.register('alice'))
})

test('a credential that belongs to no application is told so', async () => {
  const bank = await start({ env: { PAWL_ADMIN_ACTS_ON_DEFAULT_APPLICATION: 'false' } })
  expectOk(await bank.createApplication('my-app'))
  expect(hintOf((await bank.register('alice')).json)).toContain('administrators act on no application')
  const created = expectOk(await bank.call('POST', '/admin/users', { username: 'bank', role: 'integration' }))
  const reply = await bank.as(`bank:${String(member(created.json, 'password'))}`).register('alice')
  expect(hintOf(reply.json)).toContain('this credential belongs to no application')
})

describe('PAWL_FIRST_APPLICATION', () => {
  test('is created by a start that finds none, and is the default one', async () => {
    const bank = await start({ env: { PAWL_FIRST_APPLICATION: 'my-app' } })
    expect(expectOk(await bank.call('GET', '/admin/applications')).json).toMatchObject({
      applications: [{ id: 'my-app', isDefault: true }],
    })
    expectOk(await bank.register('alice'))
    expect(server.log()).toContain('the first application is created')
  })

  test('is left alone where there is any, also by two starts at once', async () => {
    const bank = await start()
    await Promise.all([1, 2].map(() => bootstrapApplication(server.context, 'my-app')))
    await bootstrapApplication(server.context, 'other')
    const { applications } = expectOk(await bank.call('GET', '/admin/applications')).json as { applications: { id: string }[] }
    expect(applications.map(({ id }) => id)).toEqual(['my-app'])
  })
})
