// Configuration items: their administration, and what phones of protocol 4.0 are to read of them (v4 §9.11, cloud §10).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readActivationConfig, readApplicationConfig } from '../../../src/domain/application/config-items.ts'
import type { TestServer } from '../../helpers/app.ts'
import { expectError } from '../../helpers/expectations.ts'
import { member } from '../../../phone/http.ts'
import { expectOk, startServerWithWorld, type World } from '../../helpers/world.ts'

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000'

let server: TestServer
let world: World
let activationId: string
let owners: { readonly application: string; readonly activation: string }
beforeAll(async () => {
  ;({ server, world } = await startServerWithWorld({}))
  const { phone } = await world.activePhone('3.3')
  activationId = phone.state.activationId
  owners = { application: '/admin/applications/test-app/config', activation: `/admin/activations/${activationId}/config` }
})
afterAll(() => world.close())

const call = (method: string, path: string, body?: unknown) => world.bank.call(method, path, body)
const list = async (path: string): Promise<unknown[]> => member(expectOk(await call('GET', path)).json, 'config') as unknown[]
const kinds = ['application', 'activation'] as const

test.each(kinds)('an item of an %s is stored, read, replaced and removed', async (kind) => {
  const path = `${owners[kind]}/a.Key_1-x`
  const scope = kind === 'application' ? 'APPLICATION' : 'ACTIVATION'
  expectError(await call('DELETE', path), 400, 'ERROR_ADMIN')
  for (const value of [{ a: [1, null, 'Žofie 📱'] }, null, false, 0, '', [], 'text', { a: 'x'.repeat(4088) }]) {
    expect(expectOk(await call('PUT', path, { value })).json).toEqual({ status: 'OK' })
    expect(await list(owners[kind])).toEqual([{ key: 'a.Key_1-x', value, scope }])
  }
  expect(expectOk(await call('DELETE', path)).json).toEqual({ status: 'OK' })
  expect(await list(owners[kind])).toEqual([])
})

test('an application has a key in each scope, and an activation reads the nearest', async () => {
  const { db } = server.context
  const application = `${owners.application}/limit`
  expectOk(await call('PUT', application, { value: 1 }))
  expectOk(await call('PUT', `${application}?scope=ACTIVATION`, { value: 2 }))
  expectOk(await call('PUT', `${owners.application}/only`, { value: 'all' }))
  const only = { key: 'only', value: 'all', scope: 'APPLICATION' }
  const read = () => readActivationConfig(db, 'test-app', activationId)
  expect(await read()).toEqual([{ key: 'limit', value: 2, scope: 'ACTIVATION' }, only])
  expectOk(await call('PUT', `${owners.activation}/limit`, { value: 3 }))
  expect(await read()).toEqual([{ key: 'limit', value: 3, scope: 'ACTIVATION' }, only])
  expect(await readActivationConfig(db, 'test-app', UNKNOWN_ID)).toEqual([{ key: 'limit', value: 2, scope: 'ACTIVATION' }, only])
  expect(await readApplicationConfig(db, 'test-app')).toEqual([{ key: 'limit', value: 1, scope: 'APPLICATION' }, only])
  expect(await readApplicationConfig(db, 'other')).toEqual([])
  expectOk(await call('DELETE', application))
  expect(await list(owners.application)).toEqual([{ key: 'limit', value: 2, scope: 'ACTIVATION' }, only])
  expectOk(await call('DELETE', `${application}?scope=ACTIVATION`))
  expectOk(await call('DELETE', `${owners.application}/only`))
  expectOk(await call('DELETE', `${owners.activation}/limit`))
})

