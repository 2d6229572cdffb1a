// A user with several phones (cloud §17): the setting, operations, offline codes, pushes, and that no phone disturbs another one.
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type HttpReply, member } from '../../../phone/http.ts'
import { random } from '../../../phone/v3/crypto.ts'
import { eraseUser } from '../../../src/domain/user-data/user-data.ts'
import { addDevice, bindDevice, createFurther, type Device, setMultiDevice } from '../../helpers/devices.ts'
import { startSession } from '../../helpers/console-session.ts'
import { expectError, MINUTE, readCounters } from '../../helpers/expectations.ts'
import { type OperationWorld, startOperationWorld } from '../../helpers/operation-world.ts'
import { type Provider, startProvider } from '../../helpers/provider.ts'
import { askReference, callReference } from '../../helpers/reference.ts'
import { expectOk } from '../../helpers/world.ts'

const WRONG_KEYS = { knowledge: random(16) }

let world: OperationWorld
let provider: Provider
beforeAll(async () => {
  provider = await startProvider()
  const env = {
    PAWL_ACTIVATION_PROVIDER_URL: `${provider.url}/find`,
    PAWL_REFERENCE_API: 'true',
    PAWL_OTP_ATTEMPTS_PER_MINUTE: '100',
  }
  world = await startOperationWorld({ env })
  expectOk(await setMultiDevice(world.bank, world.applicationId, true))
})
afterAll(async () => {
  await world.close()
  provider.close()
})

async function several(): Promise<{ userId: string; one: Device; two: Device }> {
  const userId = world.newUser()
  return { userId, one: await addDevice(world, userId), two: await addDevice(world, userId) }
}

const listed = async ({ phone, token }: Device): Promise<unknown[]> => {
  const reply = expectOk(await phone.send(await phone.prepareTokenCall('list', token)))
  return (member(reply.json, 'responseObject') as { id: string }[]).map(({ id }) => id)
}
const authorize = ({ phone }: Device, operation: { id: string; data: string }, options = {}): Promise<HttpReply> =>
  phone.send(phone.prepareAuthorize(operation, options))
const violated = (reply: HttpReply): unknown => member(reply.json, 'responseObject', 'violations', '0', 'fieldName')

