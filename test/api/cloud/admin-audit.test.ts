// The log of changes by administrators, the role that only reads, and the verification of the audit log (cloud §2, §7, §10).
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cloudEndpoints } from '../../../src/api/cloud/endpoints.ts'
import { doors } from '../../../src/api/door/index.ts'
import { startTestServer, type TestServer } from '../../helpers/app.ts'
import { sealAll } from '../../helpers/audit.ts'
import { type Bank, createBank } from '../../helpers/bank.ts'
import { expectError, SECOND } from '../../helpers/expectations.ts'
import { type HttpReply, member, sendJson, toQuery } from '../../../phone/http.ts'
import { expectOk } from '../../helpers/world.ts'

interface Event {
  readonly id: number
  readonly timestamp: number
  readonly username: string
  readonly action: string
  readonly target: string
  readonly before?: unknown
  readonly after?: unknown
}

let server: TestServer
let bank: Bank
beforeAll(async () => {
  server = await startTestServer({ env: { PAWL_TRUSTED_PROXIES: '127.0.0.1' } })
  bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
  expectOk(await bank.createApplication('app'))
})
afterAll(() => server.close())

const itemsOf = (reply: HttpReply): Event[] => member(expectOk(reply).json, 'items') as Event[]
const list = async (query: Readonly<Record<string, unknown>> = {}): Promise<Event[]> =>
  itemsOf(await bank.call('GET', `/admin/audit?${toQuery(query)}`))
const passwordOf = (reply: HttpReply): string => String(member(expectOk(reply).json, 'password'))

/** What one request added to the log. */
async function eventsOf(act: () => Promise<unknown>): Promise<Omit<Event, 'id' | 'timestamp'>[]> {
  const [last] = await list({ limit: 1 })
  await act()
  const events = (await list()).filter(({ id }) => id > (last?.id ?? 0))
  return events.map(({ id, timestamp, ...event }) => {
    expect([Number.isInteger(id), Number.isInteger(timestamp)]).toEqual([true, true])
    return event
  })
}

async function createReader(username: string, application?: string): Promise<Bank> {
  return bank.as(
    `${username}:${passwordOf(await bank.call('POST', '/admin/users', { username, role: 'read-only', application }))}`,
  )
}

test('every endpoint that changes something below /admin says what it changes', () => {
  const silent = cloudEndpoints.filter(
    ({ method, path, isAudited }) => path.startsWith('/admin/') && method !== 'GET' && !isAudited,
  )
  expect(silent.map(({ method, path }) => `${method} ${path}`)).toEqual([])
})

