// A writer of the database moves authority by plain columns: a bound phone to another user or application, a token to another phone, a code to
// another registration. What is sealed in the row is bound to whose it was, so it opens nothing (docs/SECURITY-MODEL.md).
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectError, expectRefused, readCounters } from '../../helpers/expectations.ts'
import { type Holder, type OperationWorld, startOperationWorld, type TestOperation } from '../../helpers/operation-world.ts'
import { openPhonesV4, type PhonesV4 } from '../../helpers/world-v4.ts'
import { expectOk } from '../../helpers/world.ts'
import { readQrCode } from '../../helpers/bank.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { type HttpReply, sendJson } from '../../../phone/http.ts'
import { expectRefusedV4 } from '../../helpers/refusals-v4.ts'
import { SIGNED_CALLS } from '../../../phone/operations.ts'
import { createPhone } from '../../../phone/v3/virtual-phone.ts'

let world: OperationWorld
let four: PhonesV4
beforeAll(async () => {
  world = await startOperationWorld({ env: { PAWL_MOBILE_READS_PER_MINUTE: '1000' } })
  four = await openPhonesV4(world)
})
afterAll(() => world.close())

const set = async (table: string, column: string, value: unknown, key: string, id: string): Promise<void> => {
  await sql`update ${sql.table(table)} set ${sql.ref(column)} = ${value} where ${sql.ref(key)} = ${id}`.execute(world.db)
}
const setActivation = (id: string, column: string, value: unknown) => set('activation', column, value, 'activation_id', id)
const setToken = (id: string, column: string, value: unknown) => set('token', column, value, 'token_id', id)
const readActivation = async (id: string) =>
  world.db.selectFrom('activation').selectAll().where('activation_id', '=', id).executeTakeFirstOrThrow()

/** The phone of `own` becomes that of the victim, whose registration goes. */
async function move(own: string, victim: { readonly userId: string; readonly activationId: string }): Promise<void> {
  await setActivation(victim.activationId, 'state', 'REMOVED')
  await setActivation(own, 'user_id', victim.userId)
}

const victimOf = ({ userId, phone }: Pick<Holder, 'userId'> & { phone: { state: { activationId: string } } }) => ({
  userId,
  activationId: phone.state.activationId,
})

async function expectUntouched({ id }: TestOperation, replies: readonly HttpReply[]): Promise<void> {
  expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 401))
  expect(await world.stored(id)).toMatchObject({ status: 'PENDING', failureCount: 0 })
  expect(await world.audit(id)).toEqual([])
}

const listOf = async ({ phone, token }: Holder): Promise<HttpReply> => phone.send(await phone.prepareTokenCall('list', token))

describe.each(PHONE_VERSIONS)('a phone of %s that is moved to the victim', (version) => {
  test.each([
    ['a phone that this process has not seen', 0],
    ['a remembered phone', 2],
  ])('approves nothing: %s', async (_, codes) => {
    const [own, victim] = [await world.holder(version), await world.holder(version)]
    const payment = await world.operation(victim.userId)
    for (let i = 0; i < codes; i += 1) await own.phone.exchange(own.phone.prepareValidation())
    await move(own.phone.state.activationId, victimOf(victim))
    const replies = []
    for (let i = 0; i < 3; i += 1) replies.push(await own.phone.send(own.phone.prepareAuthorize(payment)))
    replies.push(await own.phone.send(own.phone.prepareValidation()), await listOf(own))
    await expectUntouched(payment, replies)
    // Put back, it is what it was.
    await setActivation(own.phone.state.activationId, 'user_id', own.userId)
    await own.phone.exchange(own.phone.prepareValidation())
  })
})

test.each(['EC_P384', 'EC_P384_ML_L3'] as const)('a phone of 4.0 in %s that is moved approves nothing', async (algorithm) => {
  const [own, victim] = [await four.activePhone(algorithm), await world.holder()]
  const payment = await world.operation(victim.userId)
  const [{ id, data }, [path, resourceId]] = [payment, SIGNED_CALLS.authorize]
  const body = JSON.stringify({ requestObject: { id, data } })
  const approve = () => own.phone.send(own.phone.prepareSigned({ path, resourceId, body }))
  await own.phone.exchange(own.phone.prepareValidation())
  await move(own.phone.state.activationId, victimOf(victim))
  await expectUntouched(payment, [await approve(), await approve()])
  // The same request is an approval for the owner.
  await setActivation(own.phone.state.activationId, 'user_id', own.userId)
  await set('operation', 'user_id', own.userId, 'operation_id', id)
  expectOk(await approve())
})

