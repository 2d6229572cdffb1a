// Pushes that pawl sends itself: what APNs and FCM get, when nothing is sent, and what becomes of refusals (mobile-token §7.1).
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { runHousekeeping } from '../../../src/domain/housekeeping.ts'
import { deliverDue } from '../../helpers/deliver.ts'
import { startWebhookDelivery } from '../../../src/domain/webhook/loop.ts'
import { insertOperation } from '../../helpers/operations.ts'
import { inTransaction } from '../../../src/storage/database/database.ts'
import { deleteUserRows } from '../../../src/storage/user/erasure.ts'
import { listDueWebhooks } from '../../../src/storage/webhook/deliveries.ts'
import { enablePushProviders } from '../../../src/storage/webhook/push-providers.ts'
import { member } from '../../../phone/http.ts'
import { addDevice, setMultiDevice } from '../../helpers/devices.ts'
import { MINUTE, SECOND } from '../../helpers/expectations.ts'
import { type Holder, type OperationWorld, PAYMENT, startOperationWorld } from '../../helpers/operation-world.ts'
import {
  APNS_TOPIC,
  type FcmServer,
  type PushProviderServer,
  type ReceivedPush,
  startApns,
  startFcm,
} from '../../helpers/push-providers.ts'
import { expectOk } from '../../helpers/world.ts'

let apns: PushProviderServer
let sandbox: PushProviderServer
let fcm: FcmServer
let world: OperationWorld
beforeAll(async () => {
  ;[apns, sandbox, fcm] = await Promise.all([startApns({ now: () => now() }), startApns(), startFcm()])
  const env = { ...apns.env, ...fcm.env, PAWL_APNS_DEVELOPMENT_URL: sandbox.url }
  world = await startOperationWorld({ env, worksInBackground: false })
})
afterAll(async () => {
  await world.close()
  await Promise.all([apns.close(), sandbox.close(), fcm.close()])
})
/** What other tests left waiting is of no test any more. */
beforeEach(async () => {
  await world.db.deleteFrom('webhook_delivery').execute()
  await world.db
    .updateTable('webhook')
    .set({ probe_at: null, failing_since: null, failures_in_row: 0, paused_until: null })
    .execute()
  for (const provider of [apns, sandbox, fcm]) {
    provider.answerWith(200)
    provider.take()
  }
  fcm.answerTokenWith(undefined)
})

const context = () => {
  const [first] = world.contexts
  if (!first) throw new Error('no server')
  return first
}
const now = (): number => context().platform.now()
const deliver = (): Promise<number> => deliverDue(context())
const waiting = async (): Promise<number> =>
  (await world.db.selectFrom('webhook_delivery').select('sequence').where('status', '=', 'WAITING').execute()).length
const registrationsOf = async ({ phone }: Holder): Promise<number> =>
  (
    await world.db
      .selectFrom('push_registration')
      .select('platform')
      .where('activation_id', '=', phone.state.activationId)
      .execute()
  ).length

let made = 0
/** A token as Apple makes them, of 32 bytes. */
const newToken = (): string => (++made).toString(16).padStart(64, 'a')
const registerToken = async ({ phone, token }: Holder, registration: Readonly<Record<string, unknown>>): Promise<void> => {
  expectOk(await phone.send(await phone.prepareTokenCall('push', token, registration)))
}
const pushHolder = async (platform: string, environment?: string): Promise<Holder & { readonly deviceToken: string }> => {
  const holder = await world.holder()
  const deviceToken = newToken()
  await registerToken(holder, { platform, token: deviceToken, ...(environment !== undefined && { environment }) })
  return { ...holder, deviceToken }
}
const cancel = async (id: string): Promise<void> => {
  expectOk(await world.bank.call('DELETE', `/operations?operationId=${id}`))
}
const dataOf = (received: readonly ReceivedPush[]) => received.map(({ data }) => data)
const metric = async (line: string): Promise<number> => {
  const { text } = expectOk(await world.bank.call('GET', '/metrics'))
  return Number(
    text
      .split('\n')
      .find((one) => one.startsWith(line))
      ?.split(' ')
      .at(-1) ?? 0,
  )
}

