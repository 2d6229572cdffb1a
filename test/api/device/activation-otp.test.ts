// The OTP of an activation and the phase that commits it: the table of v3 §8.5, at the key exchange and at the commit.
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TestServer } from '../../helpers/app.ts'
import { readQrCode } from '../../helpers/bank.ts'
import { errorCode, expectError, expectRefused, MINUTE, readCounters, SECOND, STATE } from '../../helpers/expectations.ts'
import { type HttpReply, member } from '../../../phone/http.ts'
import type { VirtualPhone } from '../../../phone/v3/virtual-phone.ts'
import { expectOk, registrationOf, startServerWithWorld, type World } from '../../helpers/world.ts'

const OTP = 'otp-that-is-right'

let server: TestServer
let world: World
beforeAll(async () => {
  ;({ server, world } = await startServerWithWorld({}))
})
afterAll(() => world.close())

const registrations = () => `/admin/applications/${world.applicationId}/registrations`

interface Registration {
  readonly userId: string
  readonly activationId: string
  readonly code: string
}

async function register(rules: Readonly<Record<string, unknown>>): Promise<Registration> {
  const userId = world.newUser()
  const reply = expectOk(await world.bank.call('POST', registrations(), { userId, ...rules }))
  return { userId, activationId: String(member(reply.json, 'activationId')), code: readQrCode(reply).code }
}

/** A phone that is bound to a registration whose OTP is demanded at the commit. */
async function pending(): Promise<Registration & { phone: VirtualPhone }> {
  const registration = await register({ otp: OTP })
  const phone = world.newPhone('3.1')
  await phone.activate(registration.code)
  return { ...registration, phone }
}

const attempt = async (code: string, activationOtp?: string | null): Promise<HttpReply> => {
  const phone = world.newPhone('3.1')
  return phone.send(await phone.prepareActivation(code, { layer2: { activationOtp } }))
}
const commit = (userId: string, otp?: unknown, more: Readonly<Record<string, unknown>> = {}): Promise<HttpReply> =>
  world.bank.call('POST', `${registrations()}/commit`, { userId, otp, ...more })
const detailOf = async ({ activationId }: Registration): Promise<Record<string, unknown>> =>
  expectOk(await world.bank.call('GET', `${registrations()}/${activationId}`)).json as Record<string, unknown>
const reasonsOf = async (registration: Registration): Promise<unknown[]> =>
  ((await detailOf(registration))['history'] as { reason?: string }[]).map(({ reason }) => reason).filter(Boolean)
const times = <T>(count: number, work: (i: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, i) => work(i)))