describe('a record is made of', () => {
  const untouched = {
    vaultFactors: ['POSSESSION_KNOWLEDGE'],
    algorithms: ['EC_P384', 'EC_P384_ML_L3', 'EC_P384_ML_L5'],
    isProtocol3Admitted: true,
    qrSignatureCurve: 'P-256',
    roles: [],
    isMultiDevice: false,
    transfers: [],
  }
  const application = (more: object) => ({ id: 'app', isDefault: true, ...untouched, ...more })
  const version = (name: string, isSupported = true) => ({ name, isSupported, appKey: expect.any(String) as unknown })

  test('the creation of an application, without its secret', async () => {
    const events = await eventsOf(() => bank.createApplication('created'))
    expect(events).toEqual([
      {
        username: 'admin',
        action: 'POST /admin/application',
        target: 'application created',
        after: { id: 'created', isDefault: false, ...untouched, versions: [version('default')] },
      },
    ])
  })

  test('a change of its settings, and of its versions', async () => {
    const factors = ['POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY']
    const versions = [version('default')]
    expect(await eventsOf(() => bank.call('PATCH', '/admin/applications/app', { vaultFactors: factors }))).toEqual([
      {
        username: 'admin',
        action: 'PATCH /admin/applications/{id}',
        target: 'application app',
        before: application({ versions }),
        after: application({ versions, vaultFactors: factors }),
      },
    ])
    const only4 = { algorithms: ['EC_P384_ML_L5'], isProtocol3Admitted: false, roles: ['retail'] }
    const [narrowed] = await eventsOf(() => bank.call('PATCH', '/admin/applications/app', only4))
    expect(narrowed).toMatchObject({
      before: { isProtocol3Admitted: true, algorithms: untouched.algorithms, roles: [] },
      after: { ...only4, qrSignatureCurve: 'P-384' },
    })
    const [added] = await eventsOf(() => bank.call('POST', '/admin/applications/app/versions', { name: 'next' }))
    expect(added).toMatchObject({ action: 'POST /admin/applications/{id}/versions', before: { versions } })
    const [off] = await eventsOf(() => bank.call('PATCH', '/admin/applications/app/versions/next', { isSupported: false }))
    expect(off).toMatchObject({
      before: { versions: [version('default'), version('next')] },
      after: { versions: [version('default'), version('next', false)] },
    })
  })

  test('the life of a user, without a password or its hash', async () => {
    const user = (more: object) => ({
      username: 'life',
      role: 'integration',
      application: 'app',
      isDisabled: false,
      expiresAt: null,
      ...more,
    })
    const passwords: string[] = []
    const events = await eventsOf(async () => {
      const created = { username: 'life', role: 'integration', application: 'app' }
      passwords.push(passwordOf(await bank.call('POST', '/admin/users', created)))
      const chosen = { password: 'chosen by a person', keepPreviousSeconds: 60 }
      passwords.push(passwordOf(await bank.call('POST', '/admin/users/life/password', chosen)))
      expectOk(await bank.call('DELETE', '/admin/users/life'))
    })
    const generated = { scheme: 'generated', expiresAt: null }
    const both = [
      { scheme: 'chosen', expiresAt: null },
      { scheme: 'generated', expiresAt: expect.any(String) as unknown },
    ]
    expect(events).toEqual([
      { username: 'admin', action: 'DELETE /admin/users/{name}', target: 'user life', before: user({ passwords: both }) },
      {
        username: 'admin',
        action: 'POST /admin/users/{name}/password',
        target: 'user life',
        before: user({ passwords: [generated] }),
        after: user({ passwords: both }),
      },
      { username: 'admin', action: 'POST /admin/users', target: 'user life', after: user({ passwords: [generated] }) },
    ])
    const { rows } = await sql`select username, action, target, before, after from admin_event`.execute(server.context.db)
    for (const password of passwords) expect(JSON.stringify(rows)).not.toContain(password)
    expect(JSON.stringify(rows)).not.toMatch(/hash|salt|secret/i)
  })

  test('claims by their names, a webhook without its secrets, and what has an id only afterwards by this id', async () => {
    const webhook = { application: 'app', kind: 'OPERATION', name: 'core', url: 'https://bank.example/hook?key=hidden-in-query' }
    const basic = { username: 'pawl', password: 'hidden-in-basic' }
    const events = await eventsOf(async () => {
      expectOk(await bank.call('PUT', '/admin/applications/app/claims/alice', { email: 'hidden-claim' }))
      const { json } = expectOk(await bank.call('POST', '/admin/webhooks', { ...webhook, basic }))
      expectOk(await bank.call('DELETE', `/admin/webhooks/${String(member(json, 'id'))}`))
      const otp = { userId: 'with-otp', otp: 'hidden-otp', otpPhase: 'ON_COMMIT' }
      expectOk(await bank.call('POST', '/admin/applications/app/registrations', otp))
    })
    const set = { id: expect.any(String) as unknown, url: 'https://bank.example/hook', basicUsername: 'pawl' }
    expect(events.toReversed()).toMatchObject([
      { target: 'claims about alice in app', after: { names: ['email'] } },
      { target: expect.stringMatching(/^webhook [0-9a-f-]{36}$/) as unknown, after: set },
      { action: 'DELETE /admin/webhooks/{id}', before: set },
      { target: 'registration of with-otp in app', after: { state: 'CREATED' } },
    ])
    expect(JSON.stringify(events)).not.toContain('hidden')
  })

  test('nothing of a refusal that counts, and its count stays', async () => {
    const { db } = server.context
    const commit = '/admin/applications/app/registrations/commit'
    const request = { userId: 'counted', otp: 'the right one', otpPhase: 'ON_COMMIT' }
    expectOk(await bank.call('POST', '/admin/applications/app/registrations', request))
    await sql`update activation set state = 'PENDING_COMMIT' where user_id = 'counted'`.execute(db)
    const events = await eventsOf(async () => {
      expectError(await bank.call('POST', commit, { userId: 'counted', otp: 'a wrong one' }), 400, 'ERROR_OTP_INVALID')
    })
    expect(events).toEqual([])
    const { rows } = await sql`select failed_attempts from activation where user_id = 'counted'`.execute(db)
    expect(rows).toEqual([{ failed_attempts: 1 }])
    const [done] = await eventsOf(async () => {
      expectOk(await bank.call('POST', commit, { userId: 'counted', otp: 'the right one' }))
    })
    expect(done).toMatchObject({ before: { state: 'PENDING_COMMIT' }, after: { state: 'ACTIVE' } })
  })

  test('nothing that was refused', async () => {
    const events = await eventsOf(async () => {
      expectError(await bank.createApplication('app'), 400, 'ERROR_ADMIN')
      expectError(await bank.call('POST', '/admin/applications/app/versions', { name: 'default' }), 400, 'ERROR_ADMIN')
      expectError(await bank.call('POST', '/admin/applications/none/versions', { name: 'x' }), 400, 'ERROR_ADMIN')
      expectError(await bank.call('PATCH', '/admin/applications/app', { vaultFactors: ['ALL'] }), 400, 'ERROR_REQUEST')
      expectError(await bank.call('POST', '/admin/users', { username: 'admin', role: 'admin' }), 400, 'ERROR_ADMIN')
      expectError(await bank.call('DELETE', '/admin/users/admin'), 400, 'ERROR_ADMIN')
      expectError(await bank.call('POST', '/admin/users/nobody/password', {}), 400, 'ERROR_ADMIN')
      expectError(await bank.as(undefined).createApplication('stranger'), 401, 'HTTP_401')
    })
    expect(events).toEqual([])
    expectOk(await bank.call('GET', '/admin/application?id=app'))
  })

  test('each of many changes at once with the state that it found', async () => {
    const names = Array.from({ length: 6 }, (_, i) => `v${i}`)
    expectOk(await bank.createApplication('busy'))
    const events = await eventsOf(() =>
      Promise.all(names.map(async (name) => expectOk(await bank.call('POST', '/admin/applications/busy/versions', { name })))),
    )
    const count = (view: unknown) => (member(view, 'versions') as unknown[]).length
    expect(events.map(({ before, after }) => [count(before), count(after)])).toEqual([6, 5, 4, 3, 2, 1].map((n) => [n, n + 1]))
  })
})