describe('an operation', () => {
  test('is told to an iPhone when it begins and when it ends, without its data', async () => {
    const { userId, deviceToken } = await pushHolder('apns', 'production')
    const { id, expires } = await world.operation(userId)
    await deliver()
    await cancel(id)
    await deliver()
    const received = apns.take()
    expect(received.map(({ token, status }) => [token, status])).toEqual([
      [deviceToken, 200],
      [deviceToken, 200],
    ])
    const operation = { operationId: id, operationName: 'authorize_payment' }
    expect(received.map(({ json }) => json)).toEqual([
      {
        aps: { alert: { body: 'There is something for you to approve.' }, sound: 'default', 'mutable-content': 1 },
        messageType: 'mtoken.operationInit',
        ...operation,
      },
      {
        aps: { alert: { body: 'A request is over.' }, sound: 'default', 'mutable-content': 1 },
        messageType: 'mtoken.operationFinished',
        ...operation,
        mtokenOperationResult: 'operation.canceled',
      },
    ])
    expect(received[0]?.headers).toMatchObject({
      'apns-topic': APNS_TOPIC,
      'apns-push-type': 'alert',
      'apns-priority': '10',
      'apns-expiration': String(Math.floor(expires / 1000)),
      'apns-collapse-id': id,
      'apns-id': expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
    })
    expect(new Set(received.map(({ headers }) => headers['apns-collapse-id']))).toEqual(new Set([id]))
    expect(sandbox.received).toEqual([])
    // One connection for all of them.
    expect(apns.openings()).toBe(1)
    expect(await waiting()).toBe(0)
  })

  test('is told to an Android phone as a message of data, all texts', async () => {
    const { userId, deviceToken } = await pushHolder('fcm')
    const { id } = await world.operation(userId)
    await deliver()
    await cancel(id)
    await deliver()
    const operation = { operationId: id, operationName: 'authorize_payment' }
    const [first, second] = fcm.take()
    expect(first?.json).toEqual({
      message: {
        token: deviceToken,
        data: { messageType: 'mtoken.operationInit', ...operation },
        android: { priority: 'HIGH', ttl: expect.stringMatching(/^(300|29\d)s$/) as unknown, collapse_key: id },
      },
    })
    expect(second?.data).toEqual({
      messageType: 'mtoken.operationFinished',
      ...operation,
      mtokenOperationResult: 'operation.canceled',
    })
    // One access token for all of them.
    expect(fcm.openings()).toBe(1)
  })

  test.each([
    ['APPROVED', 'authentication.success'],
    ['REJECTED', 'operation.canceled'],
    ['CANCELED', 'operation.canceled'],
    ['EXPIRED', 'operation.timeout'],
    ['FAILED', 'authentication.fail'],
  ] as const)('that is %s ends with the result %s', async (status, result) => {
    const { userId } = await pushHolder('fcm')
    const { id } = await world.operation(userId)
    await world.db.updateTable('operation').set({ status }).where('operation_id', '=', id).execute()
    await deliver()
    // Whoever is told of the end needs no news of the beginning.
    expect(dataOf(fcm.take())).toEqual([
      {
        messageType: 'mtoken.operationFinished',
        operationId: id,
        operationName: 'authorize_payment',
        mtokenOperationResult: result,
      },
    ])
    expect(await waiting()).toBe(0)
  })

  test('that has run out unseen is not told', async () => {
    const { userId } = await pushHolder('apns')
    await world.operation(userId)
    await world.advance(5 * MINUTE + SECOND)
    const before = await metric('pawl_push_dropped_total{provider="apns",reason="over"}')
    await deliver()
    expect(apns.received).toEqual([])
    expect(await metric('pawl_push_dropped_total{provider="apns",reason="over"}')).toBe(before + 1)
    await runHousekeeping(context())
    await deliver()
    expect(dataOf(apns.take())).toMatchObject([{ mtokenOperationResult: 'operation.timeout' }])
  })

  test('goes to phones that are ACTIVE, take pushes and are of its user and application', async () => {
    const blocked = await pushHolder('apns')
    await pushHolder('apns')
    const removed = await pushHolder('fcm')
    const huawei = await pushHolder('hms')
    const without = await world.holder()
    expectOk(await world.bank.change(blocked.userId, 'BLOCK'))
    const { id } = await world.operation(removed.userId)
    expectOk(await world.bank.remove(removed.userId))
    for (const { userId } of [blocked, huawei, without])
      await insertOperation(world.db, { applicationId: world.applicationId, userId })
    expect(await waiting()).toBe(1)
    await deliver()
    expect([...apns.received, ...fcm.received]).toEqual([])
    expect(await waiting()).toBe(0)
    expect((await world.stored(id)).status).toBe('PENDING')
    // The same name in another application is another user.
    const { userId } = await pushHolder('apns')
    await world.openSide()
    const { application_id: applicationId } = await world.db
      .selectFrom('application')
      .select('application_id')
      .where('application_id', 'like', 'side-%')
      .executeTakeFirstOrThrow()
    await insertOperation(world.db, { applicationId, userId })
    expect(await waiting()).toBe(0)
  })

  test('is told to a phone whose temporary block is over', async () => {
    const { userId, phone } = await pushHolder('apns')
    const until = new Date(Date.now() - MINUTE)
    const { activationId } = phone.state
    const block = { state: 'BLOCKED', block_expires_at: until } as const
    await world.db.updateTable('activation').set(block).where('activation_id', '=', activationId).execute()
    await world.operation(userId)
    await deliver()
    expect(apns.take()).toHaveLength(1)
  })

  test('that is open for longer than providers keep pushes is told for as long as they do', async () => {
    const [iphone, android] = [await pushHolder('apns'), await pushHolder('fcm')]
    const template = await world.template()
    const expiresAt = Date.UTC(9999, 11, 31)
    for (const { userId } of [iphone, android])
      expectOk(await world.bank.createDeviceOperation({ template, parameters: PAYMENT, userId, expiresAt }))
    await deliver()
    const days28 = 28 * 24 * 60 * MINUTE
    const seconds = Number(apns.take()[0]?.headers['apns-expiration']) - now() / SECOND
    expect(Math.abs(seconds - days28 / SECOND)).toBeLessThan(60)
    const ttl = Number.parseInt(String(member(fcm.take()[0]?.json, 'message', 'android', 'ttl')), 10)
    expect(Math.abs(ttl - days28 / SECOND)).toBeLessThan(60)
    expect(ttl).toBeLessThanOrEqual(days28 / SECOND)
  })

  test('tells nothing of wrong approvals', async () => {
    const { userId } = await pushHolder('apns')
    const { id } = await world.operation(userId)
    await deliver()
    apns.take()
    await world.db.updateTable('operation').set({ failure_count: 1 }).where('operation_id', '=', id).execute()
    expect(await waiting()).toBe(0)
  })
})