describe('an OTP demanded at the key exchange', () => {
  test.each([
    ['3.0', { otpPhase: 'ON_KEY_EXCHANGE' }],
    ['3.1', { commitPhase: 'ON_KEY_EXCHANGE' }],
    ['3.2', { commitPhase: 'ON_KEY_EXCHANGE' }],
    ['3.3', { otpPhase: 'ON_KEY_EXCHANGE' }],
  ] as const)('activates a phone of %s without a commit, by %j', async (version, phase) => {
    const registration = await register({ otp: OTP, ...phase })
    expect(await detailOf(registration)).toMatchObject({ commitPhase: 'ON_KEY_EXCHANGE', isOtpDemanded: true })
    const phone = world.newPhone(version)
    await phone.activate(registration.code, { layer2: { activationOtp: OTP } })
    expect(await readCounters(phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 0, failedAttempts: 0 })
    expectOk(await phone.send(phone.prepareValidation()))
    expectError(await commit(registration.userId, OTP), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expect(await detailOf(registration)).toMatchObject({ state: 'ACTIVE', isOtpDemanded: false })
  })

  test('is refused and not counted when it is missing or blank', async () => {
    const registration = await register({ otp: OTP, otpPhase: 'ON_KEY_EXCHANGE' })
    for (const otp of [undefined, null, '', ' ', '\u00a0\t']) expectRefused(await attempt(registration.code, otp), 'activation')
    expect(await detailOf(registration)).toMatchObject({ state: 'CREATED', failedAttempts: 0 })
    expectOk(await attempt(registration.code, OTP))
  })
})

describe('a wrong OTP at the key exchange', () => {
  test('differs in anything: case, blanks, length', async () => {
    const registration = await register({ otp: OTP, otpPhase: 'ON_KEY_EXCHANGE' })
    const wrong = [OTP.toUpperCase(), ` ${OTP}`, `${OTP} `, 'x'.repeat(10_000)]
    for (const otp of wrong) expectRefused(await attempt(registration.code, otp), 'activation')
    expect(await detailOf(registration)).toMatchObject({ state: 'CREATED', failedAttempts: 4 })
  })

  test('counts, and the right one after it forgets the count', async () => {
    const registration = await register({ otp: OTP, otpPhase: 'ON_KEY_EXCHANGE' })
    for (let i = 1; i <= 2; i += 1) {
      expectRefused(await attempt(registration.code, `wrong-${i}`), 'activation')
      expect(await detailOf(registration)).toMatchObject({ state: 'CREATED', failedAttempts: i })
    }
    expectOk(await attempt(registration.code, OTP))
    expect(await detailOf(registration)).toMatchObject({ state: 'ACTIVE', failedAttempts: 0 })
    expect(await reasonsOf(registration)).toEqual(['OTP_FAILED_ATTEMPT', 'OTP_FAILED_ATTEMPT'])
  })

  test('removes the activation when it is the fifth, and the right one comes too late', async () => {
    const registration = await register({ otp: OTP, otpPhase: 'ON_KEY_EXCHANGE' })
    for (let i = 1; i <= 5; i += 1) expectRefused(await attempt(registration.code, `wrong-${i}`), 'activation')
    expect(await registrationOf(world, registration.userId)).toBe('NONE')
    expectRefused(await attempt(registration.code, OTP), 'activation')
    expect(await detailOf(registration)).toMatchObject({ state: 'REMOVED', failedAttempts: 5, isOtpDemanded: false })
    expect((await reasonsOf(registration))[0]).toBe('OTP_MAX_FAILED_ATTEMPTS')
    const { db } = server.context
    const events = db.selectFrom('audit_trail').select('event_type').where('activation_id', '=', registration.activationId)
    expect((await events.orderBy('sequence').execute()).map((event) => event.event_type)).toEqual([
      'registration_created',
      ...Array.from({ length: 4 }, () => 'activation_otp_invalid'),
      'registration_removed',
    ])
  })

  test('comes eight times at once and is counted five times', async () => {
    const registration = await register({ otp: OTP, otpPhase: 'ON_KEY_EXCHANGE' })
    const replies = await times(8, (i) => attempt(registration.code, `wrong-${i}`))
    for (const reply of replies) expectRefused(reply, 'activation')
    expect(await detailOf(registration)).toMatchObject({ state: 'REMOVED', failedAttempts: 5 })
    expect(await reasonsOf(registration)).toEqual([
      'OTP_MAX_FAILED_ATTEMPTS',
      ...Array.from({ length: 4 }, () => 'OTP_FAILED_ATTEMPT'),
    ])
  })

  test('comes together with the right one, which wins as long as the maximum is not reached', async () => {
    const registration = await register({ otp: OTP, otpPhase: 'ON_KEY_EXCHANGE' })
    const replies = await times(5, (i) => attempt(registration.code, i === 2 ? OTP : `wrong-${i}`))
    expect(replies.map(({ status }) => status)).toEqual([400, 400, 200, 400, 400])
    expect(await detailOf(registration)).toMatchObject({ state: 'ACTIVE', failedAttempts: 0 })
  })
})

test('of right OTPs that come at once one binds its phone', async () => {
  const registration = await register({ otp: OTP, otpPhase: 'ON_KEY_EXCHANGE' })
  const replies = await times(3, () => attempt(registration.code, OTP))
  expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 400, 400])
})

test('the wrong OTP is refused before an invalid device key removes the activation', async () => {
  const registration = await register({ otp: OTP, otpPhase: 'ON_KEY_EXCHANGE' })
  const phone = world.newPhone('3.1')
  const invalid = (activationOtp: string) =>
    phone.prepareActivation(registration.code, { layer2: { activationOtp, devicePublicKey: 'AAAA' } })
  expectRefused(await phone.send(await invalid('wrong')), 'activation')
  expect(await registrationOf(world, registration.userId)).toBe('CREATED')
  expectRefused(await phone.send(await invalid(OTP)), 'activation')
  expect(await registrationOf(world, registration.userId)).toBe('NONE')
})

test('an invalid device key removes an activation that another request changes meanwhile', async () => {
  const registration = await register({})
  const phone = world.newPhone('3.1')
  const { db } = server.context
  // The first removal finds nothing, as when a wrong OTP was counted since the read.
  await sql`create sequence removals`.execute(db)
  await sql`create function lose_first() returns trigger language plpgsql as
    'begin if nextval(''removals'') = 1 then return null; end if; return new; end'`.execute(db)
  await sql`create trigger lose_first before update on activation for each row when (new.state = 'REMOVED')
    execute function lose_first()`.execute(db)
  try {
    const request = await phone.prepareActivation(registration.code, { layer2: { devicePublicKey: 'AAAA' } })
    expectRefused(await phone.send(request), 'activation')
    expect(await registrationOf(world, registration.userId)).toBe('NONE')
  } finally {
    await sql`drop trigger lose_first on activation`.execute(db)
    await sql`drop function lose_first`.execute(db)
    await sql`drop sequence removals`.execute(db)
  }
})

