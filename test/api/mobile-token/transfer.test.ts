// POST /api/activation/code: an app that is bound lets another one of the bank be bound, beside it or in its place (mobile-token §9).
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withFlippedMember } from '../../../phone/header.ts'
import { member } from '../../../phone/http.ts'
import { isEcdsa, random, unb64 } from '../../../phone/v3/crypto.ts'
import { inTransaction } from '../../../src/storage/database/database.ts'
import { putPushRegistration } from '../../../src/storage/token/push-registrations.ts'
import { COUNT_WAITING, serverUrl, type TestServer } from '../../helpers/app.ts'
import { setMultiDevice } from '../../helpers/devices.ts'
import { expectError, expectRefused, MINUTE } from '../../helpers/expectations.ts'
import {
  type AnyPhone,
  askForCode,
  type Body,
  configure,
  JUNIOR,
  openTransfers,
  OTP,
  prepareBind,
  prepareCode,
  type Side,
  TRANSFERS,
  type Transfers,
  WALLET,
} from '../../helpers/transfers.ts'
import { expectOk, startServerWithWorld, type World } from '../../helpers/world.ts'
import { readAppV4 } from '../../helpers/world-v4.ts'

let server: TestServer
let world: World
let transfers: Transfers
let source = ''
beforeAll(async () => {
  // The validity of usual codes is shorter and longer than that of these.
  ;({ server, world } = await startServerWithWorld({ env: { PAWL_ACTIVATION_VALIDITY_SECONDS: '3600' } }))
  transfers = await openTransfers(world)
  source = world.applicationId
})
afterAll(() => world.close())

const SIDES = ['3.3', '4.0'] as const satisfies readonly Side[]
const stateOf = async (application: string, phone: { readonly state: { readonly activationId: string } } | string) =>
  (await transfers.detailOf(application, typeof phone === 'string' ? phone : phone.state.activationId))['state']
const reasonsOf = (detail: Readonly<Record<string, unknown>>) =>
  (detail['history'] as readonly { from?: string; to: string; reason?: string }[]).map(({ to, reason }) => [to, reason])
const validate = (phone: AnyPhone) => phone.send(phone.prepareValidation())
const auditOf = async (activationId: string) =>
  (await server.context.db.selectFrom('audit_trail').selectAll().where('activation_id', '=', activationId).execute())
    .filter(({ event_type: type }) => type.startsWith('registration_'))
    .toSorted((one, other) => Number(one.sequence) - Number(other.sequence))
    .map(({ event_type: type, event_data: data }) => [type, data])

// The embedded database has one session: there nothing happens at the same time.
test.runIf(serverUrl() !== undefined)(
  'a move leaves no token for pushes that its parent registers at the same time',
  async () => {
    const { db, platform } = server.context
    const [{ phone }, other] = [await transfers.boundPhone('3.3'), await transfers.boundPhone('3.3')]
    const { activationCode } = await askForCode(phone)
    const wallet = await transfers.otherApp('3.3')
    const { activationId } = phone.state
    const token = { platform: 'fcm', environment: null, pushToken: Buffer.of(1), pushTokenHash: random(32) } as const
    const countWaiting = async () => (await sql.raw<{ waiting: number }>(COUNT_WAITING).execute(db)).rows[0]?.waiting
    let both: Promise<unknown> = Promise.resolve()
    await inTransaction(db, async (tx) => {
      // Until this ends, the registration waits for its place in the index of tokens.
      await sql`insert into push_registration (activation_id, platform, push_token, push_token_hash, updated_at)
      values (${other.phone.state.activationId}, 'fcm', ${token.pushToken}, ${token.pushTokenHash}, now())`.execute(tx)
      const registering = putPushRegistration(db, { activationId, ...token }, new Date(platform.now()))
      await expect.poll(countWaiting).toBe(1)
      let isBound = false
      const binding = wallet.exchange(await prepareBind(wallet, activationCode))
      void binding.finally(() => (isBound = true))
      await expect.poll(async () => isBound || (await countWaiting()) === 2).toBe(true)
      both = Promise.all([registering, binding])
      await tx.deleteFrom('push_registration').where('push_token_hash', '=', Buffer.from(token.pushTokenHash)).execute()
    })
    await both
    expect(await stateOf(source, phone)).toBe('REMOVED')
    expect(
      await db.selectFrom('push_registration').select('platform').where('activation_id', '=', activationId).execute(),
    ).toEqual([])
  },
)