test('a message of the inbox is told with its id alone', async () => {
  const { userId, deviceToken } = await pushHolder('apns', 'development')
  const message = { userId, subject: 'a subject', summary: 'a summary', body: 'a body' }
  const { messageId } = expectOk(await world.bank.call('POST', '/inbox/messages', message)).json as { messageId: string }
  await deliver()
  // The host follows from the environment of the token. That one has another key, and refuses.
  expect(apns.received).toEqual([])
  expect(sandbox.take().map(({ token, data, status }) => ({ token, data, status }))).toEqual([
    { token: deviceToken, data: { messageType: 'mtoken.inboxMessage.new', inboxId: messageId }, status: 403 },
  ])
  expect(await waiting()).toBe(1)
})

test.each([
  ['was read in the app', 'inboxRead'],
  ['was read with all others', 'inboxReadAll'],
  ['was taken out of the inbox', undefined],
] as const)('a message that %s is not told any more', async (_, call) => {
  const holder = await pushHolder('apns')
  const message = { userId: holder.userId, subject: 'a subject', summary: 'a summary', body: 'a body' }
  const { messageId } = expectOk(await world.bank.call('POST', '/inbox/messages', message)).json as { messageId: string }
  const { phone, token } = holder
  if (call === undefined) expectOk(await world.bank.call('DELETE', `/inbox/messages/${messageId}`))
  else expectOk(await phone.send(await phone.prepareTokenCall(call, token, call === 'inboxRead' ? { id: messageId } : {})))
  const before = await metric('pawl_push_dropped_total{provider="apns",reason="over"}')
  await deliver()
  expect(apns.take()).toEqual([])
  expect(await waiting()).toBe(0)
  expect(await metric('pawl_push_dropped_total{provider="apns",reason="over"}')).toBe(before + 1)
})

