// Administration beside the contract: claims about users, custom objects, the search for registrations, flags (cloud §10).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { exportUser } from '../../../src/domain/user-data/user-data.ts'
import type { TestServer } from '../../helpers/app.ts'
import { readApplication, readQrCode } from '../../helpers/bank.ts'
import { expectError, MINUTE, SECOND } from '../../helpers/expectations.ts'
import { type HttpReply, member, sendJson } from '../../../phone/http.ts'
import { random } from '../../../phone/v3/crypto.ts'
import { expectOk, startServerWithWorld, type World } from '../../helpers/world.ts'

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000'

let server: TestServer
let world: World
beforeAll(async () => {
  ;({ server, world } = await startServerWithWorld({}))
})
afterAll(() => world.close())

/** Ids that no path takes: blank, too long, with control characters. */
const NO_IDENTIFIER = ['%20', 'x'.repeat(256), '%00', 'a%0Ab', '%7F']

describe('claims', () => {
  const pathOf = (userId: string, id = world.applicationId) => `/admin/applications/${id}/claims/${encodeURIComponent(userId)}`

  test('are stored, read, replaced and removed', async () => {
    const path = pathOf(world.newUser())
    expectError(await world.bank.call('GET', path), 400, 'ERROR_ADMIN')
    expectError(await world.bank.call('DELETE', path), 400, 'ERROR_ADMIN')
    const claims = { name: 'Žofie 📱', address: { zip: 1, list: [null, true, 1.5] } }
    expect(expectOk(await world.bank.call('PUT', path, claims)).json).toEqual({ status: 'OK' })
    expect(expectOk(await world.bank.call('GET', path)).json).toEqual(claims)
    expectOk(await world.bank.call('PUT', path, { other: 1 }))
    expect(expectOk(await world.bank.call('GET', path)).json).toEqual({ other: 1 })
    expect(expectOk(await world.bank.call('DELETE', path)).json).toEqual({ status: 'OK' })
    expectError(await world.bank.call('GET', path), 400, 'ERROR_ADMIN')
  })

  test('reach the phone with user/info, and with its activation', async () => {
    const { userId, code } = await world.register()
    expectOk(await world.bank.call('PUT', pathOf(userId), { name: 'Jan' }))
    const phone = world.newPhone('3.3')
    const expected = { name: 'Jan', sub: userId, jti: expect.any(String), iat: expect.any(Number) }
    expect((await phone.activate(code)).layer1['userInfo']).toEqual(expected)
    expectOk(await world.bank.commit(userId))
    expect(await phone.exchange(await phone.prepareUserInfo())).toEqual(expected)
    expectOk(await world.bank.call('DELETE', pathOf(userId)))
    expect(Object.keys(await phone.exchange(await phone.prepareUserInfo()))).toEqual(['sub', 'jti', 'iat'])
  })

  test.each<[string, unknown]>([
    ['sub', { sub: 'x' }],
    ['jti', { name: 'x', jti: 'x' }],
    ['iat', { iat: 1 }],
    ['no members', {}],
    ['no body', undefined],
    ['a list', [1]],
    ['a text', 'x'],
    ['a zero character', { a: 'a\u0000b' }],
    ['half a surrogate pair', { 'a\ud800': 1 }],
    ['a number that phones would be told otherwise', { limits: [{ daily: 2 ** 53 }] }],
    ['a number below all that are exact', { a: -(2 ** 60) }],
    ['a number of 300 digits', { a: 1e300 }],
    ['more than 16 KiB', { name: 'x'.repeat(16 * 1024) }],
    ['more than 16 KiB in fewer characters', { name: '📱'.repeat(5000) }],
  ])('with %s are refused, and the stored ones stay', async (_, claims) => {
    const path = pathOf(world.newUser())
    expectOk(await world.bank.call('PUT', path, { kept: true }))
    expectError(await world.bank.call('PUT', path, claims), 400, 'ERROR_REQUEST')
    expect(expectOk(await world.bank.call('GET', path)).json).toEqual({ kept: true })
  })

  test('belong to one application, and to ids as they are written', async () => {
    const userId = 'a/b ?#%📱'
    expectOk(await world.bank.createApplication('claims-2'))
    expectOk(await world.bank.call('PUT', pathOf(userId), { of: 'first' }))
    expectError(await world.bank.call('GET', pathOf(userId, 'claims-2')), 400, 'ERROR_ADMIN')
    expectOk(await world.bank.call('PUT', pathOf(userId, 'claims-2'), { of: 'second' }))
    expect((await world.bank.call('GET', pathOf(userId))).json).toEqual({ of: 'first' })
    expectError(await world.bank.call('GET', pathOf(userId.toUpperCase())), 400, 'ERROR_ADMIN')
  })

  test('are not kept for an unknown application, or for a malformed id', async () => {
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const body = method === 'PUT' ? { a: 1 } : undefined
      expectError(await world.bank.call(method, pathOf('x', 'nobody'), body), 400, 'ERROR_ADMIN')
      for (const id of NO_IDENTIFIER) {
        const path = `/admin/applications/${world.applicationId}/claims/${id}`
        expectError(await world.bank.call(method, path, body), 400, 'ERROR_REQUEST')
      }
    }
  })

  test('are encrypted in the database, and not in the log', async () => {
    const userId = world.newUser()
    expectOk(await world.bank.call('PUT', pathOf(userId), { name: 'personal-claim' }))
    const rows = server.context.db.selectFrom('user_claims').select('claims').where('user_id', '=', userId)
    const { claims } = await rows.executeTakeFirstOrThrow()
    expect(claims.toString('latin1')).not.toContain('personal-claim')
    expect(server.log()).not.toContain('personal-claim')
  })

  test('that were altered in the database are none: they are not told, and can be given again or removed', async () => {
    const { phone, userId } = await world.activePhone('3.3')
    const path = pathOf(userId)
    const alter = async () => {
      expectOk(await world.bank.call('PUT', path, { name: 'Jan' }))
      const { db } = server.context
      await db
        .updateTable('user_claims')
        .set({ claims: Buffer.alloc(60) })
        .where('user_id', '=', userId)
        .execute()
    }
    const told = async () => Object.keys(await phone.exchange(await phone.prepareUserInfo()))
    await alter()
    expect(await told()).toEqual(['sub', 'jti', 'iat'])
    expectError(await world.bank.call('GET', path), 400, 'ERROR_ADMIN')
    const [exported] = (await exportUser(server.context, userId)).claims
    expect(exported).toMatchObject({ application_id: world.applicationId, claims: undefined })
    expect(server.log()).toContain('a sealed record was altered in the database')
    expectOk(await world.bank.call('PUT', path, { name: 'Jan' }))
    expect(await told()).toContain('name')
    await alter()
    expectOk(await world.bank.call('DELETE', path))
  })

  test('written at the same time leave one of them whole', async () => {
    const path = pathOf(world.newUser())
    const replies = await Promise.all([0, 1, 2, 3, 4, 5].map((i) => world.bank.call('PUT', path, { a: i, b: i })))
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200))
    const { a, b } = expectOk(await world.bank.call('GET', path)).json as { a: number; b: number }
    expect(a).toBe(b)
  })
})

