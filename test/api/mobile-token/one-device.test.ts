// An operation for one device is an unknown one for every other phone, whatever asks for it; and who may claim one (mobile-token §4, cloud §6.10).
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { HttpReply } from '../../../phone/http.ts'
import { member } from '../../../phone/http.ts'
import { random } from '../../../phone/v3/crypto.ts'
import type { PhoneV4, PhonesV4 } from '../../helpers/world-v4.ts'
import { openPhonesV4 } from '../../helpers/world-v4.ts'
import { readQrCode } from '../../helpers/bank.ts'
import { errorCode, expectError, readCounters } from '../../helpers/expectations.ts'
import { type Holder, type OperationWorld, PAYMENT, PAYMENT_DATA, startOperationWorld } from '../../helpers/operation-world.ts'
import { addDevice, createFurther, setMultiDevice } from '../../helpers/devices.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { expectOk } from '../../helpers/world.ts'

let world: OperationWorld
let phonesV4: PhonesV4
let template: string
beforeAll(async () => {
  world = await startOperationWorld({ env: { PAWL_MOBILE_READS_PER_MINUTE: '1000' } })
  phonesV4 = await openPhonesV4(world)
  template = await world.template()
})
afterAll(() => world.close())

/** Every way of a phone to an operation. */
interface Asks {
  readonly list: () => Promise<unknown[]>
  readonly history: () => Promise<unknown[]>
  readonly detail: (id: string) => Promise<HttpReply>
  readonly claim: (id: string) => Promise<HttpReply>
  readonly authorize: (id: string) => Promise<HttpReply>
  readonly authorizeWrongly: (id: string) => Promise<HttpReply>
  readonly reject: (id: string) => Promise<HttpReply>
}

const idsIn = (reply: HttpReply): unknown[] =>
  (member(expectOk(reply).json, 'responseObject') as { id: string }[]).map(({ id }) => id)

function asksOf({ phone, token }: Pick<Holder, 'phone' | 'token'>): Asks {
  const call = async (name: 'list' | 'detail' | 'claim', of?: object) => phone.send(await phone.prepareTokenCall(name, token, of))
  return {
    list: async () => idsIn(await call('list')),
    history: async () => idsIn(await phone.send(phone.prepareSignedCall('history'))),
    detail: (id) => call('detail', { id }),
    claim: (id) => call('claim', { id }),
    authorize: (id) => phone.send(phone.prepareAuthorize({ id, data: PAYMENT_DATA })),
    authorizeWrongly: (id) =>
      phone.send(phone.prepareAuthorize({ id, data: PAYMENT_DATA }, { wrongKeys: { knowledge: random(16) } })),
    reject: (id) => phone.send(phone.prepareReject(id)),
  }
}

/** The same of a phone of 4.0. */
async function asksOfV4(phone: PhoneV4): Promise<Asks> {
  const token = await phone.createToken('possession')
  const base = '/api/auth/token/app/operation'
  const ask = (path: string, requestObject: object, more: object = {}) =>
    phone.send(
      phone.prepareSigned({
        path: `${base}/${path}`,
        resourceId: `/operation/${path}`,
        body: JSON.stringify({ requestObject }),
        ...more,
      }),
    )
  const call = async (path: string, requestObject: object = {}) => {
    const headers = { ...phone.tokenHeader(token, await phone.serverTime()), 'Content-Type': 'application/json' }
    const body = Buffer.from(JSON.stringify({ requestObject }))
    return phone.send({ method: 'POST', path: `${base}/${path}`, headers, body, open: (reply: HttpReply) => reply })
  }
  return {
    list: async () => idsIn(await call('list')),
    history: async () => idsIn(await ask('history', {})),
    detail: (id) => call('detail', { id }),
    claim: (id) => call('detail/claim', { id }),
    authorize: (id) => ask('authorize', { id, data: PAYMENT_DATA }),
    authorizeWrongly: (id) => ask('authorize', { id, data: PAYMENT_DATA }, { wrongKeys: { knowledge: random(32) } }),
    reject: (id) => ask('cancel', { id }, { factors: 'possession' }),
  }
}