describe('refused, and changing nothing, is', () => {
  test.each(kinds)('a value of an %s that is missing, too long or no text', async (kind) => {
    const path = `${owners[kind]}/refused`
    for (const body of [
      undefined,
      {},
      [],
      'x',
      7,
      { value: { a: 'x'.repeat(4089) } },
      { value: 'a\u0000' },
      { value: '\ud800' },
      { value: 2 ** 53 },
      { value: { a: [1, { b: -1e300 }] } },
    ]) {
      expectError(await call('PUT', path, body), 400, 'ERROR_REQUEST')
    }
    expect(await list(owners[kind])).toEqual([])
  })

  test.each(kinds)('a malformed key of an %s is refused', async (kind) => {
    for (const key of ['%20', 'a%20b', '%00', 'a%2Fb', 'x'.repeat(65), '%C5%BD']) {
      for (const method of ['PUT', 'DELETE']) {
        const body = method === 'PUT' ? { value: 1 } : undefined
        expectError(await call(method, `${owners[kind]}/${key}`, body), 400, 'ERROR_REQUEST')
      }
    }
    expect(await list(owners[kind])).toEqual([])
  })

  test('another scope', async () => {
    for (const scope of ['', 'application', 'OTHER', '%00', 'APPLICATION&scope=ACTIVATION']) {
      expectError(await call('PUT', `${owners.application}/a?scope=${scope}`, { value: 1 }), 400, 'ERROR_REQUEST')
    }
    expect(await list(owners.application)).toEqual([])
  })

  test('an owner that nobody knows, and a removed activation', async () => {
    const { userId, phone } = await world.activePhone('3.3')
    const removed = `/admin/activations/${phone.state.activationId}/config`
    expectOk(await call('PUT', `${removed}/before`, { value: 1 }))
    expectOk(await world.bank.change(userId, 'REMOVE'))
    expectError(await call('PUT', `${removed}/before`, { value: 2 }), 400, 'ERROR_ADMIN')
    expect(await list(removed)).toEqual([{ key: 'before', value: 1, scope: 'ACTIVATION' }])
    for (const owner of ['/admin/applications/nobody', `/admin/activations/${UNKNOWN_ID}`]) {
      expectError(await call('GET', `${owner}/config`), 400, 'ERROR_ADMIN')
      expectError(await call('PUT', `${owner}/config/a`, { value: 1 }), 400, 'ERROR_ADMIN')
      expectError(await call('DELETE', `${owner}/config/a`), 400, 'ERROR_ADMIN')
    }
  })

  test.each(kinds)('the 51st item of an %s, also when several come at once', async (kind) => {
    const put = (i: number) => call('PUT', `${owners[kind]}/many-${i}`, { value: i })
    for (let i = 0; i < 48; i += 1) expectOk(await put(i))
    const replies = await Promise.all(Array.from({ length: 6 }, (_, i) => put(48 + i)))
    expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 200, 400, 400, 400, 400])
    expectError(await put(99), 400, 'ERROR_REQUEST')
    expectOk(await put(0))
    const stored = (await list(owners[kind])) as { key: string }[]
    expect(stored).toHaveLength(50)
    for (const { key } of stored) expectOk(await call('DELETE', `${owners[kind]}/${key}`))
  })
})

test('of two who store the same key at the same time one is last, and neither fails', async () => {
  const path = `${owners.application}/raced`
  const replies = await Promise.all([1, 2, 3, 4].map((value) => call('PUT', path, { value })))
  for (const reply of replies) expectOk(reply)
  expect(await list(owners.application)).toHaveLength(1)
  const removals = await Promise.all([call('DELETE', path), call('DELETE', path)])
  expect(removals.map(({ status }) => status).toSorted()).toEqual([200, 400])
})

test('changes are recorded with the item before and after', async () => {
  expectOk(await call('PUT', `${owners.application}/noted`, { value: 1 }))
  expectOk(await call('PUT', `${owners.application}/noted`, { value: 2 }))
  expectOk(await call('DELETE', `${owners.application}/noted`))
  expectOk(await call('PUT', `${owners.activation}/noted`, { value: 3 }))
  const target = 'configuration item noted of application test-app'
  const reply = expectOk(await call('GET', '/admin/audit?limit=4'))
  const [activation, removal, second, first] = Object.values(reply.json as Record<string, unknown[]>)[0] ?? []
  const item = (value: number, scope = 'APPLICATION') => ({ key: 'noted', value, scope })
  expect(first).toMatchObject({ target, after: item(1), action: 'PUT /admin/applications/{id}/config/{key}' })
  expect(second).toMatchObject({ target, before: item(1), after: item(2) })
  expect(removal).toMatchObject({ target, before: item(2) })
  expect(activation).toMatchObject({
    target: `configuration item noted of activation ${activationId}`,
    after: item(3, 'ACTIVATION'),
  })
})