test.each([
  ['a phone that this process has not seen', 0],
  ['a remembered phone', 2],
])('a phone that is moved to another application approves nothing of the user of that name: %s', async (_, codes) => {
  const side = await world.openSide()
  const own = await world.holder('3.3')
  const { userId, phone } = own
  const there = createPhone({ url: world.url, app: side.app, version: '3.3' })
  await there.activate(readQrCode(await side.bank.register(userId)).code)
  expectOk(await side.bank.commit(userId))
  const payment = await world.operation(userId, {}, side.bank)
  for (let i = 0; i < codes; i += 1) await phone.exchange(phone.prepareValidation())
  const { application_id: other } = await world.db
    .selectFrom('operation')
    .select('application_id')
    .where('operation_id', '=', payment.id)
    .executeTakeFirstOrThrow()
  await setActivation(there.state.activationId, 'state', 'REMOVED')
  await setActivation(phone.state.activationId, 'application_id', other)
  // With the app of that application as well, whose keys are in every copy of it.
  const elsewhere = createPhone({ url: world.url, app: side.app, version: '3.3' })
  Object.assign(elsewhere.state, phone.state)
  const replies = [
    await phone.send(phone.prepareAuthorize(payment)),
    await elsewhere.send(elsewhere.prepareAuthorize(payment)),
    await listOf(own),
  ]
  await expectUntouched(payment, replies)
})

describe('a token', () => {
  test('that is moved to the phone of the victim reads nothing', async () => {
    const [own, victim] = [await world.holder(), await world.holder()]
    await world.operation(victim.userId)
    await setToken(own.token.id, 'activation_id', victim.phone.state.activationId)
    expect((await listOf(own)).status).toBe(401)
    expectOk(await listOf(victim))
  })

  test.each(['POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY', 'POSSESSION_KNOWLEDGE_BIOMETRY'])(
    'of possession that says it was made with %s is refused',
    async (factors) => {
      const own = await world.holder()
      expectOk(await listOf(own))
      await setToken(own.token.id, 'factors', factors)
      expect((await listOf(own)).status).toBe(401)
    },
  )

  test('whose phone is moved to another application reads nothing', async () => {
    const own = await world.holder()
    await world.openSide()
    const others = await world.db.selectFrom('application').select('application_id').where('is_default', '=', false).execute()
    await setActivation(own.phone.state.activationId, 'application_id', others[0]?.application_id)
    expect((await listOf(own)).status).toBe(401)
  })
})

describe('a registration that waits for its phone', () => {
  const idOf = async (userId: string): Promise<string> =>
    (
      await world.db
        .selectFrom('activation')
        .select('activation_id')
        .where('user_id', '=', userId)
        .where('state', '=', 'CREATED')
        .executeTakeFirstOrThrow()
    ).activation_id

  /** Phones of both generations come with the code; neither is bound. */
  async function expectNotBound(code: string, activationId: string): Promise<void> {
    for (const phone of [world.newPhone('3.3'), world.newPhone('3.1'), four.newPhone('EC_P384')])
      await expect(phone.activate(code)).rejects.toThrow('400')
    expect(await readActivation(activationId)).toMatchObject({ state: 'CREATED', device_public_key: null })
  }

  test('is not bound once it is moved to the victim', async () => {
    const [own, victim] = [await world.register(), world.newUser()]
    const id = await idOf(own.userId)
    await setActivation(id, 'user_id', victim)
    await expectNotBound(own.code, id)
    await setActivation(id, 'user_id', own.userId)
    await world.newPhone('3.3').activate(own.code)
  })

  test('is not bound by the code of another registration', async () => {
    const [own, victim] = [await world.register(), await world.register()]
    const [ownId, victimId] = [await idOf(own.userId), await idOf(victim.userId)]
    const { activation_code_hash: hash } = await readActivation(ownId)
    await setActivation(ownId, 'activation_code_hash', Buffer.from('another'))
    await setActivation(victimId, 'activation_code_hash', hash)
    await expectNotBound(own.code, victimId)
  })

  test('is not made of one that had a phone', async () => {
    const [own, victim] = [await world.register(), await world.holder()]
    const [ownId, victimId] = [await idOf(own.userId), victim.phone.state.activationId]
    const { activation_code_hash: hash } = await readActivation(ownId)
    await setActivation(ownId, 'activation_code_hash', Buffer.from('one more'))
    await setActivation(victimId, 'activation_code_hash', hash)
    await setActivation(victimId, 'state', 'CREATED')
    await expect(world.newPhone('3.3').activate(own.code)).rejects.toThrow('400')
    await expect(four.newPhone('EC_P384').activate(own.code)).rejects.toThrow('400')
    expect(await readActivation(victimId)).toMatchObject({ state: 'CREATED' })
  })

  test('does not show its code to another user', async () => {
    const [own, victim] = [world.newUser(), await world.register()]
    await setActivation(await idOf(victim.userId), 'user_id', own)
    const { json } = expectOk(await world.bank.view(own))
    expect(json).toMatchObject({ registration: 'CREATED', activationQrCodeData: '' })
  })
})