describe('the list', () => {
  test('is filtered by user, action and time, and read in pages', async () => {
    const credential = passwordOf(await bank.call('POST', '/admin/users', { username: 'second', role: 'admin' }))
    server.clock.advance(SECOND)
    const from = server.context.platform.now()
    expectOk(await bank.as(`second:${credential}`).createApplication('by-second'))
    const [made] = await list({ username: 'second' })
    expect(made).toMatchObject({ username: 'second', target: 'application by-second' })
    expect((await list({ username: 'second' })).length).toBe(1)
    const all = await list()
    expect(all.map(({ id }) => id)).toEqual(all.map(({ id }) => id).toSorted((a, b) => b - a))
    expect(await list({ action: 'POST /admin/users' })).toEqual(all.filter(({ action }) => action === 'POST /admin/users'))
    expect(await list({ timestampFrom: from })).toEqual([made])
    expect(await list({ timestampFrom: made?.timestamp, timestampTo: made?.timestamp })).toEqual([made])
    expect(await list({ timestampTo: from - 1 })).toEqual(all.slice(1))
    const pages = [await list({ limit: 2 }), await list({ limit: 1000, before: all[1]?.id })]
    expect(pages.flat()).toEqual(all)
    expect(await list({ username: 'nobody' })).toEqual([])
  })

  test.each([
    'limit=0',
    'limit=1001',
    'limit=x',
    'before=-1',
    'before=x',
    'timestampFrom=x',
    'timestampTo=-1',
    'username=',
    'action=a%00',
    'timestampFrom=2&timestampTo=1',
  ])('is refused with %s', async (query) => {
    expectError(await bank.call('GET', `/admin/audit?${query}`), 400, 'ERROR_REQUEST')
  })
})