describe('a token that its provider does not know', () => {
  test.each([
    ['apns', { status: 410, json: { reason: 'Unregistered', timestamp: 4_000_000_000_000 } }],
    ['apns', { status: 410 }],
    ['apns', { status: 400, json: { reason: 'BadDeviceToken' } }],
    ['fcm', { status: 404, json: { error: { status: 'NOT_FOUND', details: [{ errorCode: 'UNREGISTERED' }] } } }],
  ] as const)('is forgotten when %s answers %j', async (platform, answer) => {
    const holder = await pushHolder(platform)
    const provider = platform === 'apns' ? apns : fcm
    provider.answerWith(() => answer)
    await world.operation(holder.userId)
    await deliver()
    expect(provider.take()).toHaveLength(1)
    expect(await registrationsOf(holder)).toBe(0)
    expect(await waiting()).toBe(0)
    await world.operation(holder.userId)
    expect(await waiting()).toBe(0)
  })

  test('is kept when it was registered after the provider had lost it', async () => {
    const holder = await pushHolder('apns')
    apns.answerWith(() => ({ status: 410, json: { reason: 'Unregistered', timestamp: now() - MINUTE } }))
    await world.operation(holder.userId)
    await deliver()
    expect(await registrationsOf(holder)).toBe(1)
    expect(await waiting()).toBe(1)
  })

  test('is kept when another one was registered meanwhile, which is sent to instead', async () => {
    const holder = await pushHolder('fcm')
    const next = newToken()
    const { promise: registered, resolve } = Promise.withResolvers<void>()
    fcm.answerWith(async ({ token }) => {
      if (token === next) return { status: 200 }
      await registered
      return { status: 404, json: { error: { status: 'NOT_FOUND', details: [{ errorCode: 'UNREGISTERED' }] } } }
    })
    await world.operation(holder.userId)
    const first = deliver()
    await expect.poll(() => fcm.received.length).toBe(1)
    await registerToken(holder, { platform: 'fcm', token: next })
    resolve()
    await first
    await world.advance(10 * SECOND)
    await deliver()
    expect(fcm.accepted().map(({ token }) => token)).toEqual([next])
    expect(await registrationsOf(holder)).toBe(1)
  })

  test.each(['apns', 'fcm'] as const)('is kept when the answer of %s was cut', async (platform) => {
    const holder = await pushHolder(platform)
    const provider = platform === 'apns' ? apns : fcm
    provider.answerWith(() => 'cut')
    await world.operation(holder.userId)
    await deliver()
    expect(provider.take()).toHaveLength(1)
    expect(await registrationsOf(holder)).toBe(1)
    expect(await waiting()).toBe(1)
  })

  test.each(['../../3/device/other', 'é'.repeat(4096), 'a'.repeat(4096)])(
    'is forgotten unsent where Apple has none like it, %#',
    async (token) => {
      const holder = await world.holder()
      await registerToken(holder, { platform: 'apns', token })
      await world.operation(holder.userId)
      await deliver()
      expect(apns.received).toEqual([])
      expect(await registrationsOf(holder)).toBe(0)
      expect(await waiting()).toBe(0)
    },
  )

  test('is not forgotten for a 404 of somebody else', async () => {
    const holder = await pushHolder('fcm')
    fcm.answerWith(404)
    await world.operation(holder.userId)
    await deliver()
    expect(await registrationsOf(holder)).toBe(1)
    expect(await waiting()).toBe(1)
  })
})