describe.each([
  ['by default', {}],
  ['by the phase of the OTP', { otpPhase: 'ON_COMMIT' }],
  ['by the phase of the commit', { commitPhase: 'ON_COMMIT' }],
])('an OTP demanded at the commit %s', (_, phase) => {
  test('commits a phone that came without it, and not one that brings it', async () => {
    const registration = await register({ otp: OTP, ...phase })
    for (const otp of [OTP, 'anything']) expectRefused(await attempt(registration.code, otp), 'activation')
    expect(await detailOf(registration)).toMatchObject({ state: 'CREATED', failedAttempts: 0, commitPhase: 'ON_COMMIT' })
    const phone = world.newPhone('3.1')
    await phone.activate(registration.code, { layer2: { activationOtp: ' ' } })
    expect(await detailOf(registration)).toMatchObject({ state: 'PENDING_COMMIT', isOtpDemanded: true })
    expect(expectOk(await commit(registration.userId, OTP, { externalUserId: 'operator-1' })).json).toEqual({ status: 'OK' })
    expectOk(await phone.send(phone.prepareValidation()))
    expect(await detailOf(registration)).toMatchObject({
      state: 'ACTIVE',
      isOtpDemanded: false,
      history: [{ from: 'PENDING_COMMIT', to: 'ACTIVE', externalUserId: 'operator-1' }, {}, {}],
    })
    expectError(await commit(registration.userId, OTP), 400, 'ERROR_REGISTRATION_NOT_FOUND')
  })
})

