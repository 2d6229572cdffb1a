// Metrics: who may read them, what they say after things have happened, what they never say, and a database that does not answer.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { buildApp, type Surface } from '../src/app.ts'
import { describeApis } from '../src/description.ts'
import { runHousekeeping } from '../src/domain/housekeeping.ts'
import { deliverDue } from './helpers/deliver.ts'
import { keepHistory } from '../src/metrics/history.ts'
import { createInstruments } from '../src/metrics/instruments.ts'
import { createReading } from '../src/metrics/reading.ts'
import type { VitalSigns } from '../src/storage/vital-signs.ts'
import { listMetrics } from '../scripts/metrics-docs.ts'
import { member, sendJson } from '../phone/http.ts'
import { startTestServer, type TestServer } from './helpers/app.ts'
import { basicAuthorization } from './helpers/bank.ts'
import { HOUR } from './helpers/expectations.ts'
import { type Holder, startOperationWorld, type OperationWorld } from './helpers/operation-world.ts'
import { startReceiver } from './helpers/receiver.ts'
import { expectOk } from './helpers/world.ts'

/** `name{labels} value` of each line, labels as they are printed. */
const parse = (text: string): ReadonlyMap<string, number> =>
  new Map(
    text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )

describe('names', () => {
  const metrics = listMetrics()

  test.each(metrics.map((metric) => [metric.name, metric] as const))(
    '%s follows the conventions',
    (name, { type, labels, help }) => {
      expect(name).toMatch(/^(pawl|process|nodejs)(_[a-z]+)+$/)
      // Counters end in _total, and nothing else does; times are in seconds, sizes in bytes; a unit stands in the plural.
      expect(name.endsWith('_total')).toBe(type === 'counter')
      expect(name).not.toMatch(/(_ms|_milliseconds|_minutes|_days|_kb|_mb|_percent|_count|_sum|_bucket)(_|$)/)
      if (type === 'histogram') expect(name).toMatch(/_(seconds|items)$/)
      for (const label of labels) expect(label).toMatch(/^[a-z]+(_[a-z]+)*$/)
      expect(help.length).toBeGreaterThan(8)
      // Nothing that grows with users.
      expect(labels.filter((label) => /user|activation|operation|token|device|address|path/.test(label))).toEqual([])
    },
  )

  test('none stands twice', () => {
    expect(new Set(metrics.map(({ name }) => name)).size).toBe(metrics.length)
  })
})