describe('a push that was not taken', () => {
  test.each([
    ['apns', 500],
    ['apns', 503],
    ['fcm', 500],
    ['fcm', 503],
  ] as const)('comes again after %s answered %d, with the same id', async (platform, status) => {
    const { userId } = await pushHolder(platform)
    const provider = platform === 'apns' ? apns : fcm
    provider.answerWith(status)
    await world.operation(userId)
    await deliver()
    provider.answerWith(200)
    await deliver()
    expect(provider.received).toHaveLength(1)
    await world.advance(6 * SECOND)
    await deliver()
    const [first, second] = provider.take()
    expect(second?.status).toBe(200)
    expect(second?.data).toEqual(first?.data)
    expect(second?.headers['apns-id']).toBe(first?.headers['apns-id'])
  })

  test('comes again after the connection was lost', async () => {
    const { userId } = await pushHolder('apns')
    apns.answerWith(() => 'reset')
    await world.operation(userId)
    await deliver()
    apns.answerWith(200)
    await world.advance(6 * SECOND)
    await deliver()
    expect(apns.take().map(({ status }) => status)).toEqual([0, 200])
  })

  test('waits as long as Apple says, and no other with it', async () => {
    const [slow, quick] = [await pushHolder('apns'), await pushHolder('apns')]
    apns.answerWith(({ token }) =>
      token === slow.deviceToken
        ? { status: 429, headers: { 'retry-after': '60' }, json: { reason: 'TooManyRequests' } }
        : { status: 200 },
    )
    await world.operation(slow.userId)
    await deliver()
    await world.operation(quick.userId)
    await deliver()
    expect(apns.take().map(({ token }) => token)).toEqual([slow.deviceToken, quick.deviceToken])
    apns.answerWith(200)
    await world.advance(30 * SECOND)
    await deliver()
    expect(apns.received).toEqual([])
    await world.advance(31 * SECOND)
    await deliver()
    expect(apns.take().map(({ token }) => token)).toEqual([slow.deviceToken])
  })

  test('waits as long as Google says, with all others for Google, and not those for Apple', async () => {
    const [first, second, iphone] = [await pushHolder('fcm'), await pushHolder('fcm'), await pushHolder('apns')]
    const quota = { error: { status: 'RESOURCE_EXHAUSTED', details: [{ errorCode: 'QUOTA_EXCEEDED' }] } }
    fcm.answerWith(() => ({ status: 429, headers: { 'retry-after': '60' }, json: quota }))
    await world.operation(first.userId)
    await deliver()
    fcm.answerWith(200)
    for (const { userId } of [second, iphone]) await world.operation(userId)
    await deliver()
    expect(fcm.take().map(({ token }) => token)).toEqual([first.deviceToken])
    expect(apns.take().map(({ token }) => token)).toEqual([iphone.deviceToken])
    await world.advance(62 * SECOND)
    await deliver()
    const tokens = fcm.take().map(({ token }) => token)
    expect(tokens.toSorted()).toEqual([first.deviceToken, second.deviceToken].toSorted())
  })

  test.each([
    ['apns', { status: 400, json: { reason: 'DeviceTokenNotForTopic' } }, 'HTTP 400 DeviceTokenNotForTopic'],
    // Of a project that does not exist, for instance.
    ['fcm', { status: 404, json: { error: { status: 'NOT_FOUND' } } }, 'HTTP 404 NOT_FOUND'],
  ] as const)(
    'is given up at once when it never will be, by %s for %j, and its token is kept',
    async (platform, answer, reason) => {
      const holder = await pushHolder(platform)
      const provider = platform === 'apns' ? apns : fcm
      provider.answerWith(() => answer)
      await world.operation(holder.userId)
      await deliver()
      expect(provider.received).toHaveLength(1)
      expect(await waiting()).toBe(0)
      expect(await registrationsOf(holder)).toBe(1)
      expect(world.log()).toContain(`"reason":"${reason}"`)
      expect(await metric(`pawl_push_dropped_total{provider="${platform}",reason="refused"}`)).toBe(1)
    },
  )
})

