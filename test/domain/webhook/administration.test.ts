// The administration of webhooks (cloud §9, §10), and the internal callback (cloud §8).
import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startTestServer, type TestServer } from '../../helpers/app.ts'
import { type Bank, createBank } from '../../helpers/bank.ts'
import { expectError, MINUTE, SECOND } from '../../helpers/expectations.ts'
import { type HttpReply, member } from '../../../phone/http.ts'
import { endOperation, insertOperation } from '../../helpers/operations.ts'
import { expectOk } from '../../helpers/world.ts'

let server: TestServer
let bank: Bank
const credentials: Record<string, string> = {}
beforeAll(async () => {
  server = await startTestServer({ worksInBackground: false })
  bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
  expectOk(await bank.createApplication('one'))
  for (const role of ['integration', 'internal', 'admin']) {
    const created = expectOk(await bank.call('POST', '/admin/users', { username: `the-${role}`, role, application: 'one' }))
    credentials[role] = `the-${role}:${String(member(created.json, 'password'))}`
  }
})
afterAll(() => server.close())

const hook = { application: 'one', name: 'core', kind: 'OPERATION', url: 'https://bank.example/hook' }
const create = (more: Readonly<Record<string, unknown>> = {}): Promise<HttpReply> =>
  bank.call('POST', '/admin/webhooks', { ...hook, ...more })
const createId = async (more = {}): Promise<string> => String(member(expectOk(await create(more)).json, 'id'))
const readAll = async (): Promise<unknown> => expectOk(await bank.call('GET', '/admin/webhooks')).json
const uuid = '6fc4f0e4-6ab0-4d02-a5ba-0bd1bd8a2d5a'

