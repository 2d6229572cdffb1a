// The delivery of webhooks: order, ids, signatures, retries, and what happens when receivers or processes fail (cloud §9).
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { runHousekeeping } from '../../src/domain/housekeeping.ts'
import { deliverDue } from '../helpers/deliver.ts'
import { startWebhookDelivery } from '../../src/domain/webhook/loop.ts'
import { WEBHOOK_EVENTS } from '../../src/domain/webhook/message.ts'
import { inTransaction } from '../../src/storage/database/database.ts'
import { claimDeliveries, storeFailures } from '../../src/storage/webhook/deliveries.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { expectError, HOUR, MINUTE, SECOND } from '../helpers/expectations.ts'
import { member } from '../../phone/http.ts'
import { CREATED_AT, EXPIRES_AT, endOperation, failOperation, insertOperation } from '../helpers/operations.ts'
import { type Received, type Receiver, signaturesOf, startReceiver } from '../helpers/receiver.ts'
import { expectOk, openWorld, type World } from '../helpers/world.ts'

let server: TestServer
let world: World
let receiver: Receiver
beforeAll(async () => {
  const env = { PAWL_WEBHOOK_ALLOW_HTTP: 'true', PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true' }
  server = await startTestServer({ env, worksInBackground: false })
  world = await openWorld({
    urls: [server.url],
    admin: `${server.admin.user}:${server.admin.password}`,
    advance: (milliseconds) => server.clock.advance(milliseconds),
    close: () => server.close(),
  })
  receiver = await startReceiver()
  // Retries are due when a test says so, however long it takes.
  server.clock.stop()
})
afterAll(async () => {
  await receiver.goDown()
  await world.close()
})

/** Each test has the installation to itself: operations of others are over, their webhooks gone with all deliveries. */
beforeEach(async () => {
  await sql`update operation set status = 'CANCELED' where status = 'PENDING'`.execute(server.context.db)
  const { webhooks } = expectOk(await world.bank.call('GET', '/admin/webhooks')).json as { webhooks: { id: string }[] }
  for (const { id } of webhooks) expectOk(await world.bank.call('DELETE', `/admin/webhooks/${id}`))
  receiver.answerWith(200)
  receiver.take()
})

interface Hook {
  readonly id: string
  readonly secret: string
}

const createHook = async (more: Readonly<Record<string, unknown>> = {}): Promise<Hook> => {
  const body = { application: 'test-app', name: 'hook', kind: 'OPERATION', url: receiver.url, attributes: ['status'], ...more }
  return expectOk(await world.bank.call('POST', '/admin/webhooks', body)).json as unknown as Hook
}
const readHook = async ({ id }: Hook): Promise<Readonly<Record<string, unknown>>> =>
  expectOk(await world.bank.call('GET', `/admin/webhooks/${id}`)).json as Readonly<Record<string, unknown>>
const listDeliveries = async ({ id }: Hook, query = ''): Promise<readonly Readonly<Record<string, unknown>>[]> =>
  member(expectOk(await world.bank.call('GET', `/admin/webhooks/${id}/deliveries${query}`)).json, 'deliveries') as never
const replay = async ({ id }: Hook, what: object): Promise<unknown> =>
  member(expectOk(await world.bank.call('POST', `/admin/webhooks/${id}/deliveries`, what)).json, 'replayed')
const change = ({ id }: Hook, more: Readonly<Record<string, unknown>> = {}) =>
  world.bank.call('PUT', `/admin/webhooks/${id}`, { name: 'hook', url: receiver.url, attributes: ['status'], ...more })

const deliver = (): Promise<number> => deliverDue(server.context)
const newOperation = (more = {}): Promise<string> => insertOperation(server.context.db, { applicationId: 'test-app', ...more })
const statusesOf = (received: readonly Received[]): unknown[] =>
  received.map(({ json }) => json['status'] ?? json['activationStatus'])

describe('a message', () => {
  test('of an operation has type, id and the attributes that were asked for, with times in milliseconds', async () => {
    const attributes = [
      'userId',
      'applications',
      'operationType',
      'parameters',
      'additionalData',
      'activationFlag',
      'status',
      'data',
      'failureCount',
      'maxFailureCount',
      'signatureType',
      'externalId',
      'timestampCreated',
      'timestampExpires',
      'timestampFinalized',
      'statusReason',
      'registrationId',
      'template',
      'language',
    ]
    const bare = await createHook({ attributes: [] })
    await createHook({ attributes })
    const operationId = await newOperation()
    await deliver()
    await endOperation(server.context.db, operationId, 'APPROVED')
    await deliver()
    const bodies = receiver.take().map(({ text }) => JSON.parse(text) as Record<string, unknown>)
    const full = {
      type: 'OPERATION',
      operationId,
      event: 'created',
      userId: 'alice',
      applications: ['test-app'],
      operationType: 'authorize_payment',
      parameters: { amount: '10' },
      additionalData: { channel: 'web' },
      status: 'PENDING',
      data: 'A1*A10EUR',
      failureCount: 0,
      maxFailureCount: 5,
      signatureType: ['POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'],
      externalId: 'external',
      timestampCreated: CREATED_AT,
      timestampExpires: EXPIRES_AT,
      template: 'payment',
      language: 'en',
    }
    expect(bodies.filter((body) => body['status'] !== undefined)).toEqual([
      full,
      { ...full, event: 'approved', status: 'APPROVED', timestampFinalized: CREATED_AT + 1_000 },
    ])
    expect(bodies.filter((body) => body['status'] === undefined)).toEqual([
      { type: 'OPERATION', operationId, event: 'created' },
      { type: 'OPERATION', operationId, event: 'approved' },
    ])
    expect(await readHook(bare)).toMatchObject({ delivered: 2, waiting: 0, dead: 0, failuresInRow: 0, lagSeconds: 0 })
  })

  test('of an operation for one device names that device, to which a push is to go', async () => {
    await createHook({ attributes: ['userId', 'registrationId', 'activationFlag'] })
    const { userId, phone } = await world.activePhone('3.3')
    const registrationId = phone.state.activationId
    const create = async (body: object) =>
      member(expectOk(await world.bank.createDeviceOperation({ template: 'login', ...body })).json, 'operationId')
    const ids = [await create({ userId, registrationId, applicationFlag: 'VIP' }), await create({ userId }), await create({})]
    await deliver()
    const messages = receiver.take().map(({ json }) => json)
    expect(messages).toHaveLength(3)
    const told = { type: 'OPERATION', event: 'created' }
    expect(messages).toEqual(
      expect.arrayContaining([
        { ...told, operationId: ids[0], userId, registrationId, activationFlag: 'VIP' },
        { ...told, operationId: ids[1], userId },
        { ...told, operationId: ids[2] },
      ]),
    )
  })

  test('is sent for each change of an activation, with its attributes', async () => {
    const attributes = [
      'userId',
      'activationName',
      'deviceInfo',
      'platform',
      'protocol',
      'activationFlags',
      'activationStatus',
      'blockedReason',
      'applicationId',
    ]
    await createHook({ kind: 'ACTIVATION', attributes })
    const { userId, phone } = await world.activePhone('3.3')
    expectOk(await phone.send(phone.prepareValidation()))
    expectOk(await world.bank.change(userId, 'BLOCK', { blockReason: 'LOST' }))
    expectOk(await world.bank.change(userId, 'UNBLOCK'))
    expectOk(await world.bank.remove(userId))
    await deliver()
    const received = receiver.take()
    expect(statusesOf(received)).toEqual(['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'ACTIVE', 'REMOVED'])
    const events = ['created', 'pending_commit', 'activated', 'blocked', 'unblocked', 'removed']
    expect(received.map(({ json }) => json['event'])).toEqual(events)
    const { activationId } = phone.state
    expect(received[0]?.json).toEqual({
      type: 'ACTIVATION',
      activationId,
      event: 'created',
      userId,
      protocol: 'powerauth',
      activationFlags: [],
      activationStatus: 'CREATED',
      applicationId: 'test-app',
    })
    expect(received[3]?.json).toMatchObject({
      activationId,
      userId,
      activationName: expect.any(String) as unknown,
      platform: expect.any(String) as unknown,
      blockedReason: 'LOST',
    })
  })

  test('is sent when an activation runs out and when one is blocked by wrong codes', async () => {
    await createHook({ kind: 'ACTIVATION', attributes: ['activationStatus', 'blockedReason'] })
    const { phone } = await world.activePhone('3.3')
    await world.register()
    for (let i = 0; i < 5; i += 1) await phone.send(phone.prepareValidation({ wrongKeys: { knowledge: new Uint8Array(16) } }))
    server.clock.advance(10 * MINUTE)
    await runHousekeeping(server.context)
    await deliver()
    const bodies = receiver.take().map(({ json }) => json)
    expect(bodies).toContainEqual(expect.objectContaining({ activationStatus: 'BLOCKED', blockedReason: 'MAX_FAILED_ATTEMPTS' }))
    expect(bodies).toContainEqual(expect.objectContaining({ activationStatus: 'BLOCKED', event: 'blocked' }))
    const removed = bodies.filter(({ activationStatus }) => activationStatus === 'REMOVED')
    expect(removed.map(({ event }) => event)).toEqual(['expired'])
  })

  test('carries what the phone shows of an operation, in its language', async () => {
    await createHook({ attributes: ['title', 'message', 'summary', 'language'] })
    const { userId } = await world.activePhone('3.3')
    const texts = {
      en: { title: 'Payment of ${amount}', message: 'To ${iban}', attributes: [], summary: 'Confirm ${amount}' },
      cs: { title: 'Platba ${amount}', message: 'Na ${iban}', attributes: [] },
    }
    const template = {
      templateName: 'texts',
      operationType: 'texts',
      dataTemplate: 'A0',
      signatureType: ['possession_knowledge'],
    }
    const limits = { maxFailureCount: 5, expiration: 300 }
    expectOk(await world.bank.call('POST', '/admin/templates', { ...template, ...limits, texts }))
    const parameters = { amount: '10 ${iban}', iban: 'CZ\n27' }
    for (const language of ['en', 'cs']) {
      expectOk(await world.bank.call('POST', '/operations', { userId, template: 'texts', language, parameters }))
    }
    await deliver()
    // Two objects: their messages may overtake each other.
    const shown = receiver.take().map(({ json: { title, message, summary, language } }) => [language, title, message, summary])
    expect(shown.toSorted(([a], [b]) => String(a).localeCompare(String(b)))).toEqual([
      ['cs', 'Platba 10 ${iban}', 'Na CZ\n27', undefined],
      ['en', 'Payment of 10 ${iban}', 'To CZ\n27', 'Confirm 10 ${iban}'],
    ])
  })

  test('is sent for an operation from its creation over a wrong approval to its end', async () => {
    await createHook({ attributes: ['status', 'failureCount', 'statusReason', 'parameters'] })
    const { userId } = await world.activePhone('3.3')
    const parameters = { amount: '10', currency: 'EUR', iban: 'DE89370400440532013000' }
    const created = expectOk(await world.bank.call('POST', '/operations', { userId, template: 'payment', parameters }))
    const operationId = String(member(created.json, 'operationId'))
    const qr = expectOk(await world.bank.call('GET', `/operations/offline/qr?operationId=${operationId}`))
    const offline = { operationId, nonce: member(qr.json, 'nonce'), otp: '12345678-12345678' }
    expectError(await world.bank.call('POST', '/operations/offline/otp', offline), 400, 'ERROR_OTP_INVALID')
    expectOk(await world.bank.call('DELETE', `/operations?operationId=${operationId}&statusReason=CHANGED`))
    await deliver()
    const id = { type: 'OPERATION', operationId }
    expect(receiver.take().map(({ json }) => json)).toEqual([
      { ...id, event: 'created', status: 'PENDING', failureCount: 0, parameters },
      { ...id, event: 'failed_attempt', status: 'PENDING', failureCount: 1, parameters },
      { ...id, event: 'cancelled', status: 'CANCELED', failureCount: 1, statusReason: 'CHANGED', parameters },
    ])
  })

  test.each([
    ['APPROVED', 'approved'],
    ['REJECTED', 'rejected'],
    ['CANCELED', 'cancelled'],
    ['EXPIRED', 'expired'],
    ['FAILED', 'failed'],
  ] as const)('of an operation that is %s names the event %s', async (status, event) => {
    await createHook()
    const operationId = await newOperation()
    await endOperation(server.context.db, operationId, status)
    await deliver()
    const told = receiver.take().map(({ json }) => json['event'])
    expect(told).toEqual(['created', event])
    expect(told.filter((name) => !WEBHOOK_EVENTS.OPERATION.includes(String(name)))).toEqual([])
  })

  test('names the last failed attempt by what it did, and a change of the end of a block', async () => {
    await createHook()
    await createHook({ kind: 'ACTIVATION', attributes: [] })
    const operationId = await newOperation()
    const { db } = server.context
    await sql`update operation set failure_count = failure_count + 1, status = 'FAILED' where operation_id = ${operationId}`.execute(
      db,
    )
    const { phone } = await world.activePhone('3.3')
    const { activationId } = phone.state
    await sql`update activation set state = 'BLOCKED', block_expires_at = now() where activation_id = ${activationId}`.execute(db)
    await sql`update activation set block_expires_at = null where activation_id = ${activationId}`.execute(db)
    await deliver()
    const received = receiver.take()
    const of = (type: string) => received.filter(({ json }) => json['type'] === type).map(({ json }) => json['event'])
    expect(of('OPERATION')).toEqual(['created', 'failed'])
    expect(of('ACTIVATION')).toEqual(['created', 'pending_commit', 'activated', 'blocked', 'block_changed'])
  })

  test('that was written before messages named their events has none', async () => {
    await createHook()
    const operationId = await newOperation()
    await sql`update webhook_delivery set payload = (payload::jsonb - 'event')::text where object_id = ${operationId}`.execute(
      server.context.db,
    )
    await deliver()
    expect(receiver.take().map(({ json }) => json)).toEqual([{ type: 'OPERATION', operationId, status: 'PENDING' }])
  })

  test.each(['{"a":"\\ud800"}', '{"a":"\\u0000"}', '{"a":"\\"\\\\\\n*{}\\u202e"}', '{}'])(
    'has parameters that are hard to write: %s',
    async (parameters) => {
      await createHook({ attributes: ['parameters'] })
      await newOperation({ parameters })
      await deliver()
      expect(receiver.take().map(({ json }) => json['parameters'])).toEqual([JSON.parse(parameters)])
    },
  )

  test('carries one id in two headers, the second it was sent, and a signature over both and the body', async () => {
    const hook = await createHook()
    await newOperation()
    const before = Math.floor(server.context.platform.now() / 1000)
    await deliver()
    const [received] = receiver.take()
    if (!received) throw new Error('nothing was received')
    const { headers } = received
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'webhook-id': headers['idempotency-key'] })
    expect(received.id).toMatch(/^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/)
    expect(Number(headers['webhook-timestamp'])).toBeGreaterThanOrEqual(before)
    expect(headers['webhook-signature']).toBe(signaturesOf(received, hook.secret))
    expect(headers.authorization).toBeUndefined()
    expect(received.path).toBe('/hook')
  })

  test('is found genuine by the code of docs/WEBHOOKS.md, and altered or old it is not', async () => {
    const [, code = ''] = /```js\n(.*?)```/s.exec(readFileSync('docs/WEBHOOKS.md', 'utf8')) ?? []
    const module = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as {
      isGenuine: (secret: string, headers: object, body: string, nowSeconds: number) => boolean
    }
    const hook = await createHook()
    const next = member(
      (await world.bank.call('POST', `/admin/webhooks/${hook.id}/secret`, { keepPreviousSeconds: 60 })).json,
      'secret',
    )
    await newOperation()
    await deliver()
    const [received] = receiver.take()
    if (!received) throw new Error('nothing was received')
    const { headers, text } = received
    const now = Math.floor(server.context.platform.now() / 1000)
    const check = (secret: string, more: object = {}, body = text, at = now) =>
      module.isGenuine(secret, { ...headers, ...more }, body, at)
    expect([check(hook.secret), check(String(next))]).toEqual([true, true])
    const other = `whsec_${Buffer.alloc(32).toString('base64')}`
    expect([check(other), check(hook.secret, {}, `${text} `), check(hook.secret, {}, text, now + 400)]).toEqual([
      false,
      false,
      false,
    ])
    const altered = [
      { 'webhook-id': 'x' },
      { 'webhook-timestamp': 'x' },
      { 'webhook-signature': undefined },
      { 'webhook-signature': 'v1,' },
    ]
    for (const more of altered) expect(check(hook.secret, more)).toBe(false)
    const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${text}`
    const unkeyed = createHmac('sha256', '').update(signed).digest('base64')
    expect(() => check('', { 'webhook-signature': `v1,${unkeyed}` })).toThrow('without a secret')
  })

  test('carries two signatures while the secret is being rotated, and the new one alone afterwards', async () => {
    const hook = await createHook({ basic: { username: 'pawl', password: 'wörd' } })
    const rotate = async (more: object): Promise<string> =>
      String(member(expectOk(await world.bank.call('POST', `/admin/webhooks/${hook.id}/secret`, more)).json, 'secret'))
    const second = await rotate({ keepPreviousSeconds: 60 })
    await newOperation()
    await deliver()
    server.clock.advance(61 * SECOND)
    await newOperation()
    await deliver()
    const third = await rotate({})
    await newOperation()
    await deliver()
    const received = receiver.take()
    const secrets = [[second, hook.secret], [second], [third]]
    expect(received.map(({ headers }) => headers['webhook-signature'])).toEqual(
      received.map((one, i) => signaturesOf(one, ...(secrets[i] ?? []))),
    )
    expect(received).toHaveLength(3)
    for (const { headers } of received) {
      expect(headers.authorization).toBe(`Basic ${Buffer.from('pawl:wörd').toString('base64')}`)
    }
  })
})

describe('the outbox', () => {
  test('takes every change in the order of the commits, and nothing else', async () => {
    await createHook()
    const { db } = server.context
    const operationId = await newOperation()
    for (let i = 0; i < 2; i += 1) await failOperation(db, operationId)
    await sql`update operation set additional_data = null, user_id = 'bob' where operation_id = ${operationId}`.execute(db)
    await endOperation(db, operationId, 'APPROVED')
    await deliver()
    expect(statusesOf(receiver.take())).toEqual(['PENDING', 'PENDING', 'PENDING', 'APPROVED'])
  })

  test('is empty when the change is rolled back', async () => {
    const hook = await createHook()
    const operationId = await newOperation()
    await deliver()
    const rolledBack = inTransaction(server.context.db, async (tx) => {
      await sql`update operation set status = 'CANCELED' where operation_id = ${operationId}`.execute(tx)
      throw new Error('no')
    })
    await expect(rolledBack).rejects.toThrow('no')
    expect(await listDeliveries(hook)).toHaveLength(1)
  })

  test('is for the application and the kind of the webhook, while it is enabled', async () => {
    expectOk(await world.bank.createApplication('other-app'))
    const hooks = [
      await createHook({ application: 'other-app' }),
      await createHook({ kind: 'ACTIVATION', attributes: [] }),
      await createHook({ isEnabled: false }),
      await createHook(),
    ]
    await newOperation()
    await deliver()
    expect(receiver.take()).toHaveLength(1)
    expect(await Promise.all(hooks.map(async (hook) => (await listDeliveries(hook)).length))).toEqual([0, 0, 0, 1])
  })
})

describe('a failed attempt', () => {
  test('is repeated with the same id and body, and holds back only what comes after it for the same object', async () => {
    await createHook()
    const first = await newOperation()
    receiver.answerWith((request, response) => response.writeHead(request.json['operationId'] === first ? 500 : 200).end())
    await endOperation(server.context.db, first, 'APPROVED')
    const second = await newOperation()
    await deliver()
    expect(receiver.take().map(({ json }) => [json['operationId'], json['status']])).toEqual([
      [first, 'PENDING'],
      [second, 'PENDING'],
    ])
    await endOperation(server.context.db, second, 'REJECTED')
    await deliver()
    expect(receiver.take().map(({ json }) => json['operationId'])).toEqual([second])
    receiver.answerWith(200)
    server.clock.advance(6 * SECOND)
    await deliver()
    expect(receiver.take().map(({ json }) => [json['operationId'], json['status']])).toEqual([
      [first, 'PENDING'],
      [first, 'APPROVED'],
    ])
  })

  test('comes eight times within a day, then the delivery is dead and goes out of the way; a replay has the same id', async () => {
    const hook = await createHook()
    receiver.answerWith(503)
    const operationId = await newOperation()
    await endOperation(server.context.db, operationId, 'APPROVED')
    const gaps: number[] = []
    for (let attempt = 1; attempt <= 7; attempt += 1) {
      await deliver()
      const [waiting] = (await listDeliveries(hook, '?status=WAITING')).slice(-1)
      expect(waiting).toMatchObject({ attempts: attempt, lastError: 'HTTP 503' })
      const at = Number(waiting?.['nextAttemptAt'])
      const now = server.context.platform.now()
      gaps.push(Math.round((at - now) / SECOND))
      server.clock.advance(at - now + SECOND)
    }
    const expected = [5, 15, 60, 300, 1_800, 14_400, 69_820]
    gaps.forEach((gap, i) => expect(Math.abs(gap - (expected[i] ?? 0))).toBeLessThanOrEqual(1 + 0.1 * (expected[i] ?? 0)))
    expect(gaps.reduce((sum, gap) => sum + gap)).toBeGreaterThan(20 * 3_600)
    receiver.answerWith(({ json }, response) => response.writeHead(json['status'] === 'PENDING' ? 503 : 200).end())
    await deliver()
    const all = receiver.take()
    expect(new Set(all.slice(0, 8).map(({ id, text }) => id + text)).size).toBe(1)
    expect(statusesOf(all.slice(8))).toEqual(['APPROVED'])
    const [dead] = await listDeliveries(hook, '?status=DEAD')
    expect(dead).toMatchObject({ id: all[0]?.id, objectId: operationId, objectStatus: 'PENDING', attempts: 8 })
    expect(await readHook(hook)).toMatchObject({ dead: 1, delivered: 1, waiting: 0 })
    expect(server.log()).toContain('webhook delivery given up')
    receiver.answerWith(200)
    expect(await replay(hook, { status: 'DEAD' })).toBe(1)
    await deliver()
    expect(receiver.take()).toMatchObject([{ id: all[0]?.id, text: all[0]?.text }])
    expect(await readHook(hook)).toMatchObject({ dead: 0, delivered: 2 })
    expect(await replay(hook, { deliveryId: all[0]?.id })).toBe(1)
    await deliver()
    expect(receiver.take().map(({ id }) => id)).toEqual([all[0]?.id])
  })

  test('of a receiver that was down for long is forgotten with its first success: all that waits is due at once', async () => {
    const hook = await createHook()
    await receiver.goDown()
    const operations = await Promise.all(Array.from({ length: 20 }, () => newOperation()))
    for (const wait of [6, 17, 67]) {
      await deliver()
      server.clock.advance(wait * SECOND)
    }
    for (const operationId of operations) await endOperation(server.context.db, operationId, 'APPROVED')
    await deliver()
    expect(await readHook(hook)).toMatchObject({ waiting: 40, failuresInRow: 80 })
    await receiver.comeUp()
    expect(await deliver()).toBe(0)
    // No delivery is due for five minutes; a probe finds out that the receiver is back.
    server.clock.advance(MINUTE)
    expect(await deliver()).toBe(40)
    const received = receiver.take()
    for (const operationId of operations) {
      expect(statusesOf(received.filter(({ json }) => json['operationId'] === operationId))).toEqual(['PENDING', 'APPROVED'])
    }
    expect(await readHook(hook)).toMatchObject({ waiting: 0, delivered: 40, failuresInRow: 0 })
  })

  test('ahead of its schedule does not count', async () => {
    const hook = await createHook()
    const poison = await newOperation()
    receiver.answerWith(500)
    for (const wait of [6, 17, 67]) {
      await deliver()
      server.clock.advance(wait * SECOND)
    }
    await deliver()
    const before = await listDeliveries(hook)
    expect(before).toMatchObject([{ attempts: 4 }])
    for (let probe = 0; probe < 3; probe += 1) {
      server.clock.advance(61 * SECOND)
      expect(await deliver()).toBe(1)
    }
    receiver.answerWith(({ json }, response) => response.writeHead(json['operationId'] === poison ? 500 : 200).end())
    await newOperation()
    // The new one, and because of its success the old one once more.
    expect(await deliver()).toBe(2)
    expect((await listDeliveries(hook)).filter(({ objectId }) => objectId === poison)).toEqual(before)
  })

  test.each([301, 302, 307, 308])('is an answer %i: redirects are not followed', async (status) => {
    const hook = await createHook()
    const elsewhere = await startReceiver()
    receiver.answerWith((_request, response) => response.writeHead(status, { location: elsewhere.url }).end())
    await newOperation()
    await deliver()
    expect(await listDeliveries(hook)).toMatchObject([{ status: 'WAITING', attempts: 1, lastError: `HTTP ${status}` }])
    expect(elsewhere.received).toEqual([])
    await elsewhere.goDown()
  })

  /** Changes the address as a process of the version before does, which counts no changes. */
  const changeAsBefore = ({ id }: Hook, { url }: { readonly url: string }) =>
    sql`update webhook set url = ${url}, failures_in_row = 0, failing_since = null where webhook_id = ${id}`.execute(
      server.context.db,
    )
  const ways = [
    { by: 'this version', alter: change },
    { by: 'the version before', alter: changeAsBefore },
  ]

  test.each(ways)(
    'at an address that $by replaced meanwhile is none of the new one, which gets the message at once',
    async ({ alter }) => {
      const hook = await createHook()
      const operationId = await newOperation()
      receiver.answerWith(({ path }, response) => {
        const answer = (status: number) => response.writeHead(status, { 'retry-after': '3600' }).end()
        if (path === '/new') answer(200)
        else void alter(hook, { url: receiver.url.replace('/hook', '/new') }).then(() => answer(410))
      })
      await deliver()
      expect(receiver.take().map(({ path, json }) => [path, json['operationId']])).toEqual([
        ['/hook', operationId],
        ['/new', operationId],
      ])
      expect(await readHook(hook)).toMatchObject({ isEnabled: true, failuresInRow: 0, waiting: 0, delivered: 1 })
    },
  )

  test('that was sent before the webhook got a new secret does not count against the new one', async () => {
    const hook = await createHook()
    await newOperation()
    receiver.answerWith((_request, response) => {
      receiver.answerWith(200)
      void world.bank.call('POST', `/admin/webhooks/${hook.id}/secret`, {}).then(() => response.writeHead(401).end())
    })
    await deliver()
    expect(await readHook(hook)).toMatchObject({ failuresInRow: 0, waiting: 0, delivered: 1 })
  })

  test('that was sent before an administrator enabled the webhook again disables nothing', async () => {
    const hook = await createHook()
    await newOperation()
    receiver.answerWith((_request, response) => {
      receiver.answerWith(200)
      void change(hook, { isEnabled: true }).then(() => response.writeHead(410).end())
    })
    await deliver()
    expect(await readHook(hook)).toMatchObject({ isEnabled: true, failuresInRow: 0, waiting: 0, delivered: 1 })
  })

  test.each(ways)(
    'of the new address, given by $by, is not forgotten when the former one takes a message late',
    async ({ alter }) => {
      const hook = await createHook()
      await newOperation()
      const { promise: asked, resolve: ask } = Promise.withResolvers<void>()
      const { promise: changed, resolve: tell } = Promise.withResolvers<void>()
      receiver.answerWith(({ path }, response) => {
        if (path === '/new') response.writeHead(500).end()
        else void changed.then(() => response.writeHead(200).end())
        ask()
      })
      const first = deliver()
      await asked
      await alter(hook, { url: receiver.url.replace('/hook', '/new') })
      await newOperation()
      await deliver()
      const failing = { isEnabled: true, failuresInRow: 1, waiting: 1, delivered: 1 }
      expect(await readHook(hook)).toMatchObject({ ...failing, waiting: 2, delivered: 0 })
      tell()
      await first
      expect(await readHook(hook)).toMatchObject(failing)
    },
  )

  test('with 410 disables the webhook until an administrator enables it again', async () => {
    const hook = await createHook()
    receiver.answerWith(410)
    await newOperation()
    await deliver()
    expect(await readHook(hook)).toMatchObject({ isEnabled: false, disabledReason: 'HTTP 410', waiting: 1 })
    expect(server.log()).toContain('webhook disabled')
    receiver.answerWith(200)
    await newOperation()
    server.clock.advance(HOUR)
    expect(await deliver()).toBe(0)
    const enabled = expectOk(await change(hook, { isEnabled: true })).json
    expect(enabled).not.toHaveProperty('disabledReason')
    expect(await deliver()).toBe(1)
    expect(await readHook(hook)).toMatchObject({ isEnabled: true, waiting: 0, failuresInRow: 0 })
  })

  test.each([
    ['in seconds', '120', 120],
    ['as a date', () => new Date(server.context.platform.now() + 300_000).toUTCString(), 300],
    ['of a day, taken as an hour', '86400', 3_600],
  ])('with Retry-After %s holds the whole webhook back', async (_title, value, seconds) => {
    const hook = await createHook()
    const begun = server.context.platform.now()
    const header = typeof value === 'string' ? value : value()
    receiver.answerWith((_request, response) => response.writeHead(429, { 'retry-after': header }).end())
    await newOperation()
    await deliver()
    const to = server.context.platform.now()
    receiver.answerWith(200)
    await newOperation()
    // Both wait for the end of the pause, the one that was never tried as well. A date has no milliseconds.
    for (const { nextAttemptAt } of await listDeliveries(hook)) {
      expect(Number(nextAttemptAt)).toBeGreaterThan(begun + (seconds - 1) * SECOND)
      expect(Number(nextAttemptAt)).toBeLessThanOrEqual(to + seconds * SECOND)
    }
    server.clock.advance((seconds - 60) * SECOND)
    expect(await deliver()).toBe(0)
    server.clock.advance(61 * SECOND)
    expect(await deliver()).toBe(2)
    expect(await readHook(hook)).toMatchObject({ delivered: 2 })
  })

  test.each(['0', '-5', 'soon', '', '1e3'])('with Retry-After %j waits as if there were none', async (value) => {
    await createHook()
    receiver.answerWith((_request, response) => response.writeHead(503, { 'retry-after': value }).end())
    await newOperation()
    await deliver()
    receiver.answerWith(200)
    server.clock.advance(6 * SECOND)
    expect(await deliver()).toBe(1)
  })

  test('is not one with status 2xx, however long or empty the answer is', async () => {
    const hook = await createHook()
    receiver.answerWith((_request, response) => response.writeHead(202).end('x'.repeat(1_000_000)))
    await newOperation()
    await deliver()
    receiver.answerWith(204)
    await newOperation()
    await deliver()
    expect(await readHook(hook)).toMatchObject({ delivered: 2, waiting: 0 })
  })

  test('says in log and list what went wrong, but no secret and no path of the receiver', async () => {
    const basic = { username: 'pawl', password: 'password of the receiver' }
    const hook = await createHook({ url: receiver.url.replace('/hook', '/secret-path?token=secret-token'), basic })
    await receiver.goDown()
    await newOperation()
    await deliver()
    await receiver.comeUp()
    const [failed] = await listDeliveries(hook)
    expect(failed?.['lastError']).toMatch(/^http:\/\/127\.0\.0\.1:\d+ refuses connections \(ECONNREFUSED\): /)
    expect(server.log()).toContain('webhook attempts failed')
    const encoded = Buffer.from(`${basic.username}:${basic.password}`).toString('base64')
    for (const secret of [hook.secret, hook.secret.slice(6), basic.password, encoded, 'secret-path', 'secret-token']) {
      expect(server.log()).not.toContain(secret)
    }
  })

  test('is one whose secret does not open: the webhook waits, others go on', async () => {
    const broken = await createHook()
    const other = await createHook()
    await sql`update webhook set secret = ${Buffer.alloc(60)} where webhook_id = ${broken.id}`.execute(server.context.db)
    await newOperation()
    await deliver()
    expect(await readHook(other)).toMatchObject({ delivered: 1 })
    expect(await listDeliveries(broken)).toMatchObject([{ status: 'WAITING', attempts: 1 }])
    expect(server.log()).toContain('webhook cannot be sent')
  })
})

describe('a target that is not allowed', () => {
  const deliverStrictly = (more: object) => {
    const { context } = server
    return deliverDue({ ...context, settings: { ...context.settings, ...more } })
  }

  test.each(['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '2130706433', '0x7f.1', '10.0.0.1', '169.254.169.254'])(
    'is %s: no connection is made',
    async (host) => {
      const { port } = new URL(receiver.url)
      const hook = await createHook({ url: `http://${host}:${port}/hook` })
      await newOperation()
      await deliverStrictly({ webhookAllowPrivateAddresses: false })
      expect(receiver.received).toEqual([])
      const [refused] = await listDeliveries(hook)
      expect(refused).toMatchObject({ status: 'WAITING', attempts: 1 })
      expect(refused?.['lastError']).toContain('not a public address')
    },
  )

  test('is http: nothing is sent', async () => {
    const hook = await createHook()
    await newOperation()
    await deliverStrictly({ webhookAllowHttp: false })
    expect(receiver.received).toEqual([])
    expect(await listDeliveries(hook)).toMatchObject([{ lastError: 'http is not allowed' }])
  })
})

describe('several processes', () => {
  test('deliver everything once when nothing fails, in order', async () => {
    await createHook()
    const { db } = server.context
    const operations = await Promise.all(Array.from({ length: 60 }, () => newOperation()))
    for (const operationId of operations) {
      await failOperation(db, operationId)
      await endOperation(db, operationId, 'APPROVED')
    }
    await Promise.all(Array.from({ length: 3 }, deliver))
    const received = receiver.take()
    expect(received).toHaveLength(180)
    expect(new Set(received.map(({ id }) => id)).size).toBe(180)
    for (const operationId of operations) {
      expect(statusesOf(received.filter(({ json }) => json['operationId'] === operationId))).toEqual([
        'PENDING',
        'PENDING',
        'APPROVED',
      ])
    }
  })

  test('take over what one of them held when it was killed, after its lease; its late word changes nothing', async () => {
    const hook = await createHook()
    const { db, platform } = server.context
    await newOperation()
    const lease = { leaseId: 'killed', at: new Date(platform.now()), until: new Date(platform.now() + 30 * SECOND) }
    const [held] = await claimDeliveries(db, hook.id, lease, 10)
    expect(await deliver()).toBe(0)
    server.clock.advance(31 * SECOND)
    const failure = { sequence: held?.sequence ?? '', attempts: 1, nextAttemptAt: null, reason: 'late' }
    let isLate = false
    receiver.answerWith((_request, response) => {
      void storeFailures(db, 'killed', [failure], new Date(platform.now())).finally(() => {
        isLate = true
        response.end()
      })
    })
    expect(await deliver()).toBe(1)
    expect(isLate).toBe(true)
    expect(await listDeliveries(hook)).toMatchObject([{ id: held?.deliveryId, status: 'DELIVERED', attempts: 1 }])
  })
})

describe('after the clock was set back', () => {
  const STEPS: readonly (readonly [string, number])[] = [
    ['an hour', HOUR],
    ['a day', 24 * HOUR],
    ['a year', 365 * 24 * HOUR],
  ]
  /** Sets the clock back, has a round of housekeeping done, and sets it as it was in the end. */
  const whileSetBack = async (ms: number, act: () => Promise<void>): Promise<void> => {
    server.clock.advance(-ms)
    try {
      await runHousekeeping(server.context)
      await act()
    } finally {
      server.clock.advance(ms)
    }
  }
  const retryAfter = (seconds: number) =>
    receiver.answerWith((_request, response) => response.writeHead(503, { 'retry-after': String(seconds) }).end())

  test.each(STEPS)('by %s, one that is there again gets at once what waited for it, and what comes', async (_, ms) => {
    const hook = await createHook()
    receiver.answerWith(503)
    for (let i = 0; i < 3; i += 1) await newOperation()
    expect(await deliver()).toBe(3)
    receiver.answerWith(200)
    await whileSetBack(ms, async () => {
      await newOperation()
      expect(await deliver()).toBe(4)
      expect(await readHook(hook)).toMatchObject({ waiting: 0, delivered: 4, failuresInRow: 0 })
    })
  })

  test.each(STEPS)('by %s, a receiver that asked for two minutes does not wait for longer', async (_, ms) => {
    const hook = await createHook()
    retryAfter(120)
    await newOperation()
    expect(await deliver()).toBe(1)
    await whileSetBack(ms, async () => {
      // Another wish of the receiver counts as ever.
      expect(await deliver()).toBe(1)
      receiver.answerWith(200)
      server.clock.advance(115 * SECOND)
      await runHousekeeping(server.context)
      expect(await deliver()).toBe(0)
      server.clock.advance(6 * SECOND)
      expect(await deliver()).toBe(1)
    })
    expect(await readHook(hook)).toMatchObject({ waiting: 0, delivered: 1 })
  })

  test.each(STEPS.slice(1))('by %s, what failed alone is tried again', async (_, ms) => {
    const hook = await createHook()
    const poison = await newOperation()
    receiver.answerWith(({ json }, response) => response.writeHead(json['operationId'] === poison ? 500 : 200).end())
    await deliver()
    await newOperation()
    await deliver()
    receiver.answerWith(200)
    await whileSetBack(ms, async () => {
      expect(await deliver()).toBe(1)
      expect(await readHook(hook)).toMatchObject({ waiting: 0, dead: 0, delivered: 2 })
    })
  })

  test.each([
    ['half a minute back', 30 * SECOND],
    ['not at all', 0],
  ])('%s, what is put off stays put off', async (_, ms) => {
    await createHook()
    retryAfter(3_600)
    await newOperation()
    expect(await deliver()).toBe(1)
    await whileSetBack(ms, async () => expect(await deliver()).toBe(0))
    server.clock.advance(HOUR - SECOND)
    await runHousekeeping(server.context)
    expect(await deliver()).toBe(0)
    server.clock.advance(2 * SECOND)
    expect(await deliver()).toBe(1)
  })
})

test('forty receivers that never answer hold up none that does, and are given up after ten seconds', async () => {
  const silent = await startReceiver()
  silent.answerWith(() => undefined)
  const hooks: Hook[] = []
  for (let i = 0; i < 41; i += 1) hooks.push(await createHook({ url: silent.url }))
  // Lanes are given in the order of the ids: the last one is behind all that hang.
  const good = hooks.toSorted((a, b) => (a.id < b.id ? -1 : 1)).at(-1)
  if (!good) throw new Error('no hook')
  expectOk(await change(good, { attributes: ['status'] }))
  // A hundred messages for each.
  for (let i = 0; i < 33; i += 1) {
    const operationId = await newOperation()
    await failOperation(server.context.db, operationId)
    await endOperation(server.context.db, operationId, 'APPROVED')
  }
  /** Of the webhook with most of them. */
  const countFailures = async (): Promise<number | undefined> =>
    (await sql<{ most: number }>`select max(failures_in_row)::int as most from webhook`.execute(server.context.db)).rows[0]?.most
  server.clock.go()
  const begin = performance.now()
  const stop = startWebhookDelivery(server.context)
  try {
    // Its first message comes before an attempt at a silent one has ended, and the last one before any is tried again, a minute later.
    await expect.poll(() => receiver.received.length).toBeGreaterThan(0)
    const firstMs = performance.now() - begin
    expect(await countFailures()).toBe(0)
    // More than one batch of it, and what is made meanwhile.
    await expect.poll(() => receiver.received.length).toBeGreaterThan(16)
    expect(await countFailures()).toBe(0)
    await newOperation()
    await expect.poll(() => receiver.received.length).toBe(100)
    // No silent one was tried with a second batch.
    expect(await countFailures()).toBeLessThanOrEqual(16)
    expect(silent.received.length).toBeLessThanOrEqual(40 * 16)
    await expect.poll(async () => (await readHook(good))['waiting']).toBe(0)
    // Nor later, when they are known: what happens now is told at once, on this machine as it is now.
    const silentOne = hooks.find((hook) => hook !== good) ?? good
    const reasons = async () => (await listDeliveries(silentOne)).map(({ lastError }) => lastError)
    const late = `${new URL(silent.url).origin} did not answer within 10 s: `
    await expect.poll(reasons).toContainEqual(expect.stringContaining(late))
    const since = performance.now()
    await newOperation()
    await expect.poll(() => receiver.received.length).toBe(101)
    expect(performance.now() - since).toBeLessThan(Math.max(5_000, 2 * firstMs))
    expect(await readHook(good)).toMatchObject({ dead: 0 })
  } finally {
    await stop()
    await silent.goDown()
    server.clock.stop()
  }
})

// Last: with the clock so far ahead, everything made afterwards is old.
test('what is older than the retention is forgotten; what still waited is told to the log', async () => {
  const hook = await createHook()
  const disabled = await createHook()
  await newOperation()
  expectOk(await change(disabled, { isEnabled: false }))
  await deliver()
  // The clock of the database stands where it is; that of this test is ahead.
  const now = new Date(server.context.platform.now())
  await sql`update webhook_delivery set created_at = ${now}`.execute(server.context.db)
  server.clock.advance(29 * 24 * HOUR)
  await runHousekeeping(server.context)
  expect([await listDeliveries(hook), await listDeliveries(disabled)]).toMatchObject([{ length: 1 }, { length: 1 }])
  receiver.answerWith(500)
  await newOperation()
  await deliver()
  server.clock.advance(2 * 24 * HOUR)
  await runHousekeeping(server.context)
  const { rows } = await sql`select status from webhook_delivery`.execute(server.context.db)
  // The later one, too: its time is that of the database.
  expect(rows).toEqual([])
  expect(await readHook(hook)).toMatchObject({ delivered: 1, waiting: 0 })
  expect(server.log()).toContain('"count":2,"msg":"webhook deliveries waited longer than the retention and were given up"')
})