test('a phone that Google cannot reach by itself says nothing of the access token and of other phones', async () => {
  const [one, other] = [await pushHolder('fcm'), await pushHolder('fcm')]
  const error = { code: 401, status: 'UNAUTHENTICATED', details: [{ errorCode: 'THIRD_PARTY_AUTH_ERROR' }] }
  fcm.answerWith(({ token }) => (token === one.deviceToken ? { status: 401, json: { error } } : { status: 200 }))
  await world.operation(other.userId)
  await deliver()
  const openings = fcm.openings()
  await world.operation(one.userId)
  await deliver()
  await world.operation(other.userId)
  await deliver()
  expect(fcm.take().map(({ status }) => status)).toEqual([200, 401, 200])
  expect(fcm.openings()).toBe(openings)
  expect(await waiting()).toBe(0)
  expect(world.log()).toContain('"reason":"HTTP 401 THIRD_PARTY_AUTH_ERROR"')
})

test('where there are no credentials nothing is written, and who has none sends nothing of others', async () => {
  const { userId } = await pushHolder('apns')
  const { db, platform } = context()
  const at = new Date(platform.now())
  const listDueOf = (providers: readonly string[]) => listDueWebhooks(db, at, providers)
  await world.operation(userId)
  expect(await listDueOf([])).toEqual([])
  expect(await listDueOf(['fcm'])).toEqual([])
  expect(await listDueOf(['apns', 'fcm'])).toEqual(['apns'])
  const read = async () => expectOk(await world.bank.call('GET', '/admin/push')).json
  // The clock of the test is ahead of that of the database.
  const any = expect.any(Number) as unknown
  const figures = { waiting: 0, dead: 0, failuresInRow: 0, lagSeconds: any, delivered: any }
  try {
    // As a start does that has them for Google alone, and then one that has none.
    await enablePushProviders(db, [{ provider: 'fcm', url: fcm.url }], at)
    expect(await listDueOf(['apns', 'fcm'])).toEqual([])
    expect(await read()).toEqual({
      providers: [
        { ...figures, provider: 'apns', isEnabled: false, waiting: 1 },
        { ...figures, provider: 'fcm', isEnabled: true },
      ],
    })
    await enablePushProviders(db, [], at)
    await db.deleteFrom('webhook_delivery').execute()
    await world.operation(userId)
    const message = { userId, subject: 'a subject', summary: 'a summary', body: 'a body' }
    expectOk(await world.bank.call('POST', '/inbox/messages', message))
    expect(await waiting()).toBe(0)
  } finally {
    const both = [apns, fcm].map(({ url }, i) => ({ provider: i === 0 ? 'apns' : 'fcm', url }) as const)
    await enablePushProviders(db, both, at)
  }
  // Providers are none of the webhooks that administrators have.
  expect(expectOk(await world.bank.call('GET', '/admin/webhooks')).json).toEqual({ webhooks: [] })
  for (const [method, path] of [
    ['GET', ''],
    ['DELETE', ''],
    ['GET', '/deliveries'],
    ['POST', '/test'],
  ] as const) {
    const reply = await world.bank.call(method, `/admin/webhooks/apns${path}`, method === 'POST' ? {} : undefined)
    expect(reply.text).toContain('there is no webhook apns')
  }
  expect(await read()).toMatchObject({ providers: [{ isEnabled: true }, { isEnabled: true }] })
})

