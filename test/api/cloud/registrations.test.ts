// /v2/registrations: registrations by their ids (cloud §17), where a user may have several phones and where not.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type HttpReply, member } from '../../../phone/http.ts'
import { type Bank, readQrCode } from '../../helpers/bank.ts'
import { addDevice, bindDevice, createFurther, setMultiDevice } from '../../helpers/devices.ts'
import { createCaller } from '../../helpers/door.ts'
import { expectError, MINUTE } from '../../helpers/expectations.ts'
import { type OperationWorld, type Side, startOperationWorld } from '../../helpers/operation-world.ts'
import { expectOk, registrationOf } from '../../helpers/world.ts'

const UNKNOWN_ID = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'
const OK = { status: 'OK' }

let world: OperationWorld
/** A user has one phone there. */
let single: Side
let readOnly: Bank
beforeAll(async () => {
  world = await startOperationWorld({ hasStoppedClock: true })
  expectOk(await setMultiDevice(world.bank, world.applicationId, true))
  single = await world.openSide()
  readOnly = await createCaller(world.bank, 'looks', 'read-only', world.applicationId)
})
afterAll(() => world.close())

const at = (id: string, part = ''): string => `/v2/registrations/${id}${part}`
const idOf = (reply: HttpReply): string => String(member(expectOk(reply).json, 'registrationId'))
const read = async (id: string, bank = world.bank) =>
  expectOk(await bank.call('GET', at(id))).json as Readonly<Record<string, unknown>>
const stateOf = async (id: string): Promise<unknown> => (await read(id))['state']
const list = async (query: string, bank = world.bank) =>
  expectOk(await bank.call('GET', `/v2/registrations?${query}`)).json as {
    registrations: Readonly<Record<string, unknown>>[]
    nextCursor?: string
  }
const idsOf = async (query: string) => (await list(query)).registrations.map(({ registrationId }) => registrationId)
const hintOf = (reply: HttpReply): unknown => member(reply.json, 'responseObject', 'violations', '0', 'hint')

