// /v2/operations: what is asked of one device, of devices with a flag, or of whoever claims it (cloud §6.10).
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { HttpReply } from '../../../phone/http.ts'
import { member } from '../../../phone/http.ts'
import { exportAudit } from '../../../src/domain/audit/lines.ts'
import { verifyAudit } from '../../../src/domain/audit/verification.ts'
import { sealAll } from '../../helpers/audit.ts'
import type { Bank } from '../../helpers/bank.ts'
import { addDevice, bindDevice, setMultiDevice } from '../../helpers/devices.ts'
import { expectError, HOUR, MINUTE, SECOND } from '../../helpers/expectations.ts'
import { type Holder, type OperationWorld, PAYMENT, PAYMENT_DATA, startOperationWorld } from '../../helpers/operation-world.ts'
import { openPhonesV4 } from '../../helpers/world-v4.ts'
import { expectOk } from '../../helpers/world.ts'

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000'

let world: OperationWorld
let template: string
let holder: Holder
beforeAll(async () => {
  world = await startOperationWorld()
  template = await world.template()
  holder = await world.holder()
})
afterAll(() => world.close())

const idOf = ({ phone }: Pick<Holder, 'phone'>): string => phone.state.activationId
const now = (): number => world.contexts[0]?.platform.now() ?? 0
const create = (body: object, headers?: Readonly<Record<string, string>>, bank: Bank = world.bank): Promise<HttpReply> =>
  bank.createDeviceOperation({ template, parameters: PAYMENT, ...body }, headers)
const read = (id: unknown, bank: Bank = world.bank): Promise<HttpReply> => bank.call('GET', `/v2/operations/${String(id)}`)
const OF_NOBODY = { userId: null, activationId: '' }
/** The rows of the audit log about an operation, also those of no user. */
const told = async (id: string): Promise<unknown> => {
  const { rows } = await sql`
    select event_type as "eventType", user_id as "userId", activation_id as "activationId", verified_by as "verifiedBy"
    from audit_trail where event_data like ${`%${id}%`} order by occurred_at, sequence`.execute(world.db)
  return rows
}
const operationIdOf = (reply: HttpReply): string => String(member(expectOk(reply).json, 'operationId'))