describe('the custom object of an application', () => {
  const change = (customObject: unknown, id = world.applicationId) =>
    world.bank.call('PATCH', `/admin/applications/${id}`, { customObject })
  const statusOf = async (activationId: string): Promise<HttpReply> =>
    expectOk(await sendJson(world.url, 'POST', '/pa/v3/activation/status', { requestObject: { activationId } }))
  const shownFor = async (activationId: string): Promise<unknown> =>
    member((await statusOf(activationId)).json, 'responseObject', 'customObject')
  const newId = (): string => {
    const hex = Buffer.from(random(16)).toString('hex')
    return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20)].join('-')
  }

  test('goes into activation/status, and null removes it', async () => {
    const { phone, userId } = await world.activePhone('3.3')
    const customObject = { maintenance: { from: 1, text: 'Žluťoučký' }, list: [1, null] }
    const detail = expectOk(await change(customObject)).json
    expect(member(detail, 'responseObject', 'customObject')).toEqual(customObject)
    const shown = (await world.bank.call('GET', `/admin/applications/${world.applicationId}`)).json
    expect(shown).toMatchObject(detail as object)
    expect(await shownFor(phone.state.activationId)).toEqual(customObject)
    expect((await phone.readStatus()).state).toBe(3)
    expectOk(await world.bank.change(userId, 'BLOCK'))
    expect(await shownFor(phone.state.activationId)).toEqual(customObject)
    expectOk(await change({}))
    expect(await shownFor(phone.state.activationId)).toEqual({})
    expect(member(expectOk(await change(null)).json, 'responseObject', 'customObject')).toBeUndefined()
    expect(Object.keys(member((await statusOf(phone.state.activationId)).json, 'responseObject') as object)).toEqual([
      'activationId',
      'encryptedStatusBlob',
    ])
  })

  test('stays as it was by a change that does not name it', async () => {
    expectOk(await change({ kept: true }))
    const reply = await world.bank.call('PATCH', `/admin/applications/${world.applicationId}`, { isDefault: true })
    expect(member(expectOk(reply).json, 'responseObject', 'customObject')).toEqual({ kept: true })
    expectOk(await change(null))
  })

  test.each(['x', 7, true, [], { a: 'x'.repeat(4096) }, { a: 'a\u0000' }, { a: '\ud800' }, { a: [2 ** 53] }])(
    'is not %j, which changes nothing',
    async (customObject) => {
      expectOk(await change({ kept: true }))
      const body = { customObject, vaultFactors: ['POSSESSION'] }
      const reply = await world.bank.call('PATCH', `/admin/applications/${world.applicationId}`, body)
      expectError(reply, 400, 'ERROR_REQUEST')
      const shown = await world.bank.call('GET', `/admin/applications/${world.applicationId}`)
      expect(member(shown.json, 'responseObject')).toMatchObject({
        customObject: { kept: true },
        vaultFactors: ['POSSESSION_KNOWLEDGE'],
      })
    },
  )

  test('does not tell which ids exist: an unknown one is answered like one of some application, always the same', async () => {
    for (const id of ['custom-1', 'custom-2']) {
      if ((await world.bank.call('GET', `/admin/applications/${id}`)).status !== 200)
        expectOk(await world.bank.createApplication(id))
    }
    const others = (await world.bank.call('GET', '/admin/applications')).json as { applications: { id: string }[] }
    for (const { id } of others.applications) expectOk(await change({ of: id }, id))
    expectOk(await change(null, 'custom-2'))
    const { code } = readQrCode(await world.bank.call('POST', '/admin/applications/custom-1/registrations', { userId: 'custom' }))
    const app = readApplication(await world.bank.call('GET', '/admin/application?id=custom-1'))
    const phone = world.newPhone('3.3', { app })
    await phone.activate(code)
    expect(await shownFor(phone.state.activationId)).toEqual({ of: 'custom-1' })
    const ids = Array.from({ length: 60 }, newId)
    const first = await Promise.all(ids.map(shownFor))
    expect(await Promise.all(ids.map(shownFor))).toEqual(first)
    const kinds = new Set(first.map((shown) => JSON.stringify(shown)))
    for (const shown of [{ of: 'custom-1' }, { of: world.applicationId }, undefined]) {
      expect(kinds).toContain(JSON.stringify(shown))
    }
    expect(await shownFor('no id at all')).toEqual(await shownFor('no id at all'))
  })
})