describe('POST /v2/registrations', () => {
  test('creates one beside live ones, with all that is said of it', async () => {
    const userId = world.newUser()
    const first = idOf(await createFurther(world.bank, userId))
    const now = world.contexts[0]?.platform.now() ?? 0
    const more = { flags: ['VIP', 'STAFF'], maxFailedAttempts: 64, expiresAt: now + MINUTE, otp: '123456', otpPhase: 'ON_COMMIT' }
    const reply = await createFurther(world.bank, userId, more)
    expect(expectOk(reply).json).toEqual({
      registrationId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      activationQrCodeData: expect.stringMatching(/^([A-Z2-7]{5}-){3}[A-Z2-7]{5}#/),
    })
    const second = idOf(reply)
    expect(second).not.toBe(first)
    expect(await read(second)).toEqual({
      registrationId: second,
      userId,
      state: 'CREATED',
      flags: ['VIP', 'STAFF'],
      failedAttempts: 0,
      maxFailedAttempts: 64,
      commitPhase: 'ON_COMMIT',
      isOtpDemanded: true,
      timestampCreated: now,
      timestampExpires: now + MINUTE,
      activationQrCodeData: member(reply.json, 'activationQrCodeData'),
    })
    // Who may only read binds no phone.
    expect(await read(second, readOnly)).not.toHaveProperty('activationQrCodeData')
    expect(await idsOf(`userId=${userId}`)).toEqual(expect.arrayContaining([first, second]))
  })

  test.each([
    ['userId', { userId: '' }],
    ['userId', { userId: null }],
    ['otp', { otp: '' }],
    ['otpPhase', { otpPhase: 'ON_COMMIT' }],
    ['otpPhase', { otp: '1', otpPhase: 'ON_COMMIT', commitPhase: 'ON_COMMIT' }],
    ['commitPhase', { commitPhase: 'LATER' }],
    ['flags.0', { flags: ['vip'] }],
    ['maxFailedAttempts', { maxFailedAttempts: 0 }],
    ['maxFailedAttempts', { maxFailedAttempts: 65 }],
    ['expiresAt', { expiresAt: 1 }],
    ['expiresAt', { expiresAt: 'soon' }],
  ])('names %s in %j', async (fieldName, body) => {
    const reply = await createFurther(world.bank, world.newUser(), body)
    expectError(reply, 400, 'ERROR_REQUEST')
    expect(member(reply.json, 'responseObject', 'violations', '0', 'fieldName')).toBe(fieldName)
  })

  test('with incompleteStatusCheck waits for the end of one that is under way', async () => {
    const userId = world.newUser()
    const checked = (): Promise<HttpReply> => createFurther(world.bank, userId, {}, '?incompleteStatusCheck=true')
    const first = idOf(await checked())
    expectError(await checked(), 400, 'ERROR_REGISTRATION_NOT_ALLOWED')
    const { id } = await bindDevice(world, userId)
    expectOk(await world.bank.call('DELETE', at(first)))
    // The other one is PENDING_COMMIT.
    expectError(await checked(), 400, 'ERROR_REGISTRATION_NOT_ALLOWED')
    expectOk(await world.bank.call('POST', at(id, '/commit'), {}))
    expectOk(await checked())
    await world.advance(6 * MINUTE)
    expectOk(await checked())
    expectError(await createFurther(world.bank, userId, {}, '?incompleteStatusCheck=maybe'), 400, 'ERROR_REQUEST')
    // Of several at once one is made.
    const other = world.newUser()
    const replies = await Promise.all(
      Array.from({ length: 4 }, () => createFurther(world.bank, other, {}, '?incompleteStatusCheck=true')),
    )
    expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 400, 400, 400])
  })

  test('is refused beside a live one where a user has one phone', async () => {
    const userId = world.newUser()
    const first = idOf(await createFurther(single.bank, userId))
    expectError(await createFurther(single.bank, userId), 400, 'ERROR_REGISTRATION')
    expectError(
      await createFurther(single.bank, userId, {}, '?incompleteStatusCheck=true'),
      400,
      'ERROR_REGISTRATION_NOT_ALLOWED',
    )
    expectError(await single.bank.register(userId), 400, 'ERROR_REGISTRATION')
    // One that has run out takes no place.
    await world.advance(6 * MINUTE)
    expect(idOf(await createFurther(single.bank, userId))).not.toBe(first)
    expect((await list(`userId=${userId}&state=REMOVED`, single.bank)).registrations).toMatchObject([{ registrationId: first }])
  })
})

describe('GET /v2/registrations', () => {
  test('finds by user, state, flag and last use, in pages', async () => {
    const userId = world.newUser()
    const [old, vip, blocked] = [await addDevice(world, userId), await addDevice(world, userId), await addDevice(world, userId)]
    const waiting = idOf(await createFurther(world.bank, userId))
    expectOk(await world.bank.call('PUT', at(vip.id, '/flags'), { flags: ['VIP', 'OTHER'] }))
    expectOk(await world.bank.call('PUT', at(blocked.id), { change: 'BLOCK' }))
    const of = `userId=${userId}`
    expect(await idsOf(of)).toHaveLength(4)
    expect(await idsOf(`${of}&state=CREATED`)).toEqual([waiting])
    expect(await idsOf(`${of}&state=BLOCKED`)).toEqual([blocked.id])
    expect(await idsOf(`${of}&flag=VIP`)).toEqual([vip.id])
    expect(await idsOf(`${of}&flag=VI`)).toEqual([])
    await world.advance(MINUTE)
    const now = world.contexts[0]?.platform.now() ?? 0
    expectOk(await vip.phone.send(vip.phone.prepareValidation()))
    expect((await idsOf(`${of}&state=ACTIVE&lastUsedBefore=${now}`)).toSorted()).toEqual([old.id])
    const paged: unknown[] = []
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const page = await list(`${of}&limit=3${cursor && `&cursor=${cursor}`}`)
      paged.push(...page.registrations.map(({ registrationId }) => registrationId))
      cursor = page.nextCursor
    }
    expect(paged).toEqual(await idsOf(of))
    for (const item of (await list(of)).registrations) expect(item).not.toHaveProperty('activationQrCodeData')
    expect((await list(of, single.bank)).registrations).toEqual([])
    expect((await list(of, readOnly)).registrations).toHaveLength(4)
  })

  test.each(['state=GONE', 'flag=vip', 'lastUsedBefore=soon', 'limit=0', 'limit=101', 'cursor=x', 'userId='])(
    'refuses %s',
    async (query) => expectError(await world.bank.call('GET', `/v2/registrations?${query}`), 400, 'ERROR_REQUEST'),
  )
})