const create = async (body: object): Promise<string> =>
  String(member(expectOk(await world.bank.createDeviceOperation({ template, parameters: PAYMENT, ...body })).json, 'operationId'))
const idOf = ({ phone }: Pick<Holder, 'phone'>): string => phone.state.activationId

/** Expects that a phone is answered about an operation as about one that there is not, and that nothing becomes of it. */
async function expectUnknown(asks: Asks, id: string): Promise<void> {
  const before = await world.stored(id)
  expect(await asks.list()).not.toContain(id)
  expect(await asks.history()).not.toContain(id)
  for (const name of ['detail', 'claim', 'authorize', 'reject'] as const) {
    const [reply, ofNone] = [await asks[name](id), await asks[name](randomUUID())]
    expectError(reply, 400, 'INVALID_OPERATION')
    expect(reply.text).toBe(ofNone.text)
  }
  const [wrong, wrongOfNone] = [await asks.authorizeWrongly(id), await asks.authorizeWrongly(randomUUID())]
  expectError(wrong, 401, 'POWERAUTH_AUTH_FAIL')
  expect(wrong.text).toBe(wrongOfNone.text)
  expect(await world.stored(id)).toEqual(before)
}

test('the phone that an operation is for lists, shows and approves it, and to three others it is unknown', async () => {
  const [one, two, three] = [await world.holder('3.0'), await world.holder('3.2'), await world.holder('3.3')]
  const four = await phonesV4.activePhone('EC_P384')
  const id = await create({ userId: two.userId, registrationId: idOf(two) })
  for (const asks of [asksOf(one), asksOf(three), await asksOfV4(four.phone)]) await expectUnknown(asks, id)
  const own = asksOf(two)
  expect(await own.list()).toEqual([id])
  expect(member(expectOk(await own.detail(id)).json, 'responseObject', 'id')).toBe(id)
  expectError(await own.authorizeWrongly(id), 401, 'POWERAUTH_AUTH_FAIL')
  expect(await world.stored(id)).toMatchObject({ status: 'PENDING', failureCount: 1 })
  expectOk(await own.authorize(id))
  expect(await world.stored(id)).toMatchObject({ status: 'APPROVED', additionalData: { activationId: idOf(two) } })
  expect(await own.history()).toEqual([id])
  // Those who have guessed were counted, each for itself.
  expect(await readCounters(one.phone)).toMatchObject({ failedAttempts: 2 })
  expect(await readCounters(two.phone)).toMatchObject({ failedAttempts: 0 })
})

test('a phone of 4.0 that an operation is for approves or rejects it', async () => {
  const { userId, phone } = await phonesV4.activePhone('EC_P384')
  const asks = await asksOfV4(phone)
  const other = asksOf(await world.holder())
  const registrationId = phone.state.activationId
  const [first, second] = [await create({ userId, registrationId }), await create({ userId, registrationId })]
  for (const id of [first, second]) await expectUnknown(other, id)
  expect(await asks.list()).toEqual([second, first])
  expectOk(await asks.detail(first))
  expectOk(await asks.authorize(first))
  expectOk(await asks.reject(second))
  expect(await world.stored(first)).toMatchObject({ status: 'APPROVED' })
  expect(await world.stored(second)).toMatchObject({ status: 'REJECTED' })
})

test.each(PHONE_VERSIONS)('the next device of the same user, of %s, knows nothing of it', async (version) => {
  const old = await world.holder(version)
  const { userId } = old
  const id = await create({ userId, registrationId: idOf(old) })
  const open = await create({ userId })
  expect(await asksOf(old).list()).toEqual([open, id])
  expectOk(await world.bank.remove(userId))
  const phone = world.newPhone(version)
  await phone.activate((await world.register(userId)).code)
  expectOk(await world.bank.commit(userId))
  const next = asksOf({ phone, token: await phone.createToken('possession') })
  expect(await next.list()).toEqual([open])
  expect(await next.history()).toEqual([open])
  await expectUnknown(next, id)
  // Nor does the old one decide it any more.
  expectError(await asksOf(old).authorize(id), 401, 'POWERAUTH_AUTH_FAIL')
  expectOk(await next.authorize(open))
})