describe('the search for registrations', () => {
  const application = 'searched'
  const path = `/admin/applications/${application}/registrations`
  const register = async (userId: string): Promise<string> =>
    String(member(expectOk(await world.bank.call('POST', path, { userId })).json, 'activationId'))
  const list = async (query = '') =>
    expectOk(await world.bank.call('GET', path + query)).json as {
      registrations: { activationId: string; userId: string; state: string }[]
      nextCursor?: string
    }
  const idsOf = async (query: string) => (await list(query)).registrations.map(({ activationId }) => activationId)
  const created: string[] = []

  beforeAll(async () => {
    expectOk(await world.bank.createApplication(application))
    // Three of them within one millisecond or not: the order is stable either way.
    for (let i = 0; i < 7; i += 1) created.push(await register(`searched-${i % 6}-${i}`))
  })

  test('answers newest first, in pages that lead through all of them once', async () => {
    const all = await idsOf('')
    expect(all.toSorted()).toEqual(created.toSorted())
    const pages: string[] = []
    let query = '?limit=3'
    const sizes: number[] = []
    for (;;) {
      const page = await list(query)
      pages.push(...page.registrations.map(({ activationId }) => activationId))
      sizes.push(page.registrations.length)
      if (page.nextCursor === undefined) break
      query = `?limit=3&cursor=${encodeURIComponent(page.nextCursor)}`
    }
    expect(sizes).toEqual([3, 3, 1])
    expect(pages).toEqual(all)
    expect((await list('?limit=7')).nextCursor).toBeUndefined()
  })

  test('a page is the same when newer ones were created meanwhile', async () => {
    const { nextCursor = '' } = await list('?limit=2')
    const before = await idsOf(`?limit=3&cursor=${nextCursor}`)
    created.push(await register('searched-newer'))
    expect(await idsOf(`?limit=3&cursor=${nextCursor}`)).toEqual(before)
  })

  test('finds by user and by state, and shows what has run out as removed', async () => {
    const app = readApplication(await world.bank.call('GET', `/admin/application?id=${application}`))
    const registration = expectOk(
      await world.bank.call('POST', path, { userId: 'searched-state', commitPhase: 'ON_KEY_EXCHANGE' }),
    )
    const phone = world.newPhone('3.1', { app })
    await phone.activate(readQrCode(registration).code)
    const { registrations } = await list('?state=ACTIVE')
    expect(registrations).toEqual([
      {
        activationId: phone.state.activationId,
        userId: 'searched-state',
        state: 'ACTIVE',
        name: 'Test phone',
        platform: 'ios',
        deviceInfo: 'iPhone16,2',
        protocolVersion: 3,
        highestProtocolVersion: '3.1',
        timestampCreated: expect.any(Number),
      },
    ])
    expect(await idsOf('?userId=searched-state')).toEqual([phone.state.activationId])
    expect(await idsOf('?userId=searched-state&state=CREATED')).toEqual([])
    expect(await idsOf('?userId=SEARCHED-STATE')).toEqual([])
    expect(await idsOf('?protocolVersion=3')).toEqual([phone.state.activationId])
    expect(await idsOf('?protocolVersion=4')).toEqual([])
    expect(await idsOf('?state=CREATED')).toHaveLength(created.length)
    await world.advance(5 * MINUTE + SECOND)
    expect(await idsOf('?state=CREATED')).toEqual([])
    expect((await idsOf('?state=REMOVED')).toSorted()).toEqual(created.toSorted())
    expectOk(await phone.send(phone.prepareValidation()))
    const [used] = (await list('?state=ACTIVE')).registrations
    expect(used).toMatchObject({ timestampLastUsed: expect.any(Number) })
  })

  test('finds users by the beginning of their name, whatever its capitals', async () => {
    const names = ['Žofie.Malá', 'žofie', 'zofie', 'a_b', 'a%b', 'axb']
    for (const userId of names) expectOk(await world.bank.call('POST', path, { userId }))
    const found = async (userIdPrefix: string) =>
      (await list(`?${new URLSearchParams({ userIdPrefix }).toString()}`)).registrations.map(({ userId }) => userId).toSorted()
    expect(await found('A_')).toEqual(['a_b'])
    expect(await found('a%')).toEqual(['a%b'])
    expect(await found('A')).toEqual(['a%b', 'a_b', 'axb'])
    expect(await found('žof')).toEqual(expect.arrayContaining(['žofie']))
    expect(await found('malá')).toEqual([])
    expect(await found('axbx')).toEqual([])
    expect(await idsOf('?userIdPrefix=a&state=ACTIVE')).toEqual([])
    expect(await idsOf('?userIdPrefix=a&userId=zofie')).toEqual([])
    const { nextCursor = '' } = await list('?userIdPrefix=a&limit=2')
    expect(await idsOf(`?userIdPrefix=a&limit=2&cursor=${nextCursor}`)).toHaveLength(1)
  })

  test('finds users by a part of their name, page by page, and goes on behind what it has looked at', async () => {
    const names = ['Jana.Nováková', 'nova', 'RENOVATA', 'no_va']
    for (const userId of names) expectOk(await world.bank.call('POST', path, { userId }))
    const found = async (userIdPart: string, more = '') =>
      (await list(`?${new URLSearchParams({ userIdPart }).toString()}${more}`)).registrations.map(({ userId }) => userId)
    expect(await found('NOV')).toEqual(['RENOVATA', 'nova', 'Jana.Nováková'])
    expect(await found('NOV', '&state=ACTIVE')).toEqual([])
    expect(await found('o_v')).toEqual(['no_va'])
    expect(await found('%')).toEqual(['a%b'])
    expect(await found('ovak')).toEqual([])
    const { nextCursor = '' } = await list('?userIdPart=nov&limit=2')
    expect(await found('nov', `&limit=2&cursor=${nextCursor}`)).toEqual(['Jana.Nováková'])
    expect(await list('?userIdPart=nov&limit=3')).not.toHaveProperty('nextCursor')
  })

  test.each([
    '?limit=0',
    '?userIdPart=',
    '?userIdPart=%00',
    `?userIdPart=${'x'.repeat(256)}`,
    '?userIdPrefix=',
    '?userIdPrefix=%00',
    `?userIdPrefix=${'x'.repeat(256)}`,
    '?limit=101',
    '?limit=x',
    '?limit=1.5',
    '?limit=99999999999999999999',
    '?limit=',
    '?state=active',
    '?state=NONE',
    '?state=',
    '?protocolVersion=2',
    '?protocolVersion=',
    '?protocolVersion=3.3',
    '?userId=',
    '?userId=%20',
    '?userId=%00',
    '?userId=a&userId=b',
    `?userId=${'x'.repeat(256)}`,
    '?cursor=',
    '?cursor=x',
    `?cursor=1_${UNKNOWN_ID}x`,
    `?cursor=1_${UNKNOWN_ID.replaceAll('0', 'A')}`,
    `?cursor=999999999999999_${UNKNOWN_ID}`,
    `?cursor=-1_${UNKNOWN_ID}`,
    '?cursor=%00',
  ])('refuses the query %j', async (query) => {
    expectError(await world.bank.call('GET', path + query), 400, 'ERROR_REQUEST')
  })

  test('takes any cursor of the right form', async () => {
    expect(await idsOf(`?cursor=0_${UNKNOWN_ID}`)).toEqual([])
    expect(await idsOf(`?cursor=99999999999999_${UNKNOWN_ID}`)).toHaveLength((await idsOf('')).length)
  })

  test('knows nothing of other applications', async () => {
    expectError(await world.bank.call('GET', '/admin/applications/nobody/registrations'), 400, 'ERROR_ADMIN')
    const { phone } = await world.activePhone('3.1')
    const { activationId } = phone.state
    expect(await idsOf('')).not.toContain(activationId)
    expectError(await world.bank.call('GET', `${path}/${activationId}`), 400, 'ERROR_ADMIN')
    const own = `/admin/applications/${world.applicationId}/registrations`
    expectOk(await world.bank.call('GET', `${own}/${activationId}`))
    for (const id of [UNKNOWN_ID, 'x']) expectError(await world.bank.call('GET', `${own}/${id}`), 400, 'ERROR_ADMIN')
    for (const id of NO_IDENTIFIER) expectError(await world.bank.call('GET', `${own}/${id}`), 400, 'ERROR_REQUEST')
  })

  test('shows one with what happened to it', async () => {
    const { phone, userId } = await world.activePhone('3.3', {}, { layer2: { extras: '{"a":1}', externalId: 'ext-1' } })
    expectOk(await world.bank.change(userId, 'BLOCK', { blockReason: 'LOST', externalUserId: 'operator-1' }))
    const own = `/admin/applications/${world.applicationId}/registrations/${phone.state.activationId}`
    const { history, ...rest } = expectOk(await world.bank.call('GET', own)).json as { history: unknown[] }
    expect(rest).toEqual({
      activationId: phone.state.activationId,
      userId,
      state: 'BLOCKED',
      name: 'Test phone',
      platform: 'ios',
      deviceInfo: 'iPhone16,2',
      timestampCreated: expect.any(Number),
      blockReason: 'LOST',
      flags: [],
      highestProtocolVersion: '3.3',
      protocolVersion: 3,
      isUpgradePending: false,
      activationFingerprint: expect.stringMatching(/^\d{8}$/),
      failedAttempts: 0,
      maxFailedAttempts: 5,
      commitPhase: 'ON_COMMIT',
      isOtpDemanded: false,
      extras: '{"a":1}',
      externalId: 'ext-1',
    })
    const timestamp = expect.any(Number)
    expect(history).toEqual([
      { from: 'ACTIVE', to: 'BLOCKED', reason: 'LOST', externalUserId: 'operator-1', timestamp },
      { from: 'PENDING_COMMIT', to: 'ACTIVE', timestamp },
      { from: 'CREATED', to: 'PENDING_COMMIT', timestamp },
      { to: 'CREATED', timestamp },
    ])
  })
})