test('a temporary key that was altered opens nothing', async () => {
  const { phone } = await world.activePhone('3.3')
  const request = await phone.prepareUserInfo()
  await set('temporary_key', 'private_key', Buffer.alloc(60), 'activation_id', phone.state.activationId)
  expectRefused(await phone.send(request), 'encryption')
})

test('where pushes reach a phone that was moved is not told', async () => {
  const [own, victim] = [await world.holder(), await world.holder()]
  const registration = { platform: 'apns', environment: 'production', token: 'a token of pushes' }
  expectOk(await own.phone.send(await own.phone.prepareTokenCall('push', own.token, registration)))
  const read = async (userId: string) =>
    expectOk(await world.bank.call('GET', `/push/registration?userId=${userId}`)).json as Record<string, unknown>
  expect(await read(own.userId)).toMatchObject({ token: 'a token of pushes' })
  await move(own.phone.state.activationId, victimOf(victim))
  expect(await read(victim.userId)).toEqual({})
})

test('a push token that was altered counts as none, and the log says what was altered', async () => {
  const { phone, token, userId } = await world.holder()
  const { activationId } = phone.state
  expectOk(await phone.send(await phone.prepareTokenCall('push', token, { platform: 'fcm', token: 'a token of pushes' })))
  await set('push_registration', 'push_token', Buffer.alloc(60), 'activation_id', activationId)
  expect(expectOk(await world.bank.call('GET', `/push/registration?userId=${userId}`)).json).toEqual({})
  expect(world.log()).toContain(`push_registration.push_token of ${activationId}`)
})

test('the status of a moved phone tells nothing, and the log says what was moved', async () => {
  const [own, victim] = [await world.holder('3.3'), await world.holder()]
  const before = await readCounters(own.phone)
  await move(own.phone.state.activationId, victimOf(victim))
  await expect(readCounters(own.phone)).rejects.toThrow()
  expect(world.log()).toContain(`activation.master_secret of ${own.phone.state.activationId}`)
  await setActivation(own.phone.state.activationId, 'user_id', own.userId)
  expect(await readCounters(own.phone)).toEqual(before)
})

test('a phone whose counter was altered is refused, and the log says what was altered', async () => {
  const { phone } = await world.activePhone('3.3')
  const { activationId } = phone.state
  const { ctr_data: before } = await readActivation(activationId)
  await setActivation(activationId, 'ctr_data', Buffer.from('altered'))
  const request = phone.prepareValidation()
  expectRefused(await phone.send(request), 'signature')
  await expect(readCounters(phone)).rejects.toThrow()
  expect(world.log()).toContain(`activation.ctr_data of ${activationId}`)
  expect(await readActivation(activationId)).toMatchObject({ state: 'ACTIVE', failed_attempts: 0 })
  // Put back, it is what it was: nothing was counted.
  await setActivation(activationId, 'ctr_data', before)
  expectOk(await phone.send(request))
})

test('a phone of 4.0 whose counter was altered is told no status', async () => {
  const { phone } = await four.activePhone('EC_P384')
  await setActivation(phone.state.activationId, 'ctr_data', Buffer.from('altered'))
  await expect(phone.readStatus()).rejects.toThrow('400')
})

test('a server key that was altered opens no envelope, and signs neither a temporary key nor a QR code', async () => {
  const [early, late] = [await world.activePhone('3.1'), await world.activePhone('3.3')]
  for (const { phone } of [early, late])
    await setActivation(phone.state.activationId, 'server_private_key', Buffer.from('altered'))
  expectRefused(await early.phone.send(await early.phone.prepareUserInfo()), 'encryption')
  await expect(late.phone.createToken()).rejects.toThrow('ERR_TEMPORARY_KEY')
  const { id } = await world.operation(late.userId)
  expectError(await world.bank.offlineQr(id), 400, 'ERROR_REGISTRATION_NOT_FOUND')
})

const STATUS = '/pa/v3/activation/status'
const KEYSTORE = '/pa/v3/keystore/create'