describe('of two live phones of one user', () => {
  /** One of 3.2 and one of 4.0, in an application that allows it. */
  async function siblings() {
    expectOk(await setMultiDevice(world.bank, world.applicationId, true))
    const userId = world.newUser()
    const old = await addDevice(world, userId)
    const reply = expectOk(await createFurther(world.bank, userId))
    const next = phonesV4.newPhone('EC_P384')
    await next.activate(readQrCode(reply).code)
    const id = String(member(reply.json, 'registrationId'))
    expectOk(await world.bank.call('POST', `/v2/registrations/${id}/commit`, {}))
    await next.exchange(next.prepareConfirm(true))
    return { userId, old: { id: old.id, asks: asksOf(old), phone: old.phone }, next: { id, asks: await asksOfV4(next) } }
  }

  test.each(['old', 'next'] as const)('the %s one alone is shown what is for it, and decides it', async (name) => {
    const { userId, ...both } = await siblings()
    const [own, other] = name === 'old' ? [both.old, both.next] : [both.next, both.old]
    const id = await create({ userId, registrationId: own.id })
    const open = await create({ userId })
    await expectUnknown(other.asks, id)
    expect(await own.asks.list()).toEqual([open, id])
    expect(await other.asks.list()).toEqual([open])
    expectOk(await own.asks.authorize(id))
    expect(await other.asks.history()).toEqual([open])
    expectOk(await other.asks.reject(open))
    expect(await world.stored(open)).toMatchObject({ status: 'REJECTED', additionalData: { activationId: other.id } })
    expectError(await own.asks.authorize(open), 400, 'OPERATION_ALREADY_FINISHED')
  })

  test('one claims for both what nobody has claimed, and for itself what is for it', async () => {
    const { old, next } = await siblings()
    const [open, id] = [await create({}), await create({ registrationId: next.id })]
    await expectUnknown(old.asks, id)
    expectOk(await old.asks.claim(open))
    expectOk(await next.asks.claim(open))
    expectOk(await next.asks.claim(id))
    await expectUnknown(old.asks, id)
    expect(await next.asks.list()).toEqual([id, open])
    expectOk(await next.asks.authorize(open))
  })

  test('one that is blocked or removed leaves what is for it, and the other one cannot take it', async () => {
    const { userId, old, next } = await siblings()
    const id = await create({ userId, registrationId: old.id })
    for (const change of ['BLOCK', 'REMOVE']) {
      expectOk(await world.bank.call('PUT', `/v2/registrations/${old.id}`, { change }))
      await expectUnknown(next.asks, id)
      expectError(await old.asks.authorize(id), 401, 'POWERAUTH_AUTH_FAIL')
      const refused = await world.bank.createDeviceOperation({ userId, template, parameters: PAYMENT, registrationId: old.id })
      expectError(refused, 400, 'ERROR_REGISTRATION_NOT_FOUND')
    }
    expect(await world.stored(id)).toMatchObject({ status: 'PENDING', failureCount: 0 })
    expectOk(await world.bank.cancelOperation(id))
  })

  test('a flag of one does not help the other', async () => {
    const { userId, old, next } = await siblings()
    expectOk(await world.bank.call('PUT', `/v2/registrations/${old.id}/flags`, { flags: ['VIP'] }))
    const id = await create({ userId, applicationFlag: 'VIP' })
    expectError(await next.asks.authorize(id), 400, 'OPERATION_REQUIRES_ACTIVATION_FLAG')
    expect(await world.stored(id)).toMatchObject({ status: 'PENDING', failureCount: 0 })
    expectOk(await old.asks.authorize(id))
  })
})

test('a phone of another application does not know it, nor one without a user', async () => {
  const holder = await world.holder()
  const stranger = asksOf(await world.holder('3.2', {}, await world.openSide()))
  for (const body of [{ userId: holder.userId, registrationId: idOf(holder) }, { registrationId: idOf(holder) }, {}])
    await expectUnknown(stranger, await create(body))
})