describe('flags of an activation', () => {
  const set = (activationId: string, flags: unknown) =>
    world.bank.call('PUT', `/admin/activations/${activationId}/flags`, { flags })
  const detailOf = async (activationId: string) =>
    expectOk(await world.bank.call('GET', `/admin/applications/${world.applicationId}/registrations/${activationId}`)).json

  test('are set and removed, and noted in history and audit', async () => {
    const { phone } = await world.activePhone('3.3')
    const { activationId } = phone.state
    const flags = ['VIP', 'TEST_1', 'X'.repeat(64)]
    expect(expectOk(await set(activationId, flags)).json).toEqual({ flags })
    expect(await detailOf(activationId)).toMatchObject({
      flags,
      history: [{ from: 'ACTIVE', to: 'ACTIVE', reason: 'ACTIVATION_FLAGS_UPDATED' }, {}, {}, {}],
    })
    expectOk(await phone.send(phone.prepareValidation()))
    expect(expectOk(await set(activationId, [])).json).toEqual({ flags: [] })
    expect(await detailOf(activationId)).toMatchObject({ flags: [] })
    const rows = server.context.db.selectFrom('audit_trail').where('activation_id', '=', activationId)
    const changes = rows.where('event_type', '=', 'registration_flags_changed').select(['event_data', 'verified_by'])
    const verified_by = world.bank.credential?.split(':')[0]
    expect(await changes.orderBy('sequence').execute()).toEqual([
      { event_data: `{"flags":"${flags.join(',')}"}`, verified_by },
      { event_data: '{"flags":""}', verified_by },
    ])
  })

  test.each([undefined, null, 'VIP', [''], ['a'], ['A B'], ['A,B'], ['A\n'], ['X'.repeat(65)], [1], ['Ž'], ['A', 'A'], [['A']]])(
    'are not %j, which changes nothing',
    async (flags) => {
      const { phone } = await world.pendingPhone('3.1')
      expectOk(await set(phone.state.activationId, ['KEPT']))
      expectError(await set(phone.state.activationId, flags), 400, 'ERROR_REQUEST')
      expect(await detailOf(phone.state.activationId)).toMatchObject({ flags: ['KEPT'] })
    },
  )

  test('belong to live activations only', async () => {
    const { phone, userId } = await world.activePhone('3.1')
    expectOk(await world.bank.remove(userId))
    const pending = await world.pendingPhone('3.1')
    await world.advance(5 * MINUTE + SECOND)
    for (const id of [phone.state.activationId, pending.phone.state.activationId, UNKNOWN_ID, 'x']) {
      expectError(await set(id, ['A']), 400, 'ERROR_ADMIN')
    }
    for (const id of NO_IDENTIFIER) expectError(await set(id, ['A']), 400, 'ERROR_REQUEST')
  })

  test('set while codes are checked lose no code', async () => {
    const { phone } = await world.activePhone('3.1')
    const requests = Array.from({ length: 8 }, () => phone.prepareValidation())
    const changes = ['A', 'B', 'C'].map((flag) => set(phone.state.activationId, [flag]))
    // One after the other, as a phone sends them.
    for (const request of requests) expectOk(await phone.send(request))
    for (const reply of await Promise.all(changes)) expectOk(reply)
  })
})

test('only administrators reach any of it', async () => {
  const user = { username: 'bank-of-registrations', role: 'integration', application: world.applicationId }
  const password = String(member(expectOk(await world.bank.call('POST', '/admin/users', user)).json, 'password'))
  const base = `/admin/applications/${world.applicationId}`
  const calls = [
    ['GET', `${base}/claims/x`],
    ['PUT', `${base}/claims/x`],
    ['DELETE', `${base}/claims/x`],
    ['POST', `${base}/registrations`],
    ['POST', `${base}/registrations/commit`],
    ['GET', `${base}/registrations`],
    ['GET', `${base}/registrations/${UNKNOWN_ID}`],
    ['PUT', `/admin/activations/${UNKNOWN_ID}/flags`],
  ] as const
  for (const [method, path] of calls) {
    const body = method === 'GET' || method === 'DELETE' ? undefined : {}
    expectError(await world.bank.as(`${user.username}:${password}`).call(method, path, body), 403, 'HTTP_403')
    expectError(await world.bank.as(undefined).call(method, path), 401, 'HTTP_401')
  }
})
