// The test message of a webhook: what is sent, what the answer tells, and what stays as it was (cloud §9).
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { member } from '../../../phone/http.ts'
import { startTestServer, type TestServer } from '../../helpers/app.ts'
import { type Bank, createBank } from '../../helpers/bank.ts'
import { expectError } from '../../helpers/expectations.ts'
import { findQuietPort } from '../../helpers/ports.ts'
import { type Receiver, signaturesOf, startReceiver } from '../../helpers/receiver.ts'
import { expectOk } from '../../helpers/world.ts'

let server: TestServer
let bank: Bank
let receiver: Receiver
beforeAll(async () => {
  const env = { PAWL_WEBHOOK_ALLOW_HTTP: 'true', PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true' }
  server = await startTestServer({ env, worksInBackground: false })
  bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
  expectOk(await bank.createApplication('one'))
  receiver = await startReceiver()
})
afterAll(async () => {
  await receiver.goDown()
  await server.close()
})
beforeEach(() => {
  receiver.answerWith(200)
  receiver.take()
})

const createHook = async (more: Readonly<Record<string, unknown>> = {}): Promise<{ id: string; secret: string }> => {
  const body = { application: 'one', name: 'hook', kind: 'OPERATION', url: receiver.url, ...more }
  return expectOk(await bank.call('POST', '/admin/webhooks', body)).json as { id: string; secret: string }
}
const tryHook = async (id: string): Promise<unknown> => expectOk(await bank.call('POST', `/admin/webhooks/${id}/test`, {})).json
const readHook = async (id: string): Promise<unknown> => expectOk(await bank.call('GET', `/admin/webhooks/${id}`)).json

describe('a test message', () => {
  test.each([
    ['OPERATION', { userId: 'test', status: 'PENDING', title: 'Test', applications: ['one'] }, 'operationId'],
    ['ACTIVATION', { userId: 'test', activationStatus: 'CREATED', applicationId: 'one' }, 'activationId'],
  ] as const)('of %s is signed and has the attributes that were asked for', async (kind, attributes, id) => {
    const basic = { username: 'pawl', password: 'password of the receiver' }
    const hook = await createHook({ kind, attributes: Object.keys(attributes), basic })
    const answer = await tryHook(hook.id)
    const [message, ...more] = receiver.take()
    expect(more).toEqual([])
    expect(message?.json).toEqual({
      type: kind,
      [id]: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
      event: 'test',
      ...attributes,
    })
    expect(message?.headers).toMatchObject({
      'webhook-signature': message && signaturesOf(message, hook.secret),
      authorization: `Basic ${Buffer.from('pawl:password of the receiver').toString('base64')}`,
    })
    expect(answer).toEqual({ id: message?.id, isDelivered: true, status: 200, durationMs: expect.any(Number) as unknown })
  })

  test('goes to a webhook that is disabled, and changes neither it nor its deliveries', async () => {
    const { id } = await createHook({ isEnabled: false })
    const before = await readHook(id)
    receiver.answerWith(410)
    expect(await tryHook(id)).toMatchObject({ isDelivered: false, status: 410, error: 'HTTP 410' })
    expect(await readHook(id)).toEqual(before)
    const { rows } = await sql`select sequence from webhook_delivery`.execute(server.context.db)
    expect(rows).toEqual([])
  })

  test('tells that nobody answered, without the query of the address', async () => {
    const { id } = await createHook({ url: `http://127.0.0.1:${await findQuietPort()}/hook?key=secret` })
    const answer = await tryHook(id)
    expect(answer).toMatchObject({ isDelivered: false, error: expect.stringContaining('ECONNREFUSED') as unknown })
    expect(answer).not.toHaveProperty('status')
    expect(JSON.stringify(answer)).not.toContain('secret')
  })

  test('stands in the audit log of administrators with what became of it', async () => {
    const { id } = await createHook()
    receiver.answerWith(401)
    const answer = await tryHook(id)
    const [event] = member(expectOk(await bank.call('GET', '/admin/audit?limit=1')).json, 'items') as unknown[]
    expect(event).toMatchObject({ action: 'POST /admin/webhooks/{id}/test', target: `webhook ${id}`, after: answer })
  })

  test('of a webhook that is not there, or for a caller who may only read, is refused', async () => {
    const { id } = await createHook()
    expectError(await bank.call('POST', '/admin/webhooks/none/test', {}), 400, 'ERROR_ADMIN')
    const created = await bank.call('POST', '/admin/users', { username: 'reader', role: 'read-only' })
    const reader = createBank(server.url, `reader:${String(member(expectOk(created).json, 'password'))}`)
    expect((await reader.call('POST', `/admin/webhooks/${id}/test`, {})).status).toBe(403)
    expect(receiver.take()).toEqual([])
  })
})

test('an address that is not allowed is not connected to', async () => {
  const strict = await startTestServer({ worksInBackground: false })
  const other = createBank(strict.url, `${strict.admin.user}:${strict.admin.password}`)
  expectOk(await other.createApplication('one'))
  const hook = { application: 'one', name: 'hook', kind: 'OPERATION', url: 'https://receiver.invalid/hook' }
  const made = String(member(expectOk(await other.call('POST', '/admin/webhooks', hook)).json, 'id'))
  // As when the name leads elsewhere than when the webhook was made.
  await sql`update webhook set url = 'https://localhost/hook'`.execute(strict.context.db)
  const answer = expectOk(await other.call('POST', `/admin/webhooks/${made}/test`, {})).json
  expect(answer).toMatchObject({ isDelivered: false, error: expect.stringContaining('not a public address') as unknown })
  await sql`update webhook set url = ${receiver.url}`.execute(strict.context.db)
  const plain = expectOk(await other.call('POST', `/admin/webhooks/${made}/test`, {})).json
  expect(plain).toMatchObject({ isDelivered: false, error: 'http is not allowed' })
  expect(receiver.take()).toEqual([])
  await strict.close()
})