describe.each(SIDES)('a phone of %s', (side) => {
  test.each(SIDES)('moves to another app, which speaks %s: one of the two is live at each moment', async (other) => {
    const { phone, userId } = await transfers.boundPhone(side)
    const parentId = phone.state.activationId
    const { activationId, activationCode, activationSignature } = await askForCode(phone)
    expect(isEcdsa(transfers.wallet.masterPublicKey, Buffer.from(activationCode), unb64(activationSignature))).toBe(true)
    const waiting = await transfers.detailOf(WALLET, activationId)
    expect(waiting).toMatchObject({ userId, state: 'CREATED', parentActivationId: parentId, isOtpDemanded: true })
    const validity = Number(waiting['timestampExpires']) - Number(waiting['timestampCreated'])
    expect(validity).toBeLessThanOrEqual(5 * MINUTE)
    expect(validity).toBeGreaterThan(4.9 * MINUTE)
    expectOk(await validate(phone))

    const wallet = await transfers.otherApp(other)
    await wallet.exchange(await prepareBind(wallet, activationCode))
    const [child, parent] = [await transfers.detailOf(WALLET, activationId), await transfers.detailOf(source, parentId)]
    expect(child).toMatchObject({ state: 'ACTIVE', parentActivationId: parentId, flags: [], isOtpDemanded: false })
    expect(reasonsOf(child)).toEqual([
      ['ACTIVE', undefined],
      ['CREATED', 'MOVE'],
    ])
    expect(parent).toMatchObject({ state: 'REMOVED' })
    expect(parent).not.toHaveProperty('parentActivationId')
    expect(reasonsOf(parent)[0]).toEqual(['REMOVED', 'MOVED'])
    expect(await auditOf(parentId)).toContainEqual([
      'registration_removed',
      JSON.stringify({ reason: 'MOVED', childActivationId: activationId }),
    ])
    expect((await auditOf(activationId)).map(([type]) => type)).toEqual([
      'registration_created',
      'registration_keys_exchanged',
      'registration_committed',
    ])
    expect((await auditOf(activationId))[0]).toEqual([
      'registration_created',
      JSON.stringify({ parentActivationId: parentId, type: 'MOVE' }),
    ])
    expect((await validate(phone)).status).toBe(401)
    if ('prepareConfirm' in wallet) await wallet.exchange(wallet.prepareConfirm(false))
    expectOk(await validate(wallet))
  })

  test('spawns another app with the flags of the configuration, and stays; the child may go on', async () => {
    const { phone } = await transfers.boundPhone(side)
    const { activationId, activationCode } = await askForCode(phone, { applicationId: JUNIOR })
    const junior = await transfers.otherApp(side, JUNIOR)
    await junior.exchange(await prepareBind(junior, activationCode))
    expect(await transfers.detailOf(JUNIOR, activationId)).toMatchObject({ state: 'ACTIVE', flags: ['JUNIOR', 'NEW'] })
    expect(reasonsOf(await transfers.detailOf(JUNIOR, activationId)).at(-1)).toEqual(['CREATED', 'SPAWN'])
    const parent = await transfers.detailOf(source, phone.state.activationId)
    expect(parent).toMatchObject({ state: 'ACTIVE' })
    expect(reasonsOf(parent)[0]).toEqual(['ACTIVE', 'SPAWNED'])
    expectOk(await validate(phone))
  })

  test('a wrong OTP is counted, too many remove the child, and the parent stays', async () => {
    const { phone } = await transfers.boundPhone(side)
    const { activationId, activationCode } = await askForCode(phone)
    const wallet = await transfers.otherApp(side)
    for (let failed = 1; failed < 5; failed += 1) {
      expectRefused(await wallet.send(await prepareBind(wallet, activationCode, `${OTP}${failed}`)), 'activation')
      expect(await transfers.detailOf(WALLET, activationId)).toMatchObject({ state: 'CREATED', failedAttempts: failed })
    }
    expectRefused(await wallet.send(await prepareBind(wallet, activationCode, `${OTP}!`)), 'activation')
    expectRefused(await wallet.send(await prepareBind(wallet, activationCode)), 'activation')
    expect([await stateOf(WALLET, activationId), await stateOf(source, phone)]).toEqual(['REMOVED', 'ACTIVE'])
    // Its place is free again.
    await askForCode(phone)
  })

  test('is refused a code for what it may not name, and an OTP that is none, after a right code', async () => {
    const { phone } = await transfers.boundPhone(side)
    const ask = async (requestObject: Body) => phone.send(await prepareCode(phone, requestObject))
    for (const applicationId of ['unheard-of', source]) expectError(await ask({ applicationId }), 400, 'ACTIVATION_CODE_FAILED')
    const wrong = ['x'.repeat(15), 'x'.repeat(256), `${'x'.repeat(16)}\n`, `${'x'.repeat(16)}é`, undefined, 1234567890123456]
    for (const otp of wrong) expectError(await ask({ otp }), 400, 'INVALID_REQUEST')
    for (const applicationId of [undefined, '', 7]) expectError(await ask({ applicationId }), 400, 'INVALID_REQUEST')
    expectError(await phone.send(await prepareCode(phone, {}, { plaintext: '{"requestObject":' })), 400, 'ERR_ENCRYPTION')
    expectOk(await validate(phone))
  })

  test('takes OTPs of 16 and of 255 characters', async () => {
    const { phone } = await transfers.boundPhone(side)
    for (const [applicationId, length] of [
      [WALLET, 16],
      [JUNIOR, 255],
    ] as const)
      await askForCode(phone, { applicationId, otp: '~'.repeat(length) })
  })

  test('is refused while its user has a live registration there, waiting or not', async () => {
    const { phone } = await transfers.boundPhone(side)
    const { activationCode } = await askForCode(phone, { applicationId: JUNIOR })
    const again = () => prepareCode(phone, { applicationId: JUNIOR })
    expectError(await phone.send(await again()), 400, 'ACTIVATION_CODE_FAILED')
    const junior = await transfers.otherApp(side, JUNIOR)
    await junior.exchange(await prepareBind(junior, activationCode))
    expectError(await phone.send(await again()), 400, 'ACTIVATION_CODE_FAILED')
    expectOk(await validate(phone))
  })

  test('the code ends after five minutes, and the parent stays', async () => {
    const { phone } = await transfers.boundPhone(side)
    const { activationCode, activationId } = await askForCode(phone)
    await world.advance(5 * MINUTE)
    const wallet = await transfers.otherApp(side)
    expectRefused(await wallet.send(await prepareBind(wallet, activationCode)), 'activation')
    expect([await stateOf(WALLET, activationId), await stateOf(source, phone)]).toEqual(['REMOVED', 'ACTIVE'])
    await askForCode(phone)
  })

  test('the factors must be two, and each request is good once', async () => {
    const { phone } = await transfers.boundPhone(side)
    for (const factors of ['possession', 'knowledge'] as const) {
      const reply = await phone.send(await prepareCode(phone, {}, { factors }))
      expectError(reply, 401, 'POWERAUTH_AUTH_FAIL')
    }
    const wrong = await prepareCode(phone, {}, { wrongKeys: { knowledge: random(side === '4.0' ? 32 : 16) } })
    expectError(await phone.send(wrong), 401, 'POWERAUTH_AUTH_FAIL')
    const request = await prepareCode(phone, { applicationId: JUNIOR }, { factors: 'possession_biometry' })
    const altered = withFlippedMember(request, 'encryptedData')
    expectError(await phone.send(altered), 400, 'ERR_ENCRYPTION')
    await phone.exchange(request)
    const replay = await phone.send(request)
    expect(replay.status).toBeGreaterThanOrEqual(400)
    expect(member(replay.json, 'responseObject', 'code')).not.toBe('ACTIVATION_CODE_FAILED')
  })

  test('a blocked or removed one gets no code, and its code binds nobody', async () => {
    const { phone, userId } = await transfers.boundPhone(side)
    const { activationCode, activationId } = await askForCode(phone)
    const temporaryKey = await phone.fetchTemporaryKey('activation')
    expectOk(await world.bank.change(userId, 'BLOCK'))
    const asked = await phone.send(await prepareCode(phone, { applicationId: JUNIOR }, { temporaryKey }))
    expectError(asked, 401, 'POWERAUTH_AUTH_FAIL')
    const wallet = await transfers.otherApp(side)
    expectRefused(await wallet.send(await prepareBind(wallet, activationCode)), 'activation')
    expect(await stateOf(WALLET, activationId)).toBe('CREATED')
    expectOk(await world.bank.change(userId, 'UNBLOCK'))
    expectOk(await world.bank.remove(userId))
    expectRefused(await wallet.send(await prepareBind(wallet, activationCode)), 'activation')
    expect([await stateOf(WALLET, activationId), await stateOf(source, phone)]).toEqual(['CREATED', 'REMOVED'])
  })
})