describe('a row that names another protocol version than its keys are of', () => {
  test('is refused as 4.0 where the phone is one of 3.x, and the log says what was altered', async () => {
    const { userId, phone } = await world.activePhone('3.3')
    const { activationId } = phone.state
    const { phone: other } = await four.activePhone('EC_P384')
    other.state.activationId = activationId
    await setActivation(activationId, 'protocol_version', 4)
    await setActivation(activationId, 'algorithm', 'EC_P384')
    expectRefusedV4(await other.send(other.prepareValidation()), 'code')
    await expect(other.fetchTemporaryKey('activation')).rejects.toThrow('ERR_TEMPORARY_KEY')
    const { id } = await world.operation(userId)
    expectError(await world.bank.offlineQr(id), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expect(world.log()).toContain(`activation.master_secret of ${activationId}`)
    expect(await readActivation(activationId)).toMatchObject({ state: 'ACTIVE', failed_attempts: 0 })
    await setActivation(activationId, 'protocol_version', 3)
    expectOk(await phone.send(phone.prepareValidation()))
  })

  test('is refused as 3.x where the phone is one of 4.0, and its status is that of an unknown one', async () => {
    const { phone } = await four.activePhone('EC_P384')
    const { activationId } = phone.state
    const { phone: other } = await world.activePhone('3.3')
    other.state.activationId = activationId
    await setActivation(activationId, 'protocol_version', 3)
    expectRefused(await other.send(other.prepareValidation()), 'signature')
    expectOk(await sendJson(world.url, 'POST', STATUS, { requestObject: { activationId } }))
    await setActivation(activationId, 'protocol_version', 4)
    await phone.exchange(phone.prepareValidation())
  })

  test('or another algorithm, gets no temporary key', async () => {
    const { phone } = await four.activePhone('EC_P384')
    const { activationId } = phone.state
    const hybrid = phone.speaking({ algorithm: 'EC_P384_ML_L3' })
    await phone.fetchTemporaryKey('activation')
    await setActivation(activationId, 'algorithm', 'EC_P384_ML_L3')
    await expect(hybrid.fetchTemporaryKey('activation')).rejects.toThrow('ERR_TEMPORARY_KEY')
    await setActivation(activationId, 'algorithm', 'EC_P384')
    await phone.fetchTemporaryKey('activation')
  })
})

describe('what an application signs and hides with, once it was altered,', () => {
  const column = async (table: 'application_version' | 'master_key_pair', name: string): Promise<Buffer[]> =>
    (
      await sql<{ value: Buffer }>`select ${sql.ref(name)} as value from ${sql.table(table)}
        where application_id = ${world.applicationId} order by ${sql.ref(name)}`.execute(world.db)
    ).rows.map(({ value }) => value)
  const replace = async (table: string, name: string, from: readonly Buffer[], to: (value: Buffer) => Buffer) => {
    for (const value of from)
      await sql`update ${sql.table(table)} set ${sql.ref(name)} = ${to(value)} where ${sql.ref(name)} = ${value}`.execute(
        world.db,
      )
  }
  /** Runs `act` while each value is another one; the values are put back. */
  const whileAltered = async (table: 'application_version' | 'master_key_pair', name: string, act: () => Promise<void>) => {
    const altered = (value: Buffer) => Buffer.concat([value, Buffer.of(0)])
    const values = await column(table, name)
    await replace(table, name, values, altered)
    try {
      await act()
    } finally {
      await replace(table, name, values.map(altered), (value) => value.subarray(0, -1))
    }
  }

  test('refuses every phone: a secret', async () => {
    const [early, late] = [await world.activePhone('3.1'), await world.activePhone('3.3')]
    const { phone } = await four.activePhone('EC_P384')
    const key = await phone.fetchTemporaryKey('activation')
    const [old, code] = [await early.phone.prepareUserInfo(), late.phone.prepareValidation()]
    const info = await phone.prepareUserInfo({ temporaryKey: key })
    await whileAltered('application_version', 'application_secret', async () => {
      expectRefused(await early.phone.send(old), 'encryption')
      expectRefused(await late.phone.send(code), 'signature')
      expectRefusedV4(await phone.send(info), 'encryption')
      for (const scope of ['application', 'activation'] as const)
        expectRefused(await sendJson(world.url, 'POST', KEYSTORE, late.phone.newTemporaryKeyRequest(scope).json), 'temporaryKey')
      await expect(phone.fetchTemporaryKey('application')).rejects.toThrow('ERR_TEMPORARY_KEY')
    })
    expect(world.log()).toContain('application_version.application_secret of')
    expectOk(await late.phone.send(code))
    await phone.exchange(info)
  })

  test('binds no phone: a master key', async () => {
    const { code } = await world.register()
    const early = world.newPhone('3.1')
    const request = await early.prepareActivation(code)
    const { phone: late } = await world.activePhone('3.3')
    await whileAltered('master_key_pair', 'private_key', async () => {
      expectRefused(await early.send(request), 'encryption')
      expectRefused(await sendJson(world.url, 'POST', KEYSTORE, late.newTemporaryKeyRequest('application').json), 'temporaryKey')
      await expect(four.newPhone('EC_P384').fetchTemporaryKey('application')).rejects.toThrow('ERR_TEMPORARY_KEY')
      // A phone that is bound has keys of its own.
      expectOk(await late.send(late.prepareValidation()))
    })
    await early.exchange(request)
  })
})