describe('an operation', () => {
  test('is made once, seen by every phone, and decided by the first of them', async () => {
    const { userId, one, two } = await several()
    const operation = await world.operation(userId)
    expect(await listed(one)).toEqual([operation.id])
    expect(await listed(two)).toEqual([operation.id])
    expect((await authorize(one, operation, { wrongKeys: WRONG_KEYS })).status).toBe(401)
    // It has one failure, and so has that phone.
    expect(await world.stored(operation.id)).toMatchObject({ status: 'PENDING', failureCount: 1 })
    expect(await readCounters(two.phone)).toMatchObject({ failedAttempts: 0 })
    expectOk(await authorize(two, operation))
    expect(await world.stored(operation.id)).toMatchObject({
      status: 'APPROVED',
      additionalData: { activationId: two.id },
    })
    expect((await authorize(one, operation)).status).toBe(400)
    expect(await listed(one)).toEqual([])
    const { rows } = await sql`
      select from audit_trail where event_type = 'operation_created' and event_data like ${`%${operation.id}%`}`.execute(world.db)
    expect(rows).toHaveLength(1)
  })

  test('is decided once by two phones at the same moment', async () => {
    const { userId, one, two } = await several()
    const operation = await world.operation(userId)
    const statuses = (await Promise.all([authorize(one, operation), authorize(two, operation)])).map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([200, 400])
    expect(await world.audit(operation.id)).toEqual(['operation_approved'])
  })

  test('needs one ACTIVE phone among them', async () => {
    const { userId, one, two } = await several()
    const block = (id: string) => world.bank.call('PUT', `/v2/registrations/${id}`, { change: 'BLOCK' })
    expectOk(await block(one.id))
    const operation = await world.operation(userId)
    expectOk(await block(two.id))
    const refused = await world.bank.createOperation({ userId, template: 'login' })
    expectError(refused, 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expectError(await world.bank.createOperation({ userId, template: 'none' }), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expectOk(await world.bank.call('PUT', `/v2/registrations/${two.id}`, { change: 'UNBLOCK' }))
    expectError(await world.bank.createOperation({ userId, template: 'none' }), 400, 'ERROR_REQUEST')
    expect((await authorize(one, operation)).status).toBe(401)
    expectOk(await authorize(two, operation))
  })
})

describe('an approval without a connection', () => {
  const qr = (operationId: string, registrationId?: string): Promise<HttpReply> =>
    world.bank.call(
      'GET',
      `/operations/offline/qr?operationId=${operationId}${registrationId === undefined ? '' : `&registrationId=${registrationId}`}`,
    )
  const type = (body: object): Promise<HttpReply> => world.bank.call('POST', '/operations/offline/otp', body)
  const scan = async ({ phone, id }: Device, operationId: string) =>
    phone.scanOperation(String(member(expectOk(await qr(operationId, id)).json, 'operationQrCodeData')))

  test('is of the phone that is named, and the other one keeps its counts', async () => {
    const { userId, one, two } = await several()
    const operation = await world.operation(userId)
    const unnamed = await qr(operation.id)
    expectError(unnamed, 400, 'ERROR_REQUEST')
    expect(violated(unnamed)).toBe('registrationId')
    const scanned = await scan(two, operation.id)
    expect(() => one.phone.scanOperation(String(scanned))).toThrow()
    const before = await readCounters(one.phone)
    const { nonce } = scanned
    const operationId = operation.id
    const wrong = two.phone.computeOtp(scanned, { wrongKeys: WRONG_KEYS })
    expectError(await type({ operationId, nonce, otp: wrong, registrationId: two.id }), 400, 'ERROR_OTP_INVALID')
    const otp = two.phone.computeOtp(scanned)
    const nobodys = await type({ operationId, nonce, otp })
    expectError(nobodys, 400, 'ERROR_REQUEST')
    expect(violated(nobodys)).toBe('registrationId')
    expect(await world.stored(operation.id)).toMatchObject({ status: 'PENDING', failureCount: 1 })
    expectOk(await type({ operationId, nonce, otp, registrationId: two.id }))
    expect(await world.stored(operation.id)).toMatchObject({ status: 'APPROVED', additionalData: { activationId: two.id } })
    expect(await readCounters(one.phone)).toEqual(before)
  })

  test('needs no name where one phone is ACTIVE, and finds no phone of somebody else', async () => {
    const { userId, one, two } = await several()
    const { userId: other } = await several()
    const operation = await world.operation(other)
    expectError(await qr(operation.id, one.id), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expectOk(await world.bank.call('DELETE', `/v2/registrations/${one.id}`))
    const own = await world.operation(userId)
    expectError(await qr(own.id, one.id), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expectOk(await qr(own.id))
    expectOk(await qr(own.id, two.id))
  })
})

test('the console changes the phone of its page, and asks which one scans an offline code', async () => {
  const { userId, one, two } = await several()
  const [name = '', password = ''] = (world.bank.credential ?? '').split(/:(.*)/s)
  const session = await startSession(world.url, name, password)
  const operation = await world.operation(userId)
  const page = await session.get(`/operations/${operation.id}`)
  for (const { id } of [one, two]) expect(page.text).toContain(`<option value="${id}"`)
  expect((await session.post(`/operations/${operation.id}`, { action: 'qr' })).text).toContain('several active registrations')
  const shown = await session.post(`/operations/${operation.id}`, { action: 'qr', registrationId: two.id })
  expect(shown.text).toContain(`name="registrationId" value="${two.id}"`)
  expect((await session.post(`/registrations/${one.id}`, { action: 'block' })).status).toBe(303)
  const stateOf = async ({ id }: Device) =>
    member(expectOk(await world.bank.call('GET', `/v2/registrations/${id}`)).json, 'state')
  expect([await stateOf(one), await stateOf(two)]).toEqual(['BLOCKED', 'ACTIVE'])
  // One is left to choose from.
  expect((await session.get(`/operations/${operation.id}`)).text).not.toContain('<option value')
  const waiting = await bindDevice(world, userId)
  expect((await session.post(`/registrations/${waiting.id}`, { action: 'commit' })).status).toBe(303)
  expect(await stateOf({ ...one, ...waiting })).toBe('ACTIVE')
  const made = await session.post('/registrations/new', { action: 'create', newUserId: userId })
  const [, id = ''] = /registrations\/([0-9a-f-]{36})/.exec(String(made.headers['location'])) ?? []
  const { activationQrCodeData } = expectOk(await world.bank.call('GET', `/v2/registrations/${id}`)).json as Record<
    string,
    string
  >
  expect((await session.get(`/registrations/${id}`)).text).toContain(activationQrCodeData?.split('#')[0])
})

test('blocks, counters, tokens and push tokens of one phone leave the other one alone', async () => {
  const { userId, one, two } = await several()
  const push = async ({ phone, token }: Device, text: string) =>
    phone.send(await phone.prepareTokenCall('push', token, { platform: 'fcm', token: text }))
  const pushOf = (id?: string): Promise<HttpReply> =>
    world.bank.call('GET', `/push/registration?userId=${userId}${id === undefined ? '' : `&registrationId=${id}`}`)
  expectOk(await push(one, `one of ${userId}`))
  expect(expectOk(await pushOf()).json).toMatchObject({ activationId: one.id })
  expect(expectOk(await pushOf(two.id)).json).toEqual({})
  expectOk(await push(two, `two of ${userId}`))
  expectError(await pushOf(), 400, 'ERROR_REGISTRATION_CHANGE')
  expect(expectOk(await pushOf(one.id)).json).toMatchObject({ activationId: one.id, token: `one of ${userId}` })
  expect(expectOk(await pushOf(two.id)).json).toMatchObject({ activationId: two.id, token: `two of ${userId}` })

  const before = await readCounters(two.phone)
  for (let i = 0; i < 5; i += 1) await one.phone.send(one.phone.prepareValidation({ wrongKeys: WRONG_KEYS }))
  const stateOf = async (id: string) => member(expectOk(await world.bank.call('GET', `/v2/registrations/${id}`)).json, 'state')
  expect([await stateOf(one.id), await stateOf(two.id)]).toEqual(['BLOCKED', 'ACTIVE'])
  expect(await readCounters(two.phone)).toEqual(before)
  expect(await listed(two)).toEqual([])
  expectOk(await world.bank.call('DELETE', `/v2/registrations/${one.id}`))
  expectOk(await two.phone.send(two.phone.prepareValidation()))
  expect(await listed(two)).toEqual([])
  expect(expectOk(await pushOf()).json).toMatchObject({ activationId: two.id })
})

test('a provider and the API of the reference make further phones, and an erasure takes them all', async () => {
  const { userId, one } = await several()
  provider.answerWith(() => ({ body: { userId, commit: true } }))
  const phone = world.newPhone('3.2')
  await phone.exchange(await phone.prepareActivation('', { layer1: { type: 'DIRECT', identityAttributes: { login: 'x' } } }))
  expectOk(await phone.send(phone.prepareValidation()))
  const { applicationId } = world
  const made = await askReference(world.bank, 'v3', 'activation/init', { userId, applicationId })
  const activationId = made['activationId']
  expect(await askReference(world.bank, 'v3', 'activation/status', { activationId })).toMatchObject({
    activationStatus: 'CREATED',
    activationCode: made['activationCode'],
  })
  expectOk(await callReference(world.bank, 'v3', 'activation/block', { activationId: one.id }))
  const operation = await world.operation(userId)
  expect(await eraseUser(world.contexts[0] as never, userId)).toMatchObject({ registrations: 4, operations: 1 })
  expect((await phone.send(phone.prepareValidation())).status).toBe(401)
  expectError(await world.bank.readOperation(operation.id), 400, 'ERROR_OPERATION_NOT_FOUND')
})

test('a path that names a user makes no second registration, however many requests come at once', async () => {
  const userId = world.newUser()
  const replies = await Promise.all(Array.from({ length: 6 }, () => world.bank.register(userId)))
  expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 400, 400, 400, 400, 400])
  for (const reply of replies.filter(({ status }) => status === 400)) expectError(reply, 400, 'ERROR_REGISTRATION')
})

describe('the setting', () => {
  const settingOf = async (id: string) =>
    member(expectOk(await world.bank.call('GET', `/admin/applications/${id}`)).json, 'responseObject', 'isMultiDevice')
  const slotsOf = async (userId: string) => {
    const rows = await world.db.selectFrom('activation').select('device_slot').where('user_id', '=', userId).execute()
    return rows.map(({ device_slot }) => device_slot)
  }

  test('is off at first, and what it is is recorded', async () => {
    const id = `setting-${world.newUser()}`
    expectOk(await world.bank.createApplication(id))
    expect(await settingOf(id)).toBe(false)
    expectOk(await setMultiDevice(world.bank, id, true))
    expect(await settingOf(id)).toBe(true)
    expectError(await world.bank.call('PATCH', `/admin/applications/${id}`, { isMultiDevice: null }), 400, 'ERROR_REQUEST')
    const { json } = expectOk(await world.bank.call('GET', '/admin/audit?limit=1'))
    expect(member(json, 'items', '0')).toMatchObject({
      target: `application ${id}`,
      before: { isMultiDevice: false },
      after: { isMultiDevice: true },
    })
  })

  test('is not taken back while a user has several, and holds at once then', async () => {
    const { bank } = await world.openSide()
    const id = (bank.credential ?? '').split(':')[0] ?? ''
    const off = (): Promise<HttpReply> => setMultiDevice(world.bank, id, false)
    const userId = world.newUser()
    // Made while there was to be one, and kept so.
    const first = String(member(expectOk(await createFurther(bank, userId)).json, 'registrationId'))
    expectOk(await setMultiDevice(world.bank, id, true))
    const second = String(member(expectOk(await createFurther(bank, userId)).json, 'registrationId'))
    expect((await slotsOf(userId)).toSorted()).toEqual(['', second])
    const refused = await off()
    expectError(refused, 400, 'ERROR_ADMIN')
    expect(violated(refused)).toBe('isMultiDevice')
    expect(refused.text).toContain(userId)
    expect(world.log()).not.toContain(userId)
    expect(await settingOf(id)).toBe(true)
    expectOk(await bank.call('DELETE', `/v2/registrations/${first}`))
    expectOk(await off())
    expect(await slotsOf(userId)).toEqual(['', ''])
    expectError(await createFurther(bank, userId), 400, 'ERROR_REGISTRATION')
    // Those that have run out are none.
    expectOk(await setMultiDevice(world.bank, id, true))
    expectOk(await createFurther(bank, userId))
    await world.advance(6 * MINUTE)
    expectOk(await off())
    expectOk(await bank.register(userId))
  })

  test('says of a provider whether its user may have another phone', async () => {
    const { bank, app } = await world.openSide()
    const id = (bank.credential ?? '').split(':')[0] ?? ''
    const userId = world.newUser()
    provider.answerWith(() => ({ body: { userId, commit: true } }))
    const activate = async (): Promise<HttpReply> => {
      const phone = world.newPhone('3.2', { app })
      return phone.send(await phone.prepareActivation('', { layer1: { type: 'DIRECT', identityAttributes: { login: 'x' } } }))
    }
    expectOk(await activate())
    expectError(await activate(), 400, 'ERR_ACTIVATION')
    expectOk(await setMultiDevice(world.bank, id, true))
    expectOk(await activate())
    expectOk(await createFurther(bank, userId))
    expect(await bindDevice({ ...world, bank, newPhone: (version) => world.newPhone(version, { app }) }, userId)).toMatchObject({
      id: expect.any(String),
    })
  })
})