test('what a moved phone had is gone as with a removal by the bank: its tokens, and where pushes go', async () => {
  const { phone, userId } = await world.activePhone('3.3')
  const token = await phone.createToken()
  const temporaryKey = await phone.fetchTemporaryKey('activation')
  const { db } = server.context
  const registration = {
    activation_id: phone.state.activationId,
    platform: 'apns',
    push_token: Buffer.from('t'),
    updated_at: new Date(),
  } as const
  await db.insertInto('push_registration').values(registration).execute()
  const { activationCode } = await askForCode(phone)
  const wallet = await transfers.otherApp('3.3')
  await wallet.exchange(await prepareBind(wallet, activationCode))
  const rows = db.selectFrom('push_registration').select('activation_id').where('activation_id', '=', phone.state.activationId)
  expect(await rows.execute()).toEqual([])
  expect((await phone.send(await phone.prepareDetail(token, { temporaryKey }))).status).toBeGreaterThanOrEqual(400)
  // The place of the user is free in the application that was left.
  expectOk(await world.bank.register(userId))
})

test('webhooks of both applications are told: ACTIVE of the one, REMOVED of the other', async () => {
  for (const application of [source, WALLET]) {
    const webhook = { application, kind: 'ACTIVATION', name: 'core', url: 'https://hooks.bank.example/', attributes: [] }
    expectOk(await world.bank.call('POST', '/admin/webhooks', webhook))
  }
  const { phone } = await world.activePhone('3.3')
  const { activationId, activationCode } = await askForCode(phone)
  const wallet = await transfers.otherApp('3.3')
  await wallet.exchange(await prepareBind(wallet, activationCode))
  const about = server.context.db.selectFrom('webhook_delivery').select(['object_id', 'payload']).orderBy('sequence')
  const told = await about.where('object_id', 'in', [activationId, phone.state.activationId]).execute()
  const statesOf = (id: string) =>
    told.filter((row) => row.object_id === id).map(({ payload }) => (JSON.parse(payload) as Body)['status'])
  expect(statesOf(activationId)).toEqual(['CREATED', 'ACTIVE'])
  expect(statesOf(phone.state.activationId)).toEqual(['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'REMOVED'])
})

test('the signature is of P-384 where the target admits no protocol 3, and the bank is not shown the code', async () => {
  const { phone, userId } = await world.activePhone('3.3')
  expectOk(await world.bank.call('PATCH', `/admin/applications/${JUNIOR}`, { isProtocol3Admitted: false }))
  const { activationCode, activationSignature } = await askForCode(phone, { applicationId: JUNIOR })
  expectOk(await world.bank.call('PATCH', `/admin/applications/${JUNIOR}`, { isProtocol3Admitted: true }))
  const { p384 } = await readAppV4(world.bank, JUNIOR)
  const { isEs384 } = await import('../../../phone/v4/crypto.ts')
  expect(isEs384(p384, Buffer.from(activationCode), unb64(activationSignature), 'der')).toBe(true)
  const rows = server.context.db.selectFrom('activation').select(['activation_qr_code', 'otp_hash'])
  const row = await rows.where('application_id', '=', JUNIOR).where('user_id', '=', userId).executeTakeFirstOrThrow()
  expect(row.activation_qr_code).toBeNull()
  expect(row.otp_hash).toHaveLength(48)
})

test('the bank of the target reads the registration without a code', async () => {
  const { phone, userId } = await world.activePhone('3.3')
  const { activationId } = await askForCode(phone)
  const user = { username: 'wallet-bank', role: 'integration', application: WALLET, password: 'of the bank of the wallet' }
  expectOk(await world.bank.call('POST', '/admin/users', user))
  const bank = world.bank.as(`${user.username}:${user.password}`)
  const read = expectOk(await bank.call('GET', `/v2/registrations/${activationId}`)).json
  expect(read).toMatchObject({ userId, state: 'CREATED', isOtpDemanded: true })
  expect(read).not.toHaveProperty('activationQrCodeData')
})

test('a parent whose temporary block is over hands over, with the end of its block in the history', async () => {
  const short = await startServerWithWorld({ env: { PAWL_TEMPORARY_BLOCK_SECONDS: '60' } })
  try {
    const there = await openTransfers(short.world)
    const { phone } = await short.world.activePhone('3.3')
    const { activationCode } = await askForCode(phone)
    for (let i = 0; i < 5; i += 1) await phone.send(phone.prepareValidation({ wrongKeys: { knowledge: random(16) } }))
    const wallet = await there.otherApp('3.3')
    expectRefused(await wallet.send(await prepareBind(wallet, activationCode)), 'activation')
    await short.world.advance(MINUTE)
    await wallet.exchange(await prepareBind(wallet, activationCode))
    const detail = await there.detailOf(short.world.applicationId, phone.state.activationId)
    expect(reasonsOf(detail).slice(0, 2)).toEqual([
      ['REMOVED', 'MOVED'],
      ['ACTIVE', 'BLOCK_EXPIRED'],
    ])
  } finally {
    await short.world.close()
  }
})

test('a phone asks at a bounded rate', async () => {
  const slow = await startServerWithWorld({ env: { PAWL_MOBILE_READS_PER_MINUTE: '2' } })
  try {
    await openTransfers(slow.world)
    const { phone } = await slow.world.activePhone('3.3')
    const ask = async () => phone.send(await prepareCode(phone, { applicationId: 'unheard-of' }))
    expect([await ask(), await ask(), await ask()].map(({ status }) => status)).toEqual([400, 400, 429])
  } finally {
    await slow.world.close()
  }
})

test('a phone whose owner is yet to be verified hands over to nobody, before the code and after it', async () => {
  const { phone } = await world.activePhone('3.3')
  const setFlags = async (flags: string[]) =>
    expectOk(await world.bank.call('PUT', `/v2/registrations/${phone.state.activationId}/flags`, { flags }))
  for (const flag of ['VERIFICATION_PENDING', 'VERIFICATION_IN_PROGRESS']) {
    await setFlags([flag])
    expectError(await phone.send(await prepareCode(phone)), 400, 'ACTIVATION_CODE_FAILED')
  }
  await setFlags(['VIP'])
  const { activationId, activationCode } = await askForCode(phone)
  await setFlags(['VIP', 'VERIFICATION_PENDING'])
  const wallet = await transfers.otherApp('3.3')
  expectRefused(await wallet.send(await prepareBind(wallet, activationCode)), 'activation')
  expect([await stateOf(WALLET, activationId), await stateOf(source, phone)]).toEqual(['CREATED', 'ACTIVE'])
  await setFlags([])
  await wallet.exchange(await prepareBind(wallet, activationCode))
})

test('where the target lets a user have several phones, it is bound beside those that are there', async () => {
  expectOk(await setMultiDevice(world.bank, JUNIOR, true))
  const { phone, userId } = await world.activePhone('3.3')
  const ids: string[] = []
  for (let i = 0; i < 3; i += 1) {
    const { activationId, activationCode } = await askForCode(phone, { applicationId: JUNIOR })
    const junior = await transfers.otherApp('3.3', JUNIOR)
    await junior.exchange(await prepareBind(junior, activationCode))
    ids.push(activationId)
  }
  for (const id of ids) expect(await transfers.detailOf(JUNIOR, id)).toMatchObject({ userId, state: 'ACTIVE' })
})

describe('the setting transfers', () => {
  test.each([
    ['its own application', [{ targets: ['test-app'], type: 'MOVE' }]],
    ['an application that is not there', [{ targets: ['unheard-of'], type: 'MOVE' }]],
    [
      'a target twice',
      [
        { targets: [WALLET, JUNIOR], type: 'MOVE' },
        { targets: [WALLET], type: 'SPAWN' },
      ],
    ],
    ['a target twice in one entry', [{ targets: [WALLET, WALLET], type: 'MOVE' }]],
    ['no target', [{ targets: [], type: 'MOVE' }]],
    ['another type', [{ targets: [WALLET], type: 'COPY' }]],
    ['flags that are none', [{ targets: [WALLET], type: 'MOVE', initialFlags: ['no flag'] }]],
    ['no list', { targets: [WALLET], type: 'MOVE' }],
  ])('refuses %s, and stays', async (_, refused) => {
    expect((await configure(world.bank, source, refused)).status).toBe(400)
    expect((await world.bank.call('GET', `/admin/applications/${source}`)).json).toMatchObject({
      responseObject: { transfers: TRANSFERS },
    })
  })

  test('is asked again when a code is used: a target that was taken away is not bound, and is bound once it is back', async () => {
    const { phone } = await world.activePhone('3.3')
    const { activationCode, activationId } = await askForCode(phone)
    const wallet = await transfers.otherApp('3.3')
    expectOk(await configure(world.bank, source, TRANSFERS.slice(1)))
    try {
      expectRefused(await wallet.send(await prepareBind(wallet, activationCode)), 'activation')
      expect([await stateOf(WALLET, activationId), await stateOf(source, phone)]).toEqual(['CREATED', 'ACTIVE'])
    } finally {
      expectOk(await configure(world.bank, source, TRANSFERS))
    }
    await wallet.exchange(await prepareBind(wallet, activationCode))
    expect([await stateOf(WALLET, activationId), await stateOf(source, phone)]).toEqual(['ACTIVE', 'REMOVED'])
  })

  test('is recorded with what it was before, and an application without it hands over to nobody', async () => {
    const reply = expectOk(await configure(world.bank, source, []))
    try {
      expect(member(reply.json, 'responseObject', 'transfers')).toEqual([])
      const events = expectOk(await world.bank.call('GET', '/admin/audit')).text
      expect(events).toContain('initialFlags')
      const { phone } = await world.activePhone('3.3')
      expectError(await phone.send(await prepareCode(phone)), 400, 'ACTIVATION_CODE_FAILED')
    } finally {
      expectOk(await configure(world.bank, source, TRANSFERS))
    }
  })
})