describe('a claim', () => {
  test('of what is for one device is that device’s alone', async () => {
    const [holder, other] = [await world.holder('3.3'), await world.holder('3.1')]
    const id = await create({ registrationId: idOf(holder) })
    await expectUnknown(asksOf(other), id)
    const own = asksOf(holder)
    expect(await own.list()).toEqual([])
    expectError(await own.authorize(id), 400, 'INVALID_OPERATION')
    expectOk(await own.detail(id))
    expectOk(await own.claim(id))
    expect(await own.list()).toEqual([id])
    await expectUnknown(asksOf(other), id)
    expectOk(await own.authorize(id))
  })

  test('of one with a flag is for a device that has it: who could not approve leaves it to others', async () => {
    const [without, unverified, holder] = [await world.holder(), await world.holder(), await world.holder()]
    await world.setFlags(unverified, 'VIP,VERIFICATION_PENDING')
    await world.setFlags(holder, 'OTHER,VIP')
    const id = await create({ applicationFlag: 'VIP' })
    for (let round = 0; round < 2; round += 1) {
      expectError(await asksOf(without).claim(id), 400, 'OPERATION_REQUIRES_ACTIVATION_FLAG')
      expectError(await asksOf(unverified).claim(id), 401, 'POWERAUTH_AUTH_FAIL')
      expect(await world.stored(id)).toMatchObject({ userId: null, status: 'PENDING', failureCount: 0 })
    }
    expectOk(await asksOf(holder).claim(id))
    expectError(await asksOf(without).claim(id), 400, 'INVALID_OPERATION')
    expectOk(await asksOf(holder).authorize(id))
  })

  test('of one that the template’s flag guards is the same', async () => {
    const [without, holder] = [await world.holder(), await world.holder()]
    await world.setFlags(holder, 'TRUSTED')
    const id = await create({ template: await world.template({ activationFlag: 'TRUSTED' }) })
    expectError(await asksOf(without).claim(id), 400, 'OPERATION_REQUIRES_ACTIVATION_FLAG')
    expectOk(await asksOf(holder).claim(id))
  })

  test('of one that biometry alone approves is not for a phone that has none', async () => {
    const biometric = await world.template({ signatureTypes: ['possession_biometry'] })
    const without = await asksOfV4((await phonesV4.activePhone('EC_P384', { enableBiometry: false })).phone)
    const holder = await asksOfV4((await phonesV4.activePhone('EC_P384')).phone)
    const id = await create({ template: biometric })
    expectError(await without.claim(id), 400, 'INVALID_OPERATION')
    expect(await world.stored(id)).toMatchObject({ userId: null })
    expectOk(await holder.claim(id))
    // What knowledge approves as well is for both.
    expectOk(await without.claim(await create({})))
  })
})

test('a flag that is demanded is demanded of the approval, and a rejection needs none', async () => {
  const holder = await world.holder()
  const asks = asksOf(holder)
  const { userId } = holder
  const [first, second] = [await create({ userId, applicationFlag: 'VIP' }), await create({ userId, applicationFlag: 'VIP' })]
  expectError(await asks.authorize(first), 400, 'OPERATION_REQUIRES_ACTIVATION_FLAG')
  expect(await world.stored(first)).toMatchObject({ status: 'PENDING', failureCount: 0 })
  expectOk(await asks.reject(second))
  await world.setFlags(holder, 'VIP')
  expectOk(await asks.authorize(first))
})

test('failed attempts are of each device, and failures of the operation are of those that may decide it', async () => {
  const [holder, other] = [await world.holder(), await world.holder()]
  const id = await create({ userId: holder.userId, registrationId: idOf(holder) })
  for (let i = 0; i < 2; i += 1) await asksOf(other).authorizeWrongly(id)
  for (let i = 0; i < 3; i += 1) expect(errorCode(await asksOf(holder).authorizeWrongly(id))).toBe('POWERAUTH_AUTH_FAIL')
  expect(await world.stored(id)).toMatchObject({ status: 'PENDING', failureCount: 3 })
  expect(await readCounters(holder.phone)).toMatchObject({ failedAttempts: 3 })
  expect(await readCounters(other.phone)).toMatchObject({ failedAttempts: 2 })
})