describe('verification', () => {
  test('reports every chain, also to many who ask at once', async () => {
    await sealAll(server.context)
    const replies = await Promise.all(Array.from({ length: 4 }, () => bank.call('GET', '/admin/audit/verification')))
    for (const reply of replies) {
      const { isIntact, chains } = expectOk(reply).json as { isIntact: boolean; chains: object[] }
      expect(isIntact).toBe(true)
      expect(chains).toContainEqual({
        chain: 'administration',
        isIntact: true,
        sealed: expect.any(Number) as unknown,
        unsealed: 0,
        startPosition: 0,
        headPosition: expect.any(Number) as unknown,
        headSeal: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown,
      })
    }
  })

  test('names what was altered', async () => {
    const { db } = server.context
    await sealAll(server.context)
    await sql`update admin_event set username = 'nobody' where sequence = 1`.execute(db)
    const { json } = expectOk(await bank.call('GET', '/admin/audit/verification'))
    expect(json).toMatchObject({ isIntact: false })
    const chains = member(json, 'chains') as { chain: string; fault?: unknown }[]
    expect(chains.find(({ chain }) => chain === 'administration')?.fault).toEqual({
      problem: 'the row was changed or moved',
      position: 1,
      sequence: 1,
    })
    await sql`update admin_event set username = 'admin' where sequence = 1`.execute(db)
    expect(expectOk(await bank.call('GET', '/admin/audit/verification')).json).toMatchObject({ isIntact: true })
  })
})

describe('who only reads', () => {
  // What hands out secrets, and what receivers are sent of operations.
  const EXCEPT = [
    '/admin/application',
    '/operations/offline/qr',
    '/push/registration',
    '/admin/webhooks/:id/deliveries/:deliveryId',
  ]
  const endpoints = [...cloudEndpoints, ...doors]
  const reads = endpoints.filter(({ method, path }) => method === 'GET' && !EXCEPT.includes(path))

  test('is let in by every GET and by nothing else', () => {
    const open = endpoints.filter(({ roles }) => roles.includes('read-only'))
    expect(open.map(({ method, path }) => `${method} ${path}`)).toEqual(reads.map(({ method, path }) => `${method} ${path}`))
  })

  test('with an application reads its users and not the administration', async () => {
    const reader = await createReader('reader-of-app', 'app')
    expectOk(await bank.register('seen'))
    // Without the code that would bind a phone.
    expect(expectOk(await reader.view('seen')).json).toEqual({ registration: 'CREATED' })
    expectOk(await reader.call('GET', '/audit/log?userId=seen'))
    for (const { path } of reads.filter(({ path }) => path.startsWith('/admin/')))
      expectError(await reader.call('GET', path.replace(/:\w+/g, 'app')), 403, 'HTTP_403')
    expectError(await reader.call('GET', '/admin/application?id=app'), 403, 'HTTP_403')
  })

  test('without one reads the administration and no user', async () => {
    const reader = await createReader('reader-of-all')
    for (const path of ['applications', 'applications/app', 'users', 'audit', 'audit/verification'])
      expectOk(await reader.call('GET', `/admin/${path}`))
    expectError(await reader.call('GET', '/admin/application?id=app'), 403, 'HTTP_403')
    expectError(await reader.view('seen'), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expectError(await reader.call('GET', '/audit/log?userId=seen'), 400, 'ERROR_AUDIT')
  })

  test('changes nothing anywhere', async () => {
    for (const reader of [await createReader('changer-of-app', 'app'), await createReader('changer-of-all')]) {
      for (const { method, path } of endpoints.filter(({ method }) => method !== 'GET'))
        expectError(await reader.call(method, path.replace(/:\w+/g, 'app'), {}), 403, 'HTTP_403')
    }
  })
})

test('failed logins are counted for each source apart', async () => {
  const status = async (password: string, source: string): Promise<number> => {
    const Authorization = `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`
    return (await sendJson(server.url, 'GET', '/admin/users', undefined, { Authorization, 'X-Forwarded-For': source })).status
  }
  for (let i = 0; i < 20; i++) expect(await status('wrong', '192.0.2.1')).toBe(401)
  expect(await status('wrong', '192.0.2.1')).toBe(429)
  expect(await status('wrong', '192.0.2.2')).toBe(401)
  expect(await status(server.admin.password, '192.0.2.1')).toBe(429)
  expect(await status(server.admin.password, '192.0.2.2')).toBe(200)
})