test('a push that was altered in the database is dropped, and the others are sent', async () => {
  const [one, other] = [await pushHolder('apns'), await pushHolder('apns')]
  await world.operation(one.userId)
  await world.db.updateTable('webhook_delivery').set({ payload: 'altered' }).execute()
  await world.operation(other.userId)
  await deliver()
  expect(apns.take()).toHaveLength(1)
  expect(await waiting()).toBe(0)
})

test('an erasure of the user leaves no push', async () => {
  const { userId } = await pushHolder('apns')
  const message = { userId, subject: 'a subject', summary: 'a summary', body: 'a body' }
  expectOk(await world.bank.call('POST', '/inbox/messages', message))
  await world.operation(userId)
  expect(await waiting()).toBe(2)
  expectOk(await world.bank.remove(userId))
  await inTransaction(context().db, (tx) => deleteUserRows(tx, userId, 'nobody'))
  expect(await waiting()).toBe(0)
})

describe('credentials', () => {
  test('of Apple are signed anew after 40 minutes, and not before', async () => {
    const { userId } = await pushHolder('apns')
    const issued: unknown[] = []
    for (const minutes of [0, 1, 12, 12, 12, 12]) {
      await world.advance(minutes * MINUTE)
      await world.db.deleteFrom('webhook_delivery').execute()
      await world.operation(userId)
      await deliver()
      const [push] = apns.take()
      expect(push?.status).toBe(200)
      issued.push(push?.claims['iat'])
    }
    expect(new Set(issued).size).toBe(2)
  })

  test('of Google are asked for again when they are refused, and for all pushes at once', async () => {
    const holders = [await pushHolder('fcm'), await pushHolder('fcm'), await pushHolder('fcm')]
    await world.operation(holders[0]?.userId ?? '')
    await deliver()
    const [first] = fcm.take()
    const before = fcm.openings()
    fcm.answerWith(({ claims }) =>
      claims['shown'] === first?.claims['shown']
        ? { status: 401, json: { error: { status: 'UNAUTHENTICATED' } } }
        : { status: 200 },
    )
    for (const { userId } of holders) await world.operation(userId)
    await deliver()
    await world.advance(6 * SECOND)
    await deliver()
    expect(fcm.accepted()).toHaveLength(3)
    expect(fcm.openings()).toBe(before + 1)
  })

  test('that cannot be had leave the push for later, and say why', async () => {
    const { userId } = await pushHolder('fcm')
    fcm.answerWith(() => ({ status: 401 }))
    await world.operation(userId)
    await deliver()
    fcm.answerTokenWith({ status: 400, json: { error: 'invalid_grant', error_description: 'secret words' } })
    await world.advance(6 * SECOND)
    await deliver()
    const rows = await world.db.selectFrom('webhook_delivery').select('last_error').execute()
    expect(rows[0]?.last_error).toMatch(/^no access token: 127\.0\.0\.1:\d+ answered HTTP 400 invalid_grant$/)
    fcm.answerTokenWith(undefined)
    fcm.answerWith(200)
    await world.advance(20 * SECOND)
    await deliver()
    expect(fcm.accepted()).toHaveLength(1)
  })

  test('and tokens of phones are neither in the log nor in the database', async () => {
    const [iphone, android] = [await pushHolder('apns'), await pushHolder('fcm')]
    for (const provider of [apns, fcm]) provider.answerWith(500)
    for (const { userId } of [iphone, android]) await world.operation(userId)
    await deliver()
    const { rows } = await sql<{ row: string }>`
      select w::text as row from webhook w union all select d::text from webhook_delivery d`.execute(world.db)
    const seen = `${world.log()}${rows.map(({ row }) => row).join('\n')}`
    expect(seen).toContain('HTTP 500')
    for (const secret of [...apns.secrets, ...fcm.secrets, iphone.deviceToken, android.deviceToken])
      expect(seen).not.toContain(secret)
  })
})