describe('at the commit', () => {
  test('the path of the contract takes the OTP too', async () => {
    const { userId } = await pending()
    expectError(await world.bank.commit(userId), 400, 'ERROR_OTP_INVALID')
    expectError(await world.bank.commit(userId, { otp: 'wrong' }), 400, 'ERROR_OTP_INVALID')
    expect(expectOk(await world.bank.commit(userId, { otp: OTP })).json).toEqual({ status: 'OK' })
    expect(await registrationOf(world, userId)).toBe('ACTIVE')
  })

  test('a missing or blank OTP is refused and not counted', async () => {
    const registration = await pending()
    for (const otp of [undefined, null, '', '  ']) expectError(await commit(registration.userId, otp), 400, 'ERROR_OTP_INVALID')
    expect(await detailOf(registration)).toMatchObject({ state: 'PENDING_COMMIT', failedAttempts: 0 })
  })

  test('wrong OTPs count, the right one forgets the count', async () => {
    const registration = await pending()
    for (let i = 1; i <= 2; i += 1) expectError(await commit(registration.userId, `wrong-${i}`), 400, 'ERROR_OTP_INVALID')
    expect(await detailOf(registration)).toMatchObject({ state: 'PENDING_COMMIT', failedAttempts: 2 })
    expectOk(await commit(registration.userId, OTP))
    expect(await readCounters(registration.phone)).toEqual({ state: STATE.ACTIVE, ctrByte: 0, failedAttempts: 0 })
  })

  test('wrong OTPs that come at once never exceed the maximum, and remove the registration', async () => {
    const registration = await pending()
    const replies = await times(8, (i) => commit(registration.userId, `wrong-${i}`))
    const codes = replies.map((reply) => errorCode(reply))
    expect(codes.filter((code) => code === 'ERROR_OTP_INVALID')).toHaveLength(5)
    expect(codes.filter((code) => code === 'ERROR_REGISTRATION_NOT_FOUND')).toHaveLength(3)
    expect(await detailOf(registration)).toMatchObject({ state: 'REMOVED', failedAttempts: 5 })
    expect((await readCounters(registration.phone)).state).toBe(STATE.REMOVED)
    expectError(await commit(registration.userId, OTP), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    const asked = `/admin/applications/${world.applicationId}/audit?userId=${registration.userId}`
    const { items } = expectOk(await world.bank.call('GET', asked)).json as {
      items: { eventType: string; verifiedBy?: string }[]
    }
    const ofBank = items.filter(({ verifiedBy }) => verifiedBy === world.bank.credential?.split(':')[0])
    expect(ofBank.map(({ eventType }) => eventType)).toEqual([
      'registration_removed',
      ...Array.from({ length: 4 }, () => 'activation_otp_invalid'),
      'registration_created',
    ])
    expect(expectOk(await world.bank.call('GET', `${asked}&onlyVerified=true`)).json).toEqual({ items: [] })
  })

  test('four wrong OTPs and the right one at once end in a commit', async () => {
    const registration = await pending()
    const replies = await times(5, (i) => commit(registration.userId, i === 3 ? OTP : `wrong-${i}`))
    expect(replies[3]?.status).toBe(200)
    expect(await registrationOf(world, registration.userId)).toBe('ACTIVE')
  })

  test('of two right OTPs at once one commits', async () => {
    const registration = await pending()
    const replies = await times(2, () => commit(registration.userId, OTP))
    expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 400])
  })

  test('an OTP nobody asked for is ignored', async () => {
    const { userId } = await world.pendingPhone('3.1')
    expectOk(await commit(userId, 'anything'))
    expect(await registrationOf(world, userId)).toBe('ACTIVE')
  })

  test('nothing is found before the key exchange, after expiry, and for a user nobody knows', async () => {
    const { userId } = await register({ otp: OTP })
    expectError(await commit(userId, OTP), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expectError(await commit(world.newUser(), OTP), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    const expired = await pending()
    await world.advance(5 * MINUTE + SECOND)
    expectError(await commit(expired.userId, OTP), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    const detail = await detailOf(expired)
    expect(detail).toMatchObject({ state: 'REMOVED', failedAttempts: 0 })
  })
})

describe('a commit at the key exchange without an OTP', () => {
  test.each([undefined, 'anything'])('activates a phone that sends %j', async (activationOtp) => {
    const registration = await register({ commitPhase: 'ON_KEY_EXCHANGE' })
    const phone = world.newPhone('3.3')
    await phone.activate(registration.code, { layer2: { activationOtp } })
    expectOk(await phone.send(phone.prepareValidation()))
    expectError(await world.bank.commit(registration.userId), 400, 'ERROR_REGISTRATION_NOT_FOUND')
  })
})

describe('POST /admin/applications/{id}/registrations', () => {
  test.each<[string, Readonly<Record<string, unknown>>]>([
    ['both phases', { otp: OTP, otpPhase: 'ON_COMMIT', commitPhase: 'ON_COMMIT' }],
    ['the phase of an OTP that is not there', { otpPhase: 'ON_COMMIT' }],
    ['an unknown phase', { otp: OTP, otpPhase: 'ON_DEMAND' }],
    ['a phase in lower case', { commitPhase: 'on_commit' }],
    ['an empty OTP', { otp: '' }],
    ['a blank OTP', { otp: '  ' }],
    ['an OTP of 256 characters', { otp: 'x'.repeat(256) }],
    ['a number as OTP', { otp: 12345 }],
    ['an OTP with a zero character', { otp: 'a\u0000b' }],
    ['an OTP with half a surrogate pair', { otp: 'a\ud800' }],
    ['no user', { userId: undefined }],
    ['a blank user', { userId: ' ' }],
  ])('refuses %s, and creates nothing', async (_, rules) => {
    const userId = world.newUser()
    const reply = await world.bank.call('POST', registrations(), { userId, ...rules })
    expectError(reply, 400, 'ERROR_REQUEST')
    expect(reply.text).not.toContain('12345')
    expect(await registrationOf(world, userId)).toBe('NONE')
  })

  test('refuses a second registration, and an application nobody knows', async () => {
    const { userId } = await register({ otp: OTP })
    expectError(await world.bank.call('POST', registrations(), { userId, otp: OTP }), 400, 'ERROR_REGISTRATION')
    const elsewhere = '/admin/applications/nobody/registrations'
    expectError(await world.bank.call('POST', elsewhere, { userId: world.newUser() }), 400, 'ERROR_ADMIN')
    expectError(await world.bank.call('POST', `${elsewhere}/commit`, { userId, otp: OTP }), 400, 'ERROR_ADMIN')
  })

  test('a commit refuses what is not an OTP, and does not repeat it', async () => {
    const registration = await pending()
    for (const path of [`${registrations()}/commit`, '/registration/commit']) {
      for (const otp of [7, 'x'.repeat(256), 'a\u0000', {}]) {
        const reply = await world.bank.call('POST', path, { userId: registration.userId, otp })
        expectError(reply, 400, 'ERROR_REQUEST')
        expect(reply.text).not.toContain('xxxx')
      }
    }
    expect(await detailOf(registration)).toMatchObject({ state: 'PENDING_COMMIT', failedAttempts: 0 })
  })
})

test('an OTP stands neither in the database nor in the log', async () => {
  const registration = await register({ otp: OTP })
  const hashOf = async (): Promise<Buffer | null | undefined> => {
    const rows = server.context.db.selectFrom('activation').select('otp_hash')
    return (await rows.where('activation_id', '=', registration.activationId).executeTakeFirst())?.otp_hash
  }
  expect(await hashOf()).toHaveLength(48)
  expect((await hashOf())?.toString('latin1')).not.toContain(OTP)
  await world.newPhone('3.1').activate(registration.code)
  await commit(registration.userId, 'wrong-otp-in-a-log')
  expectOk(await commit(registration.userId, OTP))
  expect(await hashOf()).toBeNull()
  expect(server.log()).not.toContain(OTP)
  expect(server.log()).not.toContain('wrong-otp-in-a-log')
})