describe('a webhook', () => {
  test('is created with a secret that is shown once, changed, listed, and removed with its deliveries', async () => {
    const basic = { username: 'pawl', password: 'password of the receiver' }
    const created = expectOk(await create({ attributes: ['userId', 'status'], basic })).json
    const id = String(member(created, 'id'))
    expect(member(created, 'secret')).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    const shown = {
      id,
      ...hook,
      attributes: ['userId', 'status'],
      basicUsername: 'pawl',
      isEnabled: true,
      createdAt: expect.any(Number) as unknown,
      waiting: 0,
      delivered: 0,
      dead: 0,
      failuresInRow: 0,
      lagSeconds: 0,
    }
    expect(created).toEqual({ ...shown, secret: expect.any(String) as unknown })
    expect(expectOk(await bank.call('GET', `/admin/webhooks/${id}`)).json).toEqual(shown)
    server.clock.stop()
    await insertOperation(server.context.db, { applicationId: 'one' })
    await sql`update webhook_delivery set created_at = ${new Date(server.context.platform.now())}`.execute(server.context.db)
    server.clock.advance(90 * SECOND)
    const listed = member(await readAll(), 'webhooks') as Record<string, unknown>[]
    expect(listed).toEqual([{ ...shown, waiting: 1, lagSeconds: 90 }])
    const changed = { name: 'changed', url: 'https://bank.example/other', attributes: ['data'], isEnabled: false }
    expect(expectOk(await bank.call('PUT', `/admin/webhooks/${id}`, changed)).json).toEqual({
      ...shown,
      ...changed,
      waiting: 1,
      lagSeconds: 90,
    })
    server.clock.go()
    const without = expectOk(await bank.call('PUT', `/admin/webhooks/${id}`, { ...changed, basic: null })).json
    expect(without).not.toHaveProperty('basicUsername')
    expect(expectOk(await bank.call('DELETE', `/admin/webhooks/${id}`)).json).toEqual({ status: 'OK' })
    expect(await readAll()).toEqual({ webhooks: [] })
    const { rows } = await sql`select sequence from webhook_delivery`.execute(server.context.db)
    expect(rows).toEqual([])
    expect(server.log()).not.toContain(basic.password)
  })

  test('keeps its credentials on another path, and takes them to no other server', async () => {
    const id = await createId({ basic: { username: 'pawl', password: 'password of the receiver' } })
    const change = (url: string, more = {}) => bank.call('PUT', `/admin/webhooks/${id}`, { name: 'core', url, ...more })
    expect(expectOk(await change('https://bank.example/other')).json).toHaveProperty('basicUsername', 'pawl')
    for (const url of [
      'https://elsewhere.example/hook',
      'https://bank.example:8443/other',
      'https://bank.example.evil.example/',
    ]) {
      const reply = await change(url)
      expectError(reply, 400, 'ERROR_REQUEST')
      expect(member(reply.json, 'responseObject', 'violations')).toEqual([expect.objectContaining({ fieldName: 'basic' })])
    }
    const basic = { username: 'other', password: 'password of the other' }
    expect(expectOk(await change('https://elsewhere.example/hook', { basic })).json).toHaveProperty('basicUsername', 'other')
    expect(expectOk(await change('https://bank.example/hook', { basic: null })).json).not.toHaveProperty('basicUsername')
    expectOk(await change('https://elsewhere.example/hook'))
    expectOk(await bank.call('DELETE', `/admin/webhooks/${id}`))
  })

  test('is shown without the query of its URL to callers who may only read', async () => {
    const id = await createId({ url: 'https://bank.example/hook?token=of-the-receiver' })
    const user = { username: 'the-reader', role: 'read-only' }
    const password = String(member(expectOk(await bank.call('POST', '/admin/users', user)).json, 'password'))
    const reader = bank.as(`${user.username}:${password}`)
    for (const path of ['/admin/webhooks', `/admin/webhooks/${id}`]) {
      expect(expectOk(await bank.call('GET', path)).text).toContain('"https://bank.example/hook?token=of-the-receiver"')
      expect(expectOk(await reader.call('GET', path)).text).toContain('"https://bank.example/hook"')
    }
    expectOk(await bank.call('DELETE', `/admin/webhooks/${id}`))
  })

  test('keeps its previous secret for as long as the rotation says', async () => {
    const id = await createId()
    const rotate = (more: unknown) => bank.call('POST', `/admin/webhooks/${id}/secret`, more)
    expect(expectOk(await rotate({ keepPreviousSeconds: 60 })).json).toEqual({ secret: expect.stringMatching(/^whsec_/) })
    const read = async () => expectOk(await bank.call('GET', `/admin/webhooks/${id}`)).json
    expect(await read()).toHaveProperty('previousSecretExpiresAt')
    server.clock.advance(MINUTE)
    expect(await read()).not.toHaveProperty('previousSecretExpiresAt')
    for (const keepPreviousSeconds of [-1, 1.5, '60', 2_592_001, null])
      expectError(await rotate({ keepPreviousSeconds }), 400, 'ERROR_REQUEST')
    const replies = await Promise.all(Array.from({ length: 6 }, () => rotate({})))
    expect(replies.filter(({ status }) => status === 200).length).toBeGreaterThan(0)
    for (const reply of replies) if (reply.status !== 200) expectError(reply, 400, 'ERROR_ADMIN')
  })

  test.each([
    ['no JSON', '{', 'UNKNOWN', ''],
    ['no object', 'null', 'UNKNOWN', ''],
    ['an object with others in it', '{"status":{"toString":1}}', 'UNKNOWN', ''],
    ['an object with nothing in it', '{}', 'UNKNOWN', /^\{"type":"OPERATION","operationId":"[^"]+"\}$/],
    ['parameters that are no JSON', '{"status":"PENDING","parameters":"{"}', 'PENDING', ''],
  ])('lists its messages, and shows each of them, where somebody made one %s', async (_, payload, objectStatus, body) => {
    const { db } = server.context
    const asks = await createId({ attributes: ['parameters'] })
    await insertOperation(db, { applicationId: 'one' })
    await insertOperation(db, { applicationId: 'one' })
    await sql`update webhook_delivery set payload = ${payload}
      where sequence = (select max(sequence) from webhook_delivery where webhook_id = ${asks})`.execute(db)
    const path = `/admin/webhooks/${asks}/deliveries`
    const shown = member(expectOk(await bank.call('GET', path)).json, 'deliveries') as Record<string, unknown>[]
    expect(shown.map((one) => one['objectStatus'])).toEqual([objectStatus, 'PENDING'])
    const one = expectOk(await bank.call('GET', `${path}/${String(shown[0]?.['id'])}`)).json
    expect(member(one, 'body')).toEqual(typeof body === 'string' ? body : expect.stringMatching(body))
    expectOk(await bank.call('DELETE', `/admin/webhooks/${asks}`))
    // Of other webhooks of the application: their figures grow with time.
    await sql`delete from webhook_delivery`.execute(db)
  })

  test('shows its messages where somebody made its attributes names that every object has', async () => {
    const { db } = server.context
    const id = await createId({ attributes: ['status'] })
    await insertOperation(db, { applicationId: 'one' })
    await sql`update webhook set attributes = '__defineGetter__,constructor,status' where webhook_id = ${id}`.execute(db)
    const path = `/admin/webhooks/${id}/deliveries`
    const [first] = member(expectOk(await bank.call('GET', path)).json, 'deliveries') as Record<string, unknown>[]
    const body = JSON.parse(
      String(member(expectOk(await bank.call('GET', `${path}/${String(first?.['id'])}`)).json, 'body')),
    ) as object
    expect(Object.keys(body).toSorted()).toEqual(['event', 'operationId', 'status', 'type'])
    expectOk(await bank.call('DELETE', `/admin/webhooks/${id}`))
    await sql`delete from webhook_delivery`.execute(db)
  })

  test.each<[string, unknown]>([
    ['http', 'http://bank.example/hook'],
    ['another scheme', 'ftp://bank.example/hook'],
    ['a script', 'javascript:alert(1)'],
    ['a file', 'file:///etc/passwd'],
    ['loopback', 'https://127.0.0.1/hook'],
    ['loopback by name', 'https://localhost/hook'],
    ['loopback by a name below', 'https://pawl.localhost./hook'],
    ['loopback of IPv6', 'https://[::1]/hook'],
    ['loopback mapped into IPv6', 'https://[::ffff:127.0.0.1]/hook'],
    ['loopback as a number', 'https://2130706433/hook'],
    ['loopback in hexadecimal', 'https://0x7f000001/hook'],
    ['a private address', 'https://192.168.1.1/hook'],
    ['the metadata service', 'https://169.254.169.254/latest'],
    ['with credentials', 'https://user:password@bank.example/hook'],
    ['with a fragment', 'https://bank.example/hook#part'],
    ['relative', '/hook'],
    ['no URL', 'hook'],
    ['empty', ''],
    ['with a space', 'https://bank.example/a b'],
    ['with a line break', 'https://bank.example/a\nb'],
    ['with a zero character', 'https://bank.example/\u0000'],
    ['with a lone surrogate in its host', 'https://bank\ud800.example/'],
    ['too long', `https://bank.example/${'x'.repeat(1_024)}`],
    ['a number', 7],
    ['null', null],
    ['missing', undefined],
  ])('is refused when its URL is %s', async (_title, url) => {
    const before = await readAll()
    expectError(await create({ url }), 400, 'ERROR_REQUEST')
    const id = await createId()
    expectError(await bank.call('PUT', `/admin/webhooks/${id}`, { name: 'core', url }), 400, 'ERROR_REQUEST')
    expectOk(await bank.call('DELETE', `/admin/webhooks/${id}`))
    expect(await readAll()).toEqual(before)
  })

  test('is refused for its credentials without repeating them', async () => {
    const reply = await create({ url: 'https://user:marked@bank.example/hook' })
    expectError(reply, 400, 'ERROR_REQUEST')
    expect(reply.text).toContain('must not contain credentials')
    expect(reply.text).not.toContain('marked')
  })

  test.each<[string, Readonly<Record<string, unknown>>]>([
    ['name', { name: '' }],
    ['name', { name: 'a\u0000b' }],
    ['name', { name: 'x'.repeat(256) }],
    ['name', { name: undefined }],
    ['kind', { kind: 'operation' }],
    ['kind', { kind: undefined }],
    ['application', { application: undefined }],
    ['application', { application: 'a\nb' }],
    ['attributes', { attributes: ['activationStatus'] }],
    ['attributes', { attributes: ['userId,status'] }],
    ['attributes', { attributes: ['__proto__'] }],
    ['attributes', { attributes: ['status', 'status'] }],
    ['attributes', { kind: 'ACTIVATION', attributes: ['status'] }],
    ['attributes', { attributes: 'status' }],
    ['attributes', { attributes: [7] }],
    ['isEnabled', { isEnabled: 'true' }],
    ['basic', { basic: { username: 'a:b', password: 'x' } }],
    ['basic', { basic: { username: 'a' } }],
    ['basic', { basic: { username: 'a', password: 'x\r\ny: z' } }],
    ['basic', { basic: 'a:b' }],
  ])('is refused for its %s: %j', async (field, more) => {
    const before = await readAll()
    const reply = await create(more)
    expectError(reply, 400, 'ERROR_REQUEST')
    const violations = member(reply.json, 'responseObject', 'violations') as { fieldName: string; invalidValue?: string }[]
    expect(violations[0]?.fieldName).toMatch(new RegExp(`^(${field}|body)`))
    expect(await readAll()).toEqual(before)
  })

  test('is refused for an application that does not exist', async () => {
    expectError(await create({ application: 'none' }), 400, 'ERROR_ADMIN')
  })

  test('may have every attribute that is documented', async () => {
    const reply = await create({ attributes: ['nothing'] })
    const hint = String(member(member(reply.json, 'responseObject', 'violations'), '0', 'hint'))
    const attributes = hint.replace('must be one of ', '').split(', ')
    expect(attributes).toContain('timestampFinalized')
    expectOk(await create({ attributes }))
  })

  test.each([uuid, uuid.toUpperCase(), 'none', '%F0%9F%93%B1', "'", '..%2F'])('that is unknown (%s) is said so', async (id) => {
    const change = { name: 'core', url: hook.url }
    const calls = [
      ['GET', `/admin/webhooks/${id}`, undefined],
      ['PUT', `/admin/webhooks/${id}`, change],
      ['DELETE', `/admin/webhooks/${id}`, undefined],
      ['POST', `/admin/webhooks/${id}/secret`, {}],
      ['GET', `/admin/webhooks/${id}/deliveries`, undefined],
      ['GET', `/admin/webhooks/${id}/deliveries/${randomUUID()}`, undefined],
      ['POST', `/admin/webhooks/${id}/deliveries`, { status: 'DEAD' }],
    ] as const
    for (const [method, path, body] of calls) expectError(await bank.call(method, path, body), 400, 'ERROR_ADMIN')
  })

  test('is for administrators alone', async () => {
    const id = await createId()
    const before = await readAll()
    const calls = [
      ['GET', '/admin/webhooks', undefined],
      ['POST', '/admin/webhooks', hook],
      ['GET', `/admin/webhooks/${id}`, undefined],
      ['PUT', `/admin/webhooks/${id}`, hook],
      ['DELETE', `/admin/webhooks/${id}`, undefined],
      ['POST', `/admin/webhooks/${id}/secret`, {}],
      ['GET', `/admin/webhooks/${id}/deliveries`, undefined],
      ['POST', `/admin/webhooks/${id}/deliveries`, { status: 'DEAD' }],
    ] as const
    for (const [method, path, body] of calls) {
      expectError(await bank.as(undefined).call(method, path, body), 401, 'HTTP_401')
      for (const role of ['integration', 'internal'])
        expectError(await bank.as(credentials[role]).call(method, path, body), 403, 'HTTP_403')
    }
    expect(await readAll()).toEqual(before)
  })

  test('that is removed while operations change fails none of them', async () => {
    for (let round = 0; round < 5; round += 1) {
      const id = await createId()
      const operations = Array.from({ length: 4 }, () => insertOperation(server.context.db, { applicationId: 'one' }))
      const [reply] = await Promise.all([bank.call('DELETE', `/admin/webhooks/${id}`), ...operations])
      expectOk(reply)
    }
  })
})

describe('deliveries', () => {
  let id: string
  let operations: string[]
  beforeAll(async () => {
    id = await createId()
    operations = []
    for (let i = 0; i < 5; i += 1) operations.push(await insertOperation(server.context.db, { applicationId: 'one' }))
    await endOperation(server.context.db, operations[0] ?? '', 'CANCELED')
  })

  const list = (query = ''): Promise<HttpReply> => bank.call('GET', `/admin/webhooks/${id}/deliveries${query}`)

  test('are listed newest first, in pages, by status', async () => {
    const all = member(expectOk(await list()).json, 'deliveries') as Record<string, unknown>[]
    expect(all.map(({ objectId }) => objectId)).toEqual([operations[0], ...operations.toReversed()])
    expect(all[0]).toEqual({
      id: expect.any(String) as unknown,
      objectId: operations[0],
      objectStatus: 'CANCELED',
      status: 'WAITING',
      attempts: 0,
      nextAttemptAt: 0,
      createdAt: expect.any(Number) as unknown,
      // The creation of the same operation is to be told before its end.
      isBehindEarlier: true,
    })
    expect(all.slice(1).filter((one) => 'isBehindEarlier' in one)).toEqual([])
    const pages: unknown[] = []
    for (let next: unknown = ''; next !== undefined; ) {
      const { json } = expectOk(await list(`?limit=4${next === '' ? '' : `&before=${String(next)}`}`))
      pages.push(...(member(json, 'deliveries') as unknown[]))
      next = member(json, 'next')
    }
    expect(pages).toEqual(all)
    expect(member((await list('?status=WAITING')).json, 'deliveries')).toEqual(all)
    expect(member((await list('?status=DEAD')).json, 'deliveries')).toEqual([])
  })

  test.each(['limit=0', 'limit=1001', 'limit=x', 'status=dead', 'status=', 'before=x', 'before=-1', `before=${'9'.repeat(19)}`])(
    'are not listed for %s',
    async (query) => {
      expectError(await list(`?${query}`), 400, 'ERROR_REQUEST')
    },
  )

  test('are replayed one by one or all that are dead, of this webhook only', async () => {
    const replay = (body: unknown) => bank.call('POST', `/admin/webhooks/${id}/deliveries`, body)
    const deliveries = member((await list()).json, 'deliveries') as { id: string }[]
    const [first, second] = deliveries
    expect(expectOk(await replay({ status: 'DEAD' })).json).toEqual({ replayed: 0 })
    await sql`update webhook_delivery set status = 'DEAD', attempts = 8, finished_at = now() where webhook_id = ${id}`.execute(
      server.context.db,
    )
    expect(expectOk(await replay({ deliveryId: first?.id })).json).toEqual({ replayed: 1 })
    const replies = await Promise.all(Array.from({ length: 3 }, () => replay({ status: 'DEAD' })))
    const counts = replies.map((reply) => Number(member(expectOk(reply).json, 'replayed')))
    expect(counts.reduce((sum, count) => sum + count)).toBe(deliveries.length - 1)
    const after = member((await list()).json, 'deliveries') as Record<string, unknown>[]
    expect(after.every(({ status, attempts }) => status === 'WAITING' && attempts === 0)).toBe(true)
    for (const body of [
      {},
      { status: 'WAITING' },
      { deliveryId: first?.id, status: 'DEAD' },
      { deliveryId: '' },
      { deliveryId: 7 },
    ])
      expectError(await replay(body), 400, 'ERROR_REQUEST')
    expectError(await replay({ deliveryId: uuid }), 400, 'ERROR_ADMIN')
    const other = await createId()
    const foreign = await bank.call('POST', `/admin/webhooks/${other}/deliveries`, { deliveryId: second?.id })
    expectError(foreign, 400, 'ERROR_ADMIN')
  })
})

describe('the internal callback', () => {
  const call = (body: unknown, role = 'internal') => bank.as(credentials[role]).call('POST', '/internal/callback/operation', body)
  const statusOf = async (operationId: string): Promise<unknown> => {
    const { rows } = await sql<{ status: string; finalized_at: Date | null }>`
      select status, finalized_at from operation where operation_id = ${operationId}`.execute(server.context.db)
    return { status: rows[0]?.status, isFinal: rows[0]?.finalized_at !== null }
  }
  let due: string
  let pending: string
  beforeEach(async () => {
    const { db, platform } = server.context
    due = await insertOperation(db, { applicationId: 'one', expiresAt: new Date(platform.now() - 1) })
    pending = await insertOperation(db, { applicationId: 'one', expiresAt: new Date(platform.now() + MINUTE) })
  })

  test('makes a due expiry durable and publishes it once, with extra members and a capital UUID', async () => {
    const id = await createId()
    const body = { operationId: due.toUpperCase(), type: 'OPERATION', status: 'APPROVED' }
    for (const reply of await Promise.all(Array.from({ length: 5 }, () => call(body))))
      expect(expectOk(reply).json).toEqual({ status: 'OK' })
    expect(await statusOf(due)).toEqual({ status: 'EXPIRED', isFinal: true })
    const { json } = expectOk(await bank.call('GET', `/admin/webhooks/${id}/deliveries`))
    expect(member(json, 'deliveries')).toMatchObject([{ objectId: due, objectStatus: 'EXPIRED' }])
  })

  test('changes nothing else: what is not due, finished, or unknown answers the same', async () => {
    await endOperation(server.context.db, due, 'APPROVED')
    for (const operationId of [pending, due, uuid])
      expect(expectOk(await call({ operationId }, 'admin')).json).toEqual({ status: 'OK' })
    expect(await statusOf(pending)).toEqual({ status: 'PENDING', isFinal: false })
    expect(await statusOf(due)).toEqual({ status: 'APPROVED', isFinal: true })
  })

  test.each([undefined, null, '', 'none', 7, `${uuid}\u0000`, `${uuid}\n`, ` ${uuid}`, [uuid], uuid.replaceAll('-', '')])(
    'refuses %j, which is not a UUID',
    async (operationId) => {
      expectError(await call({ operationId }), 400, 'ERROR_REQUEST')
    },
  )

  test('needs a credential of role internal or admin', async () => {
    expectError(await call({ operationId: due }, 'integration'), 403, 'HTTP_403')
    expectError(await bank.as(undefined).call('POST', '/internal/callback/operation', { operationId: due }), 401, 'HTTP_401')
    expectError(await bank.call('GET', '/internal/callback/operation'), 404, 'ERROR_NOT_FOUND')
    expect(await statusOf(due)).toEqual({ status: 'PENDING', isFinal: false })
  })
})