test('a provider that hangs holds up neither the other one nor itself for longer than it must', async () => {
  const [iphone, android] = [await pushHolder('apns'), await pushHolder('fcm')]
  apns.answerWith(() => 'hang')
  await world.operation(iphone.userId)
  const stop = startWebhookDelivery(context())
  try {
    await expect.poll(() => apns.received.length).toBe(1)
    await world.operation(android.userId)
    await expect.poll(() => fcm.accepted().length).toBe(1)
  } finally {
    await stop()
  }
})

describe('several phones of a user', () => {
  beforeAll(async () => {
    expectOk(await setMultiDevice(world.bank, world.applicationId, true))
  })
  const addPhone = async (userId: string, platform: string): Promise<Holder & { readonly deviceToken: string }> => {
    const holder = { ...(await addDevice(world, userId)), userId }
    const deviceToken = newToken()
    await registerToken(holder, { platform, token: deviceToken })
    return { ...holder, deviceToken }
  }
  const create = async (body: object): Promise<string> => {
    const reply = await world.bank.createDeviceOperation({ template: await world.template(), parameters: PAYMENT, ...body })
    return String(member(expectOk(reply).json, 'operationId'))
  }
  const tokensOf = (received: readonly ReceivedPush[]): string[] => received.map(({ token }) => token).toSorted()

  test('are all told, but of an operation for one of them', async () => {
    const first = await pushHolder('apns')
    const second = await addPhone(first.userId, 'apns')
    const third = await addPhone(first.userId, 'fcm')
    const id = await create({ userId: first.userId })
    await deliver()
    await cancel(id)
    await deliver()
    const apple = [first.deviceToken, second.deviceToken].toSorted()
    expect(tokensOf(apns.received.slice(0, 2))).toEqual(apple)
    expect(tokensOf(apns.take().slice(2))).toEqual(apple)
    expect(tokensOf(fcm.take())).toEqual([third.deviceToken, third.deviceToken])
    const ofOne = await create({ userId: first.userId, registrationId: second.phone.state.activationId })
    await deliver()
    await cancel(ofOne)
    await deliver()
    expect(tokensOf(apns.take())).toEqual([second.deviceToken, second.deviceToken])
    expect(fcm.received).toEqual([])
  })

  test('are told of no operation that nobody has claimed, and of its end once somebody has', async () => {
    const first = await pushHolder('apns')
    const second = await addPhone(first.userId, 'fcm')
    const [open, claimed] = [await create({}), await create({})]
    expect(await waiting()).toBe(0)
    await cancel(open)
    expect(await waiting()).toBe(0)
    expectOk(await first.phone.send(await first.phone.prepareTokenCall('claim', first.token, { id: claimed })))
    expect(await waiting()).toBe(0)
    await cancel(claimed)
    await deliver()
    expect(tokensOf([...apns.take(), ...fcm.take()])).toEqual([first.deviceToken, second.deviceToken].toSorted())
  })

  test('do not wait for one whose provider hangs', async () => {
    const first = await pushHolder('apns')
    const second = await addPhone(first.userId, 'apns')
    const third = await addPhone(first.userId, 'fcm')
    apns.answerWith(({ token }) => (token === first.deviceToken ? 'hang' : { status: 200 }))
    const stop = startWebhookDelivery(context())
    try {
      await create({ userId: first.userId })
      await expect
        .poll(() => tokensOf([...apns.accepted(), ...fcm.accepted()]))
        .toEqual([second.deviceToken, third.deviceToken].toSorted())
    } finally {
      await stop()
    }
  })
})