describe('below /v2/registrations/{id}', () => {
  test('a registration lives: bound, committed, named, blocked, unblocked, removed, and the history tells it', async () => {
    const userId = world.newUser()
    const { id, phone } = await bindDevice(world, userId)
    const pending = await read(id)
    expect(pending).toMatchObject({ state: 'PENDING_COMMIT', platform: 'ios', protocolVersion: 3 })
    expect(pending['activationFingerprint']).toMatch(/^\d{8}$/)
    for (const change of ['BLOCK', 'UNBLOCK'])
      expectError(await world.bank.call('PUT', at(id), { change }), 400, 'ERROR_REGISTRATION_CHANGE')
    expectError(await world.bank.call('PUT', at(id, '/name'), { name: 'Mine' }), 400, 'ERROR_REGISTRATION_CHANGE')
    expect(expectOk(await world.bank.call('POST', at(id, '/commit'), { externalUserId: 'clerk' })).json).toEqual(OK)
    expectError(await world.bank.call('POST', at(id, '/commit'), {}), 400, 'ERROR_REGISTRATION_CHANGE')
    expectOk(await phone.send(phone.prepareValidation()))
    expectOk(await world.bank.call('PUT', at(id, '/name'), { name: 'Mine', externalUserId: 'clerk' }))
    expectOk(await world.bank.call('PUT', at(id), { change: 'BLOCK', blockReason: 'LOST', externalUserId: 'clerk' }))
    expect(await read(id)).toMatchObject({ state: 'BLOCKED', name: 'Mine', blockReason: 'LOST' })
    expect((await phone.send(phone.prepareValidation())).status).toBe(401)
    expectError(await world.bank.call('PUT', at(id), { change: 'BLOCK' }), 400, 'ERROR_REGISTRATION_CHANGE')
    expectOk(await world.bank.call('PUT', at(id), { change: 'UNBLOCK' }))
    expectOk(await phone.send(phone.prepareValidation()))
    expect(expectOk(await world.bank.call('DELETE', at(id))).json).toEqual(OK)
    // It is read as well, and nothing else can be done.
    expect(await stateOf(id)).toBe('REMOVED')
    for (const [method, part, body] of CHANGES)
      expectError(await world.bank.call(method, at(id, part), body), 400, 'ERROR_REGISTRATION_CHANGE')
    const { history } = expectOk(await readOnly.call('GET', at(id, '/history'))).json as { history: { to: string }[] }
    expect(history.map(({ to }) => to)).toEqual(['REMOVED', 'ACTIVE', 'BLOCKED', 'ACTIVE', 'ACTIVE', 'PENDING_COMMIT', 'CREATED'])
    expect(history[2]).toMatchObject({ from: 'ACTIVE', reason: 'LOST', externalUserId: 'clerk', timestamp: expect.any(Number) })
    const page = expectOk(await world.bank.call('GET', at(id, '/history?limit=4'))).json as { history: object[]; next: string }
    const rest = expectOk(await world.bank.call('GET', at(id, `/history?before=${page.next}`))).json as { history: object[] }
    expect([...page.history, ...rest.history]).toEqual(history)
  })

  test('the OTP of a commit is set while it waits, and demanded', async () => {
    const userId = world.newUser()
    const created = await createFurther(world.bank, userId)
    const id = idOf(created)
    const setOtp = (): Promise<HttpReply> => world.bank.call('PUT', at(id, '/otp'), { otp: 'secret-1' })
    expectError(await setOtp(), 400, 'ERROR_REGISTRATION_CHANGE')
    await world.newPhone('3.2').activate(readQrCode(created).code)
    expect(await read(id)).toMatchObject({ isOtpDemanded: false })
    expectOk(await setOtp())
    expect(await read(id)).toMatchObject({ isOtpDemanded: true })
    expectError(await world.bank.call('POST', at(id, '/commit'), {}), 400, 'ERROR_OTP_INVALID')
    expectError(await world.bank.call('POST', at(id, '/commit'), { otp: 'secret-2' }), 400, 'ERROR_OTP_INVALID')
    expect(await read(id)).toMatchObject({ state: 'PENDING_COMMIT', failedAttempts: 1 })
    expectOk(await world.bank.call('POST', at(id, '/commit'), { otp: 'secret-1' }))
    expectError(await setOtp(), 400, 'ERROR_REGISTRATION_CHANGE')
  })

  test.each([
    ['an unknown id', async () => ({ id: UNKNOWN_ID, bank: world.bank })],
    [
      'a credential of another application',
      async () => ({ id: (await addDevice(world, world.newUser())).id, bank: single.bank }),
    ],
  ])('%s finds nothing and changes nothing', async (_name, prepare) => {
    const { id, bank } = await prepare()
    for (const path of ['', '/history', '/tokens'])
      expectError(await bank.call('GET', at(id, path)), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    for (const [method, part, body] of CHANGES)
      expectError(await bank.call(method, at(id, part), body), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    const several = { registrationIds: [id], change: 'BLOCK' }
    expectError(await bank.call('POST', '/v2/registrations/state', several), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    if (id !== UNKNOWN_ID) expect(await read(id)).toMatchObject({ state: 'ACTIVE', flags: [], name: 'Test phone' })
  })

  test.each([
    ['PUT', '', { change: 'MOVE' }],
    ['PUT', '', {}],
    ['PUT', '/otp', { otp: '' }],
    ['PUT', '/name', { name: ' ' }],
    ['PUT', '/flags', { flags: ['a b'] }],
    ['PUT', '/flags', { flags: ['A', 'A'] }],
    ['POST', '/commit', { otp: 7 }],
  ])('%s %s refuses %j', async (method, part, body) => {
    const { id } = await addDevice(world, world.newUser())
    expectError(await world.bank.call(method, at(id, part), body), 400, 'ERROR_REQUEST')
    expectError(await readOnly.call(method, at(id, part), body), 403, 'HTTP_403')
    expect(await read(id)).toMatchObject({ state: 'ACTIVE', flags: [], name: 'Test phone' })
  })
})

/** Every change of one registration. */
const CHANGES: readonly (readonly [string, string, object?])[] = [
  ['PUT', '', { change: 'REMOVE' }],
  ['DELETE', ''],
  ['POST', '/commit', {}],
  ['PUT', '/otp', { otp: '1' }],
  ['PUT', '/name', { name: 'Mine' }],
  ['PUT', '/flags', { flags: [] }],
]

describe('POST /v2/registrations/state', () => {
  const change = (registrationIds: unknown, wanted = 'BLOCK'): Promise<HttpReply> =>
    world.bank.call('POST', '/v2/registrations/state', { registrationIds, change: wanted, blockReason: 'STOLEN' })

  test('changes all or none', async () => {
    const userId = world.newUser()
    const ids = [(await addDevice(world, userId)).id, (await addDevice(world, userId)).id]
    const waiting = idOf(await createFurther(world.bank, userId))
    const states = async () => [await stateOf(ids[0] ?? ''), await stateOf(ids[1] ?? '')]
    for (const [more, code] of [
      [waiting, 'ERROR_REGISTRATION_CHANGE'],
      [UNKNOWN_ID, 'ERROR_REGISTRATION_NOT_FOUND'],
    ] as const) {
      const reply = await change([...ids, more])
      expectError(reply, 400, code)
      expect(member(reply.json, 'responseObject', 'violations', '0', 'invalidValue')).toBe(more)
      expect(await states()).toEqual(['ACTIVE', 'ACTIVE'])
    }
    expectOk(await change(ids))
    expect(await states()).toEqual(['BLOCKED', 'BLOCKED'])
    expect(await read(ids[0] ?? '')).toMatchObject({ blockReason: 'STOLEN' })
    expectOk(await change(ids.toReversed(), 'UNBLOCK'))
    expect(await states()).toEqual(['ACTIVE', 'ACTIVE'])
    expectOk(await change([...ids, waiting], 'REMOVE'))
    expect(await idsOf(`userId=${userId}&state=REMOVED`)).toHaveLength(3)
  })

  test.each([[[]], [['']], [[UNKNOWN_ID, UNKNOWN_ID]], [Array.from({ length: 101 }, (_, i) => `id-${i}`)], ['x']])(
    'refuses %j',
    async (ids) => expectError(await change(ids), 400, 'ERROR_REQUEST'),
  )
})

describe('paths that name a user', () => {
  test('serve one phone as ever, and of several say where to go', async () => {
    const userId = world.newUser()
    expectOk(await world.bank.register(userId))
    expectError(await world.bank.register(userId), 400, 'ERROR_REGISTRATION')
    const first = await registrationOf(world, userId)
    expect(first).toBe('CREATED')
    expectOk(await createFurther(world.bank, userId))
    const admin = `/admin/applications/${world.applicationId}/registrations/commit`
    for (const ask of [
      () => world.bank.register(userId),
      () => world.bank.view(userId),
      () => world.bank.commit(userId),
      () => world.bank.change(userId, 'BLOCK'),
      () => world.bank.remove(userId),
      () => world.bank.call('POST', admin, { userId }),
    ]) {
      const reply = await ask()
      expectError(reply, 400, 'ERROR_REGISTRATION_CHANGE')
      expect(hintOf(reply)).toContain('/v2/registrations')
    }
    expect(await idsOf(`userId=${userId}&state=CREATED`)).toHaveLength(2)
    // Those that have run out are none.
    await world.advance(6 * MINUTE)
    expect(await registrationOf(world, userId)).toBe('NONE')
    const { id, phone } = await bindDevice(world, userId)
    expectOk(await world.bank.commit(userId))
    expect(await stateOf(id)).toBe('ACTIVE')
    expectOk(await world.bank.change(userId, 'BLOCK'))
    expect((await phone.send(phone.prepareValidation())).status).toBe(401)
    expectOk(await world.bank.remove(userId))
    expect(await stateOf(id)).toBe('REMOVED')
  })

  test('an administrator makes and commits one of several', async () => {
    const userId = world.newUser()
    const path = `/admin/applications/${world.applicationId}/registrations`
    const [one, two] = [await world.bank.call('POST', path, { userId }), await world.bank.call('POST', path, { userId })]
    await world.newPhone('3.2').activate(readQrCode(two).code)
    const registrationId = String(member(expectOk(two).json, 'activationId'))
    expectError(
      await world.bank.call('POST', `${path}/commit`, {
        userId,
        registrationId: String(member(expectOk(one).json, 'activationId')),
      }),
      400,
      'ERROR_REGISTRATION_NOT_FOUND',
    )
    expectOk(await world.bank.call('POST', `${path}/commit`, { userId, registrationId }))
    expect(await stateOf(registrationId)).toBe('ACTIVE')
  })
})