describe('after things have happened', () => {
  let world: OperationWorld
  let holder: Holder
  let text: string
  let values: ReadonlyMap<string, number>
  let secretWords: readonly string[]
  let webhookId: string
  beforeAll(async () => {
    const env = { PAWL_WEBHOOK_ALLOW_HTTP: 'true', PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true' }
    world = await startOperationWorld({ env, worksInBackground: false })
    const [context] = world.contexts
    if (context === undefined) throw new TypeError('a world without a server')
    holder = await world.holder('3.3')
    const receiver = await startReceiver()
    const hook = { application: 'test-app', name: 'hook', kind: 'OPERATION', url: receiver.url, attributes: ['status'] }
    webhookId = String(member(expectOk(await world.bank.call('POST', '/admin/webhooks', hook)).json, 'id'))
    const canceled = await world.operation(holder.userId)
    expectOk(await world.bank.cancelOperation(canceled.id))
    await deliverDue(context)
    const expired = await world.operation(holder.userId)
    await world.advance(HOUR)
    await runHousekeeping(context)
    receiver.answerWith(500)
    await deliverDue(context)
    const pending = await world.operation(holder.userId)
    expectOk(await holder.phone.send(holder.phone.prepareValidation({ body: '{}' })))
    const wrong = holder.phone.prepareValidation({ body: '{}' })
    await holder.phone.send({ ...wrong, body: Buffer.from('another body') })
    await sendJson(world.bank.url, 'GET', `/nowhere/${holder.userId}?secret=1`)
    secretWords = [
      holder.userId,
      holder.phone.state.activationId,
      canceled.id,
      expired.id,
      pending.id,
      'nowhere',
      'secret',
      'alice',
    ]
    const reply = expectOk(await world.bank.call('GET', '/metrics'))
    await receiver.goDown()
    expect(reply.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
    text = reply.text
    values = parse(text)
  })
  afterAll(() => world.close())

  const value = (name: string): number | undefined => values.get(name)

  test('requests stand under their route and status, those of an unknown path under one', () => {
    expect(value('pawl_http_request_duration_seconds_count{method="POST",route="/operations",status="200"}')).toBe(3)
    expect(value('pawl_http_request_duration_seconds_count{method="any",route="unknown",status="404"}')).toBe(1)
  })

  test('codes stand under version, factors and result', () => {
    expect(value('pawl_verifications_total{version="3.3",type="possession_knowledge",result="signature_does_not_match"}')).toBe(1)
    expect(value('pawl_verifications_total{version="3.3",type="possession_knowledge",result="accepted"}')).toBeGreaterThan(0)
  })

  test('operations are counted as they are created and end, and those that wait', () => {
    expect(value('pawl_operations_created_total')).toBe(3)
    expect(value('pawl_operations_ended_total{state="CANCELED"}')).toBe(1)
    expect(value('pawl_operations_ended_total{state="EXPIRED"}')).toBe(1)
    expect(value('pawl_operation_decision_seconds_count{state="CANCELED"}')).toBe(1)
    expect(value('pawl_operations_pending')).toBe(1)
    expect(value('pawl_operations_pending_oldest_seconds')).toBeLessThan(60)
  })

  test('webhooks have attempts, lag and failures', () => {
    expect(value(`pawl_webhook_attempts_total{webhook="${webhookId}",result="delivered"}`)).toBe(2)
    expect(value(`pawl_webhook_attempts_total{webhook="${webhookId}",result="failed"}`)).toBe(1)
    // What waits for its next attempt, and the operation that was created since; deliveries of one operation go in turn.
    expect(value(`pawl_webhook_deliveries_waiting{webhook="${webhookId}"}`)).toBe(3)
    expect(value(`pawl_webhook_failures_in_row{webhook="${webhookId}"}`)).toBe(1)
    // PawlWebhookGivenUp asks for the growth: the first one counts only from a zero.
    expect(value(`pawl_webhook_deliveries_dead_total{webhook="${webhookId}"}`)).toBe(0)
    // Written by the clock of the database, which the test does not move; the server is an hour ahead.
    expect(value(`pawl_webhook_lag_seconds{webhook="${webhookId}"}`)).toBeGreaterThan(3_500)
  })

  test('the shared trips, the caches, the seal and the process are there', () => {
    expect(value('pawl_database_trip_items_count{trip="find"}')).toBeGreaterThan(0)
    expect(value('pawl_database_trip_items_sum{trip="store"}')).toBeGreaterThan(0)
    expect(value('pawl_cache_hits_total{cache="recent_phones"}')).toBeGreaterThan(0)
    expect(value('pawl_cache_entries{cache="opened_records"}')).toBeGreaterThan(0)
    expect(value('pawl_cache_hits_total{cache="derived_keys"}')).toBeGreaterThan(0)
    // Nothing was sealed in this world.
    expect(value('pawl_audit_seal_lag_seconds{log="devices"}')).toBeGreaterThan(0)
    expect(value('process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
    expect(value('process_max_fds')).toBeGreaterThan(value('process_open_fds') ?? Number.NaN)
    expect(value('pawl_event_loop_delay_seconds{quantile="0.99"}')).toBeGreaterThanOrEqual(0)
    expect(value('pawl_database_reading_timestamp_seconds')).toBeGreaterThan(0)
  })

  test('connections are there of a database that has any, with how long callers waited', () => {
    const isPostgres = world.contexts[0]?.databaseKind === 'postgresql'
    const names = ['pawl_database_connections{state="idle"}', 'pawl_database_connections{state="busy"}', 'pawl_database_waiting']
    expect(names.map((name) => value(name) !== undefined && Number(value(name)) >= 0)).toEqual(
      names.map((name) => isPostgres || name === 'pawl_database_waiting'),
    )
    expect((value('pawl_database_connections_max') ?? 0) > 0).toBe(isPostgres)
    expect(value('pawl_database_wait_seconds_count')).toBeGreaterThanOrEqual(0)
    for (const by of ['database', 'process']) expect(value(`pawl_database_statement_timeouts_total{by="${by}"}`)).toBe(0)
  })

  test('nothing that a user, a phone or a caller is, has or sent', () => {
    expect(secretWords.filter((word) => text.includes(word))).toEqual([])
  })

  test('what is shown is what the document lists', () => {
    const listed = new Set(listMetrics().map(({ name }) => name))
    const shown = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name)
    expect(shown.filter((name) => !listed.has(name))).toEqual([])
  })
})

test('each way in which an operation ends is counted once, with the age of the operation and the failed attempts', async () => {
  const world = await startOperationWorld({ worksInBackground: false, hasStoppedClock: true })
  const { phone, userId } = await world.holder('3.3')
  const [approved, rejected, failed] = [
    await world.operation(userId),
    await world.operation(userId),
    await world.operation(userId),
  ]
  await world.advance(2_500)
  for (let i = 0; i < 5; i++) await phone.send(phone.prepareAuthorize({ ...failed, data: 'A1*A11EUR' }))
  expectOk(await phone.send(phone.prepareReject(rejected.id)))
  expectOk(await phone.send(phone.prepareAuthorize(approved)))
  await phone.send(phone.prepareAuthorize(approved))
  const lines = expectOk(await world.bank.call('GET', '/metrics')).text.split('\n')
  expect(lines.filter((line) => /^pawl_operation(s_ended|_failed|_decision_seconds_(sum|count))/.test(line)).toSorted()).toEqual(
    [
      'pawl_operation_failed_attempts_total 5',
      ...['APPROVED', 'FAILED', 'REJECTED'].flatMap((state) => [
        `pawl_operations_ended_total{state="${state}"} 1`,
        `pawl_operation_decision_seconds_sum{state="${state}"} 2.5`,
        `pawl_operation_decision_seconds_count{state="${state}"} 1`,
      ]),
    ].toSorted(),
  )
  await world.close()
})

describe('who reads them', () => {
  let server: TestServer
  let integration: Record<string, string>
  let reader: Record<string, string>
  let admin: Record<string, string>
  beforeAll(async () => {
    server = await startTestServer({ worksInBackground: false })
    admin = basicAuthorization(`${server.admin.user}:${server.admin.password}`)
    await sendJson(server.url, 'POST', '/admin/application', { id: 'app' }, admin)
    const create = async (user: object): Promise<Record<string, string>> => {
      const { json } = await sendJson(server.url, 'POST', '/admin/users', user, admin)
      return basicAuthorization(`${String(member(json, 'username'))}:${String(member(json, 'password'))}`)
    }
    integration = await create({ username: 'bank', role: 'integration', application: 'app' })
    reader = await create({ username: 'prometheus', role: 'read-only' })
  })
  afterAll(() => server.close())

  test('with one listener an administrator and a reader of everything', async () => {
    const statusOf = async (headers?: Record<string, string>) =>
      (await sendJson(server.url, 'GET', '/metrics', undefined, headers)).status
    expect(await statusOf(admin)).toBe(200)
    expect(await statusOf(reader)).toBe(200)
    expect(await statusOf(integration)).toBe(403)
    expect(await statusOf()).toBe(401)
    expect(await statusOf(basicAuthorization('prometheus:wrong password'))).toBe(401)
  })

  test.each([
    ['internal', { internalPort: 8081 }, 200],
    ['public', { internalPort: 8081 }, 404],
    ['internal', { internalPort: 8081, metrics: 'basic' }, 401],
    ['internal', { internalPort: 8081, metrics: 'off' }, 404],
    ['everything', { metrics: 'open' }, 200],
    ['everything', { metrics: 'off' }, 404],
  ] as const)('on the listener %s with %o: %d without a credential', async (surface: Surface, change, status) => {
    const settings = { ...server.context.settings, ...change }
    const app = await buildApp({ ...server.context, settings }, surface)
    const reply = await app.inject({ method: 'GET', url: '/metrics' })
    expect(reply.statusCode).toBe(status)
    await app.close()
    const isDescribed = '/metrics' in (describeApis(settings)['paths'] as object)
    expect(isDescribed).toBe(!('metrics' in change) || change.metrics !== 'off')
  })
})

describe('the last hour', () => {
  test.each([
    ['goes on evenly', 0],
    ['is set back an hour', -HOUR],
    ['is set on a day', 24 * HOUR],
    ['is set back a day', -24 * HOUR],
  ])('has samples as long as they were while the clock %s', async (_, step) => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
    let start = 1_700_000_000_000
    const now = () => start + performance.now()
    const history = keepHistory(createInstruments(), now, () => undefined)
    try {
      await vi.advanceTimersByTimeAsync(10_000)
      await expect.poll(async () => (await history.read()).length).toBe(2)
      start += step
      await vi.advanceTimersByTimeAsync(14_000)
      await expect.poll(async () => (await history.read()).length).toBe(3)
      expect((await history.read()).map(({ seconds }) => seconds)).toEqual([10, 10, 4])
      expect((await history.read()).at(-1)?.at).toBe(now())
    } finally {
      history.stop()
      vi.useRealTimers()
    }
  })
})

describe('a database that does not answer', () => {
  const signs: VitalSigns = { isDurable: true, operations: { pending: 7, oldest: 0 }, webhooks: [], audit: [], certificates: [] }

  test('holds up nobody for long, is asked once, and what it said is forgotten after a minute', async () => {
    const instruments = createInstruments()
    let now = 1_000_000
    let asked = 0
    let answer: () => Promise<VitalSigns> = async () => signs
    const update = createReading(
      instruments,
      () => now,
      () => ((asked += 1), answer()),
    )
    const pending = async () => (await instruments.pendingOperations.get()).values.map(({ value }) => value)
    await update()
    expect(await pending()).toEqual([7])
    await update()
    expect(asked).toBe(1)
    answer = () => new Promise(() => undefined)
    now += 6_000
    // Timers of one process come in their order, however late.
    const updated = Promise.all([update(), update()]).then(() => 'updated')
    expect(await Promise.race([updated, sleep(5_000, 'not within 5 s')])).toBe('updated')
    expect({ asked, pending: await pending() }).toEqual({ asked: 2, pending: [7] })
    now += 60_000
    await update()
    expect({ asked, pending: await pending() }).toEqual({ asked: 2, pending: [] })
    expect((await instruments.lastReading.get()).values.map(({ value }) => value)).toEqual([1_000])
  })

  test('a failed statement is like none, and the next look asks again', async () => {
    const instruments = createInstruments()
    let now = 1_000_000
    const answers = [async () => Promise.reject(new Error('away')), async () => signs]
    const update = createReading(
      instruments,
      () => now,
      async () => (answers.shift() ?? (async () => signs))(),
    )
    await update()
    expect((await instruments.pendingOperations.get()).values).toEqual([])
    now += 6_000
    await update()
    expect((await instruments.pendingOperations.get()).values.map(({ value }) => value)).toEqual([7])
  })
})

describe('a look for people', () => {
  test('has the last hour of the process and how it stands, and leaves what Prometheus is told', async () => {
    const server = await startTestServer({ worksInBackground: false })
    const admin = basicAuthorization(`${server.admin.user}:${server.admin.password}`)
    await sendJson(server.url, 'GET', '/admin/users', undefined, admin)
    await sendJson(server.url, 'GET', '/nowhere')
    const { history, ...seen } = await server.context.metrics.look()
    expect(history.at(-1)).toMatchObject({ requests: 2, failures: 0, codesAccepted: 0, codesRefused: 0 })
    expect(history.at(-1)?.memoryBytes).toBeGreaterThan(10_000_000)
    expect(seen).toMatchObject({ statementTimeouts: 0, brokenChains: 0, database: server.context.databaseKind })
    expect(seen.pool === undefined).toBe(server.context.databaseKind === 'embedded')
    expect(seen.background.map(({ work }) => work)).toContain('housekeeping')
    // What was done since the sample before; the look itself takes none.
    expect((await server.context.metrics.look()).history).toHaveLength(history.length)
    await server.close()
  })
})