describe('POST /v2/operations', () => {
  test('without any of its members is POST /operations, and is read there and here', async () => {
    const { userId } = holder
    const reply = expectOk(await create({ userId, externalId: 'transfer 7', language: 'cs' }))
    expect(reply.json).toEqual({
      operationId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      userId,
      status: 'PENDING',
      template,
      operationType: 'authorize_payment',
      parameters: PAYMENT,
      failureCount: 0,
      maxFailureCount: 5,
      timestampCreated: expect.any(Number),
      timestampExpires: expect.any(Number),
    })
    const id = operationIdOf(reply)
    expect(expectOk(await read(id)).json).toEqual(reply.json)
    expect(expectOk(await world.bank.readOperation(id)).json).toEqual(reply.json)
  })

  test('tells the device, the flag and the end that it was given, here alone', async () => {
    const [{ userId }, expiresAt] = [holder, now() + HOUR]
    const body = { userId, registrationId: idOf(holder).toUpperCase(), applicationFlag: 'VIP', expiresAt }
    const reply = expectOk(await create(body))
    const limits = { registrationId: idOf(holder), applicationFlag: 'VIP' }
    expect(reply.json).toMatchObject({ userId, ...limits, timestampExpires: expiresAt })
    const id = operationIdOf(reply)
    expect(expectOk(await read(id.toUpperCase())).json).toEqual(reply.json)
    const older = expectOk(await world.bank.readOperation(id)).json
    expect(older).toMatchObject({ userId, timestampExpires: expiresAt })
    expect({ ...(older as object), ...limits }).toEqual(reply.json)
    const search = await world.bank.call('GET', `/admin/applications/test-app/operations?userId=${userId}&limit=1`)
    expect(member(expectOk(search).json, 'operations')).toEqual([expect.objectContaining({ operationId: id, ...limits })])
  })

  test('without a user is for whoever claims it, and in nobody’s log until then', async () => {
    const reply = expectOk(await create({}))
    expect(reply.json).not.toHaveProperty('userId')
    const id = operationIdOf(reply)
    expect(expectOk(await read(id)).json).toEqual(reply.json)
    expect(await world.stored(id)).toMatchObject({ status: 'PENDING', userId: null, data: PAYMENT_DATA })
    expectOk(await world.bank.cancelOperation(id))
    expect(expectOk(await read(id)).json).toMatchObject({ status: 'CANCELED' })
    expect(await told(id)).toEqual([
      { eventType: 'operation_created', ...OF_NOBODY, verifiedBy: expect.any(String) },
      { eventType: 'operation_canceled', ...OF_NOBODY, verifiedBy: expect.any(String) },
    ])
    const own = operationIdOf(await create({ registrationId: idOf(holder) }))
    expectOk(await world.bank.cancelOperation(own))
    const ofHolder = { userId: holder.userId, activationId: idOf(holder), verifiedBy: expect.any(String) }
    expect(await told(own)).toEqual([
      { eventType: 'operation_created', ...ofHolder },
      { eventType: 'operation_canceled', ...ofHolder },
    ])
  })

  test('without a user is in the log of who claims it from the claim on, sealed like all others', async () => {
    const { userId, phone, token } = holder
    const [claimed, own] = [operationIdOf(await create({})), operationIdOf(await create({ registrationId: idOf(holder) }))]
    for (const id of [claimed, own]) {
      expectOk(await phone.send(await phone.prepareTokenCall('claim', token, { id })))
      const before = { eventType: 'operation_created', ...(id === own ? { userId, activationId: idOf(holder) } : OF_NOBODY) }
      expect(await told(id)).toEqual([
        { ...before, verifiedBy: expect.any(String) },
        { eventType: 'operation_claimed', userId, activationId: idOf(holder), verifiedBy: null },
      ])
      const log = expectOk(await world.bank.call('GET', `/audit/log?userId=${userId}`)).json as {
        items: { eventType: string; eventData: string }[]
      }
      const items = log.items.filter(({ eventData }) => eventData.includes(id))
      expect(items.map(({ eventType }) => eventType)).toEqual(
        id === own ? ['operation_claimed', 'operation_created'] : ['operation_claimed'],
      )
      for (const { eventData } of items)
        expect(JSON.parse(eventData)).toEqual({ operationId: id, template, operationType: 'authorize_payment' })
    }
    for (const context of world.contexts) await sealAll(context)
    const [context] = world.contexts
    const lines: string[] = []
    if (context !== undefined) await exportAudit(context, [], (line) => lines.push(line))
    expect(context && (await verifyAudit(context)).isIntact).toBe(true)
    const exported = lines.map((line) => JSON.parse(line) as { eventType?: string; eventData?: string; [name: string]: unknown })
    const [created] = exported.filter(
      ({ eventType, eventData }) => eventType === 'operation_created' && eventData?.includes(claimed),
    )
    expect(created).toMatchObject({ chain: 'application:test-app', userId: null, activationId: '' })
  })

  test('writes the row of its creation for the device that it names', async () => {
    const id = operationIdOf(await create({ userId: holder.userId, registrationId: idOf(holder) }))
    const rows = world.db.selectFrom('audit_trail').select('activation_id').where('event_data', 'like', `%${id}%`)
    expect(await rows.execute()).toEqual([{ activation_id: idOf(holder) }])
  })

  test.each<[string, object]>([
    ['a device that is no UUID', { registrationId: 'phone' }],
    ['a device that is a number', { registrationId: 7 }],
    ['a flag in small letters', { applicationFlag: 'vip' }],
    ['a flag with a comma', { applicationFlag: 'A,B' }],
    ['an empty flag', { applicationFlag: '' }],
    ['an end that is a text', { expiresAt: '2030-01-01' }],
    ['an end between two milliseconds', { expiresAt: 1.5 }],
    ['an end in another era', { expiresAt: 253_402_300_800_000 }],
    ['an end that is past', { expiresAt: 1_000 }],
    ['an empty user', { userId: '' }],
    ['no template', { template: undefined }],
    ['a template that there is not', { template: 'none' }],
    ['too few parameters', { parameters: {} }],
  ])('with %s is refused, and stores nothing', async (_, change) => {
    const stored = () => world.db.selectFrom('operation').select('operation_id').execute()
    const before = await stored()
    expectError(await create({ userId: holder.userId, ...change }), 400, 'ERROR_REQUEST')
    expect(await stored()).toEqual(before)
  })

  test('takes null for what is not said', async () => {
    const nothing = { registrationId: null, applicationFlag: null, expiresAt: null, externalId: null, language: null }
    const { json } = expectOk(await create({ userId: null, ...nothing }))
    for (const name of ['userId', 'registrationId', 'applicationFlag']) expect(json).not.toHaveProperty(name)
  })

  test('for a device that is not an ACTIVE one of this user and application is refused alike', async () => {
    const { userId } = holder
    const other = await world.holder()
    const side = await world.openSide()
    const elsewhere = await world.holder('3.2', {}, side)
    const refused = async (body: object) => expectError(await create(body), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    for (const registrationId of [UNKNOWN_ID, idOf(other), idOf(elsewhere)]) await refused({ userId, registrationId })
    // Without a user too, where it names a device.
    for (const registrationId of [UNKNOWN_ID, idOf(elsewhere)]) await refused({ registrationId })
    await refused({ userId: world.newUser() })
    expectOk(await world.bank.change(other.userId, 'BLOCK'))
    await refused({ userId: other.userId, registrationId: idOf(other) })
    await refused({ registrationId: idOf(other) })
    expectOk(await world.bank.change(other.userId, 'UNBLOCK'))
    expectOk(await create({ userId: other.userId, registrationId: idOf(other) }))
    expectOk(await world.bank.remove(other.userId))
    await refused({ userId: other.userId, registrationId: idOf(other) })
  })

  test('refuses a user without registration before an end that is past', async () => {
    expectError(await create({ userId: world.newUser(), expiresAt: 1 }), 400, 'ERROR_REGISTRATION_NOT_FOUND')
  })

  test('never demands less than the template: its flag stays, and another one is refused', async () => {
    const { userId } = holder
    const flagged = await world.template({ activationFlag: 'TRUSTED' })
    expect(expectOk(await create({ userId, template: flagged })).json).toMatchObject({ applicationFlag: 'TRUSTED' })
    expectOk(await create({ userId, template: flagged, applicationFlag: 'TRUSTED' }))
    const reply = await create({ userId, template: flagged, applicationFlag: 'VIP' })
    expectError(reply, 400, 'ERROR_REQUEST')
    expect(member(reply.json, 'responseObject', 'violations')).toEqual([
      { fieldName: 'applicationFlag', invalidValue: 'VIP', hint: 'must be the flag that the template demands' },
    ])
  })

  test('with an Idempotency-Key is one operation, and each of its members counts', async () => {
    const { userId } = holder
    const expiresAt = now() + MINUTE
    const body = { userId, registrationId: idOf(holder), applicationFlag: 'VIP', expiresAt }
    const headers = { 'Idempotency-Key': 'device 1' }
    const first = expectOk(await create(body, headers))
    expect(expectOk(await create(body, headers)).text).toBe(first.text)
    for (const change of [{ registrationId: null }, { applicationFlag: 'VIQ' }, { expiresAt: expiresAt + 1 }, { userId: null }])
      expectError(await create({ ...body, ...change }, headers), 400, 'ERROR_REQUEST')
    // Also when its end is past by then.
    await world.advance(2 * MINUTE)
    expect(expectOk(await create(body, headers)).text).toBe(first.text)
    expectError(await create(body, { 'Idempotency-Key': 'device 2' }), 400, 'ERROR_REQUEST')
    // A key that was given back is free.
    expectOk(await create({ ...body, expiresAt: expiresAt + HOUR }, { 'Idempotency-Key': 'device 2' }))
  })

  test('with an Idempotency-Key of POST /operations and the same request is that operation', async () => {
    const { userId } = holder
    const headers = { 'Idempotency-Key': 'both paths' }
    const first = expectOk(await world.bank.createOperation({ userId, template, parameters: PAYMENT }, headers))
    expect(expectOk(await create({ userId }, headers)).json).toEqual(first.json)
  })

  test('an unclaimed one that is asked for again is shown as it was, though it is claimed', async () => {
    const headers = { 'Idempotency-Key': 'unclaimed' }
    const first = expectOk(await create({}, headers))
    const claim = await holder.phone.prepareTokenCall('claim', holder.token, { id: operationIdOf(first) })
    expectOk(await holder.phone.send(claim))
    expect(expectOk(await create({}, headers)).text).toBe(first.text)
    expect(expectOk(await read(operationIdOf(first))).json).toMatchObject({ userId: holder.userId })
  })

  test('ends at the time that it was given, sooner or later than the template says', async () => {
    const { userId } = await world.holder()
    const soon = operationIdOf(await create({ userId, expiresAt: now() + MINUTE }))
    const late = operationIdOf(await create({ userId, expiresAt: now() + HOUR }))
    await world.advance(MINUTE + SECOND)
    expect(expectOk(await read(soon)).json).toMatchObject({ status: 'EXPIRED' })
    await world.advance(30 * MINUTE)
    expect(expectOk(await read(late)).json).toMatchObject({ status: 'PENDING' })
    await world.advance(30 * MINUTE)
    expect(expectOk(await read(late)).json).toMatchObject({ status: 'EXPIRED' })
  })
})

describe('of two live phones of one user', () => {
  test('each is named alone, whatever the other one is, and the log has its creation for the one that is named', async () => {
    expectOk(await setMultiDevice(world.bank, world.applicationId, true))
    const userId = world.newUser()
    const [one, two] = [await addDevice(world, userId), await addDevice(world, userId)]
    const stranger = await addDevice(world, world.newUser())
    const idsOf = async (rows: Promise<{ activation_id: string }[]>) => (await rows).map((row) => row.activation_id)
    for (const { id: registrationId } of [one, two]) {
      const reply = expectOk(await create({ userId, registrationId }))
      expect(reply.json).toMatchObject({ userId, registrationId })
      const rows = world.db.selectFrom('audit_trail').select('activation_id')
      const named = rows.where('event_data', 'like', `%${operationIdOf(reply)}%`).execute() as Promise<
        { activation_id: string }[]
      >
      expect(await idsOf(named)).toEqual([registrationId])
      expectOk(await world.bank.cancelOperation(operationIdOf(reply)))
      const after = rows.where('event_data', 'like', `%${operationIdOf(reply)}%`).execute() as Promise<
        { activation_id: string }[]
      >
      expect(await idsOf(after)).toEqual([registrationId, registrationId])
    }
    expectError(await create({ userId, registrationId: stranger.id }), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    // Who is BLOCKED, PENDING_COMMIT or REMOVED is not asked, though a sibling could be.
    expectOk(await world.bank.call('PUT', `/v2/registrations/${one.id}`, { change: 'BLOCK' }))
    const waiting = await bindDevice(world, userId)
    for (const registrationId of [one.id, waiting.id])
      for (const user of [userId, null])
        expectError(await create({ userId: user, registrationId }), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expectOk(await create({ userId, registrationId: two.id }))
    expectOk(await create({ userId }))
  })

  test('an offline code for the one is never the other’s, named or not', async () => {
    expectOk(await setMultiDevice(world.bank, world.applicationId, true))
    const userId = world.newUser()
    const [one, two] = [await addDevice(world, userId), await addDevice(world, userId)]
    const id = operationIdOf(await create({ userId, registrationId: one.id }))
    const qrOf = (registrationId: string) =>
      world.bank.call('GET', `/operations/offline/qr?operationId=${id}${registrationId && `&registrationId=${registrationId}`}`)
    expectError(await qrOf(two.id), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    const qr = one.phone.scanOperation(String(member(expectOk(await qrOf('')).json, 'operationQrCodeData')))
    const type = (otp: string, registrationId?: string) =>
      world.bank.call('POST', '/operations/offline/otp', { operationId: id, nonce: qr.nonce, otp, registrationId })
    const otp = one.phone.computeOtp(qr)
    expectError(await type(otp, two.id), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expect(await world.stored(id)).toMatchObject({ status: 'PENDING', failureCount: 0 })
    expectOk(await type(otp))
    expect(await world.stored(id)).toMatchObject({ status: 'APPROVED', additionalData: { activationId: one.id } })
  })
})

test('a credential of another application knows neither operation nor device', async () => {
  const side = await world.openSide()
  const id = operationIdOf(await create({ userId: holder.userId, registrationId: idOf(holder) }))
  expectError(await read(id, side.bank), 400, 'ERROR_OPERATION_NOT_FOUND')
  expectError(await read(UNKNOWN_ID, side.bank), 400, 'ERROR_OPERATION_NOT_FOUND')
  for (const registrationId of [idOf(holder), UNKNOWN_ID])
    expectError(await create({ registrationId }, {}, side.bank), 400, 'ERROR_REGISTRATION_NOT_FOUND')
  // What nobody has claimed is claimed in its own application alone.
  const theirs = operationIdOf(await create({}, {}, side.bank))
  const claim = await holder.phone.prepareTokenCall('claim', holder.token, { id: theirs })
  expectError(await holder.phone.send(claim), 400, 'INVALID_OPERATION')
})

test('an id that is none is refused before it is looked for', async () => {
  expectError(await read('x'), 400, 'ERROR_REQUEST')
})

describe('without a connection', () => {
  const qrOf = async (id: string): Promise<string> =>
    String(member(expectOk(await world.bank.offlineQr(id)).json, 'operationQrCodeData'))

  test('an operation for one device has a QR code for that device, whose password approves it', async () => {
    const id = operationIdOf(await create({ userId: holder.userId, registrationId: idOf(holder) }))
    const qr = holder.phone.scanOperation(await qrOf(id))
    expectOk(await world.bank.offlineOtp(id, holder.phone.computeOtp(qr), qr.nonce))
    expect(await world.stored(id)).toMatchObject({
      status: 'APPROVED',
      additionalData: { activationId: idOf(holder), isOffline: true },
    })
  })

  test('one of 4.0 has one, too', async () => {
    const phonesV4 = await openPhonesV4(world)
    const { userId, phone } = await phonesV4.activePhone('EC_P384')
    const id = operationIdOf(await create({ userId, registrationId: phone.state.activationId }))
    const text = await qrOf(id)
    expect(phone.isPersonalized(text)).toBe(true)
    expect(() => holder.phone.scanOperation(text)).toThrow()
  })

  test('there is none while nobody has claimed it, or once its device is gone, whatever phone its user has then', async () => {
    expectError(await world.bank.offlineQr(operationIdOf(await create({}))), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    const { userId, phone } = await world.holder()
    const unclaimed = operationIdOf(await create({ registrationId: phone.state.activationId }))
    expectError(await world.bank.offlineQr(unclaimed), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    const id = operationIdOf(await create({ userId, registrationId: phone.state.activationId }))
    const qr = phone.scanOperation(await qrOf(id))
    expectOk(await world.bank.remove(userId))
    const next = world.newPhone('3.2')
    await next.activate((await world.register(userId)).code)
    expectOk(await world.bank.commit(userId))
    expectError(await world.bank.offlineQr(id), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expectError(await world.bank.offlineOtp(id, next.computeOtp(qr), qr.nonce), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expect(await world.stored(id)).toMatchObject({ status: 'PENDING', failureCount: 0 })
    expectOk(await world.bank.cancelOperation(id))
  })
})
