// Challenges without connection over free data of a bank (cloud §16): what a phone reads from a QR code, and what its user types.
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Context } from '../../../src/context.ts'
import { eraseUser } from '../../../src/domain/user-data/user-data.ts'
import { v3 } from '../../../src/protocol/v3/index.ts'
import { type HttpReply, sendJson } from '../../../phone/http.ts'
import { type OfflineCovered, splitOfflineText } from '../../../phone/offline-text.ts'
import { b64, isEcdsa, random } from '../../../phone/v3/crypto.ts'
import { isEs384 } from '../../../phone/v4/crypto.ts'
import { serverUrl } from '../../helpers/app.ts'
import { type Bank, basicAuthorization, readApplication } from '../../helpers/bank.ts'
import { createCaller, readVerdict } from '../../helpers/door.ts'
import { expectError, MINUTE, readCounters, SECOND } from '../../helpers/expectations.ts'
import { beginStep, type OperationWorld, PAYMENT, startOperationWorld } from '../../helpers/operation-world.ts'
import { PHONE_VERSIONS, TESTED_ALGORITHMS } from '../../helpers/phone-versions.ts'
import { expectOk } from '../../helpers/world.ts'
import { openPhonesV4, type PhonesV4 } from '../../helpers/world-v4.ts'

type More = Readonly<Record<string, unknown>>

interface Challenge {
  readonly challengeId: string
  readonly qrCodeData: string
  readonly nonce: string
  readonly expiresAt: number
  readonly proximityOtp?: string
}

let world: OperationWorld
let v4: PhonesV4
let bank: Bank
let foreign: Bank
beforeAll(async () => {
  world = await startOperationWorld({
    servers: serverUrl() === undefined ? 1 : 2,
    worksInBackground: false,
    hasStoppedClock: true,
  })
  v4 = await openPhonesV4(world)
  bank = await createCaller(world.bank, 'branch', 'verification', world.applicationId)
  await world.bank.createApplication('other-offline')
  foreign = await createCaller(world.bank, 'other-branch', 'verification', 'other-offline')
})
afterAll(() => world.close())

const contextOf = (): Context => {
  const [context] = world.contexts
  if (context === undefined) throw new Error('a world without a server')
  return context
}
/** The same credential at one server after the other. */
const bankAt = (turn: number): Bank => ({ ...bank, url: world.urls[turn % world.urls.length] ?? bank.url })

const RESOURCE = '/cash'
const BODY = 'cashier-7&200 EUR'
const anId = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'
const post = (caller: Bank, path: string, body: unknown, key?: string): Promise<HttpReply> =>
  sendJson(caller.url, 'POST', `/offline/${path}`, body, {
    ...basicAuthorization(caller.credential),
    ...(key !== undefined && { 'Idempotency-Key': key }),
  })
const ask = (more: More = {}, caller = bank): Promise<HttpReply> =>
  post(caller, 'challenges', {
    data: 'cashier-7\nHand out 200 EUR?',
    resourceId: RESOURCE,
    body: b64(Buffer.from(BODY)),
    ...more,
  })
async function readStored(challengeId: string) {
  const { rows } = await sql<{ attempts: number; terms: Buffer }>`
    select attempts, terms from offline_challenge where challenge_id = ${challengeId}`.execute(world.db)
  return rows[0]
}
const show = async (more: More = {}): Promise<Challenge> => expectOk(await ask(more)).json as Challenge
const verify = async (challenge: Challenge, otp: string, more: More = {}, caller = bank, key?: string) =>
  readVerdict(await post(caller, 'verification', { challengeId: challenge.challengeId, otp, ...more }, key))

interface Answering {
  readonly state: { readonly activationId: string }
  readonly answerOffline: (covered: OfflineCovered, options?: object) => string
}
const answer = (phone: Answering, { nonce }: Pick<Challenge, 'nonce'>, more: More = {}): string =>
  phone.answerOffline({ resourceId: RESOURCE, body: BODY, nonce, ...more })
const newKey = () => Buffer.from(random(16)).toString('hex')
const wrongPin = { wrongKeys: { knowledge: random(32) } }
const guess = (phone: Answering, { nonce }: Challenge): string =>
  phone.answerOffline({ resourceId: RESOURCE, body: BODY, nonce }, wrongPin)
const isForPhoneV4 = (phone: { readonly isPersonalized: (text: string) => boolean }, text: string) => phone.isPersonalized(text)

describe.each([...PHONE_VERSIONS, ...TESTED_ALGORITHMS])('a phone of %s', (kind) => {
  const is3 = PHONE_VERSIONS.includes(kind as never)
  const bind = async () => (is3 ? await world.activePhone(kind as '3.3') : await v4.activePhone(kind as 'EC_P384'))

  test('reads what was made for it, and its code is good once', async () => {
    const { phone, userId } = await bind()
    const { activationId } = phone.state
    const challenge = await show({ activationId })
    const read = splitOfflineText(challenge.qrCodeData, false)
    expect(read).toMatchObject({ data: 'cashier-7\nHand out 200 EUR?', nonce: challenge.nonce, kind: is3 ? '1' : '2' })
    expect('isForThisPhone' in phone ? phone.isForThisPhone(read) : isForPhoneV4(phone, challenge.qrCodeData)).toBe(true)
    expect(challenge.expiresAt - contextOf().platform.now()).toBe(300 * SECOND)
    const otp = answer(phone, challenge)
    expect(await verify(challenge, otp, { auditText: 'till 4' })).toEqual({
      isValid: true,
      activationId,
      userId,
      state: 'ACTIVE',
      remainingAttempts: 5,
      factors: 'POSSESSION_KNOWLEDGE',
      flags: [],
      applicationRoles: [],
    })
    expect(await verify(challenge, otp)).toEqual({ isValid: false, reason: 'CHALLENGE' })
    const other = await show({ activationId })
    expect(await verify(other, otp)).toMatchObject({ isValid: false, reason: 'CODE_WRONG', remainingAttempts: 5 })
    const rows = await world.db.selectFrom('audit_trail').selectAll().where('user_id', '=', userId).orderBy('sequence').execute()
    const [right, wrong] = rows.slice(-2)
    expect(right).toMatchObject({ event_type: 'offline_code_ok', verified_by: 'branch' })
    expect(right?.event_data).toMatch(/^POST\n\/cash\n17\n[0-9a-f]{64}\ntill 4$/)
    expect(wrong).toMatchObject({ event_type: 'offline_code_invalid', verified_by: 'branch' })
  })

  test('answers a text for all phones, and the bank says who answers', async () => {
    const { phone, userId } = await bind()
    const { activationId } = phone.state
    for (const who of [{ userId }, { activationId }]) {
      const challenge = await show()
      const { head, kind: shown, proof } = splitOfflineText(challenge.qrCodeData, false)
      const { masterPublicKey } = readApplication(await world.bank.call('GET', `/admin/applications/${world.applicationId}`))
      expect(shown).toBe('0')
      expect(isEcdsa(masterPublicKey, Buffer.from(head), proof) || isEs384(v4.app.p384, Buffer.from(head), proof, 'der')).toBe(
        true,
      )
      expectError(
        await post(bank, 'verification', { challengeId: challenge.challengeId, otp: '1'.repeat(16) }),
        400,
        'ERROR_REQUEST',
      )
      expect(await verify(challenge, answer(phone, challenge), who)).toMatchObject({ isValid: true, userId })
    }
  })

  test('has a wrong PIN counted, and a stranger counts nothing of it', async () => {
    const { phone } = await bind()
    const { activationId } = phone.state
    const challenge = await show({ activationId })
    for (const otp of ['', '1', '12345678-1234567', 'x'.repeat(16), '٣'.repeat(16)])
      expect(await verify(challenge, otp)).toEqual({ isValid: false, reason: 'FORM' })
    expect(await verify(challenge, '12345678-12345678')).toMatchObject({ reason: 'CODE_WRONG', remainingAttempts: 5 })
    expect(await verify(challenge, guess(phone, challenge))).toMatchObject({ reason: 'CODE_WRONG', remainingAttempts: 4 })
    expect(await verify(challenge, answer(phone, challenge))).toMatchObject({ isValid: true, remainingAttempts: 5 })
  })
})

describe('a challenge', () => {
  test('dies with its third wrong code', async () => {
    const { phone } = await world.activePhone('3.3')
    const challenge = await show({ activationId: phone.state.activationId })
    for (let i = 0; i < 3; i += 1)
      expect(await verify(challenge, '12345678-12345678')).toMatchObject({ reason: 'CODE_WRONG', remainingAttempts: 5 })
    expect(await verify(challenge, answer(phone, challenge))).toEqual({ isValid: false, reason: 'CHALLENGE' })
    expect(await readCounters(phone)).toMatchObject({ failedAttempts: 0 })
  })

  test('has one attempt taken by a request, however often it is sent', async () => {
    const { phone, userId } = await world.activePhone('3.3')
    const challenge = await show({ activationId: phone.state.activationId })
    const attempts = async () => (await readStored(challenge.challengeId))?.attempts
    const wrong = { reason: 'CODE_WRONG', remainingAttempts: 5, userId }
    const stranger = ['11111111-11111111', '22222222-22222222', '33333333-33333333'] as const
    const keys = [newKey(), newKey()] as const
    for (let i = 0; i < 3; i += 1) expect(await verify(challenge, stranger[0], {}, bankAt(i), keys[0])).toMatchObject(wrong)
    expect(await attempts()).toBe(1)
    // Another code is another guess, under the same key as well.
    expect(await verify(challenge, stranger[1], {}, bank, keys[0])).toMatchObject(wrong)
    expect(await attempts()).toBe(2)
    const both = await Promise.all([0, 1].map((i) => verify(challenge, stranger[2], {}, bankAt(i), keys[1])))
    expect(both).toMatchObject([wrong, wrong])
    expect(await attempts()).toBe(3)
    expect(await verify(challenge, stranger[2])).toEqual({ isValid: false, reason: 'CHALLENGE' })
    expect(await verify(challenge, stranger[2], {}, bank, newKey())).toEqual({ isValid: false, reason: 'CHALLENGE' })
    expect(await attempts()).toBe(3)
  })

  test('has no more than three codes judged that come at once', async () => {
    const { phone } = await world.activePhone('3.3')
    const challenge = await show({ activationId: phone.state.activationId })
    const verdicts = await Promise.all(
      Array.from({ length: 8 }, (_, i) => verify(challenge, guess(phone, challenge), {}, bankAt(i))),
    )
    expect(verdicts.filter(({ reason }) => reason === 'CODE_WRONG')).toHaveLength(3)
    expect(verdicts.filter(({ reason }) => reason === 'CHALLENGE')).toHaveLength(5)
    expect(await readCounters(phone)).toMatchObject({ failedAttempts: 3 })
  })

  test('takes one of several right codes that come at once, of one phone or of two', async () => {
    const [first, second] = [await world.activePhone('3.3'), await world.activePhone('3.3')]
    for (const phones of [
      [first.phone, first.phone, first.phone],
      [first.phone, second.phone],
    ]) {
      const challenge = await show()
      const answers = phones.map((phone) => [answer(phone, challenge), phone.state.activationId] as const)
      const verdicts = await Promise.all(
        answers.map(([otp, activationId], i) => verify(challenge, otp, { activationId }, bankAt(i))),
      )
      expect(verdicts.filter(({ isValid }) => isValid)).toHaveLength(1)
    }
    // Neither phone is out of step.
    for (const { phone, userId } of [first, second]) {
      const challenge = await show({ userId })
      expect(await verify(challenge, answer(phone, challenge))).toMatchObject({ isValid: true })
    }
  })

  test('ends, at the second', async () => {
    const { phone, userId } = await world.activePhone('3.3')
    const [first, second] = [await show({ userId, validitySeconds: 30 }), await show({ userId, validitySeconds: 30 })]
    await world.advance(20 * SECOND)
    expect(await verify(first, answer(phone, first))).toMatchObject({ isValid: true })
    await world.advance(10 * SECOND)
    expect(await verify(second, answer(phone, second))).toEqual({ isValid: false, reason: 'CHALLENGE' })
    const stored = () => Promise.all([first, second].map(({ challengeId }) => readStored(challengeId)))
    expect(await stored()).toEqual([expect.anything(), expect.anything()])
    await world.housekeeping()
    expect(await stored()).toEqual([undefined, undefined])
    for (const validitySeconds of [29, 3601, 30.5]) expectError(await ask({ userId, validitySeconds }), 400, 'ERROR_REQUEST')
    expectOk(await ask({ userId, validitySeconds: 3600 }))
  })

  test('is one of its application alone, and no other row is taken for it', async () => {
    const { phone, userId } = await world.activePhone('3.3')
    const { activationId } = phone.state
    const [first, second] = [await show({ activationId }), await show({ userId: (await world.activePhone('3.3')).userId })]
    const otp = answer(phone, first)
    expect(await verify(first, otp, {}, foreign)).toEqual({ isValid: false, reason: 'CHALLENGE' })
    expect(await verify({ ...first, challengeId: anId }, otp)).toEqual({ isValid: false, reason: 'CHALLENGE' })
    for (const given of [{ challengeId: 'a\0b' }, { otp: `${otp}\0` }])
      expectError(await post(bank, 'verification', { challengeId: first.challengeId, otp, ...given }), 400, 'ERROR_REQUEST')
    expectError(await ask({ activationId }, foreign), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expectError(await ask({ userId }, foreign), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    const general = expectOk(await ask({}, foreign)).json as Challenge
    expect(await verify(general, answer(phone, general), { activationId }, foreign)).toEqual({
      isValid: false,
      reason: 'UNKNOWN',
    })
    expect(await verify(general, '1'.repeat(16), { userId }, foreign)).toEqual({ isValid: false, reason: 'UNKNOWN' })
    for (const who of [{ userId }, { activationId }, { userId, activationId }])
      expectError(await post(bank, 'verification', { challengeId: first.challengeId, otp, ...who }), 400, 'ERROR_REQUEST')
    // What is sealed for one is of no use to another, also after its end was moved.
    const terms = (await readStored(first.challengeId))?.terms
    await sql`update offline_challenge set terms = ${terms} where challenge_id = ${second.challengeId}`.execute(world.db)
    expect(await verify(second, otp)).toEqual({ isValid: false, reason: 'CHALLENGE' })
    expect(Buffer.from(terms as Uint8Array).includes(BODY)).toBe(false)
    expect(await verify(first, answer(phone, first))).toMatchObject({ isValid: true })
  })

  test('asks for the factors that the bank wants', async () => {
    const { phone, userId } = await world.activePhone('3.3')
    const by = (challenge: Challenge, factors: string) =>
      phone.answerOffline(
        { resourceId: RESOURCE, body: BODY, nonce: challenge.nonce },
        { factors: factors as 'possession_biometry' },
      )
    for (const [wanted, refused] of [
      ['possession_biometry', 'possession_knowledge'],
      ['possession_knowledge', 'possession_biometry'],
    ] as const) {
      const challenge = await show({ userId, factors: [wanted.toUpperCase()] })
      expect(await verify(challenge, by(challenge, refused))).toMatchObject({ reason: 'CODE_WRONG', remainingAttempts: 4 })
      expect(await verify(challenge, by(challenge, wanted))).toMatchObject({ isValid: true, factors: wanted.toUpperCase() })
    }
    const both = await show({ userId })
    expect(await verify(both, by(both, 'possession_biometry'))).toMatchObject({ isValid: true, factors: 'POSSESSION_BIOMETRY' })
    for (const factors of [[], ['POSSESSION'], ['KNOWLEDGE']]) expectError(await ask({ userId, factors }), 400, 'ERROR_REQUEST')
  })

  test('looks at the flags of the activation after the code', async () => {
    const { phone, userId } = await world.activePhone('3.3')
    const flagged = await show({ userId })
    const otp = answer(phone, flagged)
    expect(await verify(flagged, otp, { requiredFlags: ['VIP'] })).toMatchObject({ isValid: false, reason: 'FLAGS' })
    expect(await verify(flagged, otp)).toEqual({ isValid: false, reason: 'CHALLENGE' })
  })

  test('of a blocked activation is neither made nor answered', async () => {
    const { phone, userId } = await world.activePhone('3.3')
    const challenge = await show({ userId })
    expectOk(await world.bank.change(userId, 'BLOCK'))
    const compared = vi.spyOn(v3, 'verifyOfflineOtp')
    expect(await verify(challenge, answer(phone, challenge))).toMatchObject({ isValid: false, reason: 'STATE', state: 'BLOCKED' })
    // With a decoy: the time must not tell the right PIN, because no attempt is counted.
    expect(compared.mock.results.map(({ value }) => value as unknown)).toEqual([{ move: undefined, isPossessionRight: false }])
    compared.mockRestore()
    expectError(await ask({ userId }), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expectError(await ask({ activationId: phone.state.activationId }), 400, 'ERROR_REGISTRATION_NOT_FOUND')
  })

  test('is gone with its user', async () => {
    const { userId } = await world.activePhone('3.3')
    const { challengeId } = await show({ userId })
    await eraseUser(contextOf(), userId)
    expect(await readStored(challengeId)).toBeUndefined()
  })
})

describe('data', () => {
  test.each(['x', 'žluťoučký kůň\n💶', '\n\n', 'a\r\nb', '12345678', '=\n&'])('%j is read as it was', async (data) => {
    const { phone, userId } = await world.activePhone('3.3')
    const challenge = await show({ userId, data })
    const read = splitOfflineText(challenge.qrCodeData, false)
    expect([read.data, phone.isForThisPhone(read)]).toEqual([data, true])
    expect(await verify(challenge, answer(phone, challenge))).toMatchObject({ isValid: true })
  })

  test('that no text or no QR code holds is refused', async () => {
    const { userId } = await world.activePhone('3.3')
    const bad = ['', 'a\0b', '\ud800', 'x'.repeat(2501), 'x'.repeat(65_536), '💶'.repeat(1000)]
    for (const data of bad) expectError(await ask({ userId, data }), 400, 'ERROR_REQUEST')
    expectOk(await ask({ userId, data: 'x'.repeat(2500) }))
    for (const body of ['!', b64(random(4097)), undefined]) expectError(await ask({ userId, body }), 400, 'ERROR_REQUEST')
    for (const resourceId of ['', '/pa/x', '/api/x', '/operation/x', 'a\nb', undefined])
      expectError(await ask({ userId, resourceId }), 400, 'ERROR_REQUEST')
    expectError(await ask({ userId, activationId: anId }), 400, 'ERROR_REQUEST')
    expectError(await ask({ userId: 'nobody' }), 400, 'ERROR_REGISTRATION_NOT_FOUND')
  })

  test('any bytes may be covered, beside a proximity check as well', async () => {
    const { phone, userId } = await world.activePhone('3.3')
    const resourceId = '/operation/authorize/offline'
    for (const body of [Buffer.from(`${'\0'.repeat(36)}&ř`), Buffer.from('ff00fe26c3', 'hex'), Buffer.alloc(0)])
      for (const hasProximityCheck of [false, true]) {
        const challenge = await show({ userId, body: b64(body), resourceId, hasProximityCheck })
        const otp = answer(phone, challenge, { body, resourceId, totp: challenge.proximityOtp })
        expect(await verify(challenge, otp)).toMatchObject({ isValid: true })
      }
  })

  test('of an operation is refused, in its own application', async () => {
    const { userId } = await world.holder()
    const { operationId } = expectOk(
      await world.bank.createOperation({ userId, template: await world.template(), parameters: PAYMENT }),
    ).json as { operationId: string }
    const resourceId = '/operation/authorize/offline'
    const body = b64(Buffer.from(`${operationId}&A1*A10EUR`))
    expectError(await ask({ userId, resourceId, body }), 400, 'ERROR_REQUEST')
    expectError(await ask({ userId, data: `${operationId}\nLottery` }), 400, 'ERROR_REQUEST')
    expectOk(await ask({ resourceId, body }, foreign))
    expectOk(await ask({ userId, resourceId, body: b64(Buffer.from(`${anId}&A1*A10EUR`)) }))
  })
})

describe('a proximity check', () => {
  test('is of one phone, and its password is good for this step and the next', async () => {
    expectError(await ask({ hasProximityCheck: true }), 400, 'ERROR_REQUEST')
    const { phone, userId } = await world.activePhone('3.3')
    for (const [seconds, isRight] of [
      [0, true],
      [59, true],
      [60, false],
    ] as const) {
      await beginStep(world)
      const challenge = await show({ userId, hasProximityCheck: true })
      const { totp, data } = splitOfflineText(challenge.qrCodeData, true)
      expect([totp, data]).toEqual([challenge.proximityOtp, 'cashier-7\nHand out 200 EUR?'])
      expect(totp).toMatch(/^\d{8}$/)
      const otp = answer(phone, challenge, { totp })
      await world.advance(seconds * SECOND)
      expect([seconds, (await verify(challenge, otp))['isValid']]).toEqual([seconds, isRight])
    }
    const challenge = await show({ userId, hasProximityCheck: true })
    expect(await verify(challenge, answer(phone, challenge))).toMatchObject({ reason: 'CODE_WRONG', remainingAttempts: 5 })
    expect(await show({ userId })).not.toHaveProperty('proximityOtp')
  })
})

describe('an answer that was lost', () => {
  test('is given again under its key', async () => {
    const { phone, userId } = await world.activePhone('3.3')
    const challenge = await show({ userId })
    const [key, other] = [newKey(), newKey()]
    const wrong = guess(phone, challenge)
    const first = await verify(challenge, wrong, {}, bank, other)
    expect(first).toMatchObject({ reason: 'CODE_WRONG', remainingAttempts: 4 })
    expect(await verify(challenge, wrong, {}, bank, other)).toEqual(first)
    const otp = answer(phone, challenge)
    const right = await verify(challenge, otp, {}, bank, key)
    expect(right).toMatchObject({ isValid: true, userId })
    expect(await verify(challenge, otp, {}, bank, key)).toEqual(right)
    expect(await verify(challenge, otp)).toEqual({ isValid: false, reason: 'CHALLENGE' })
    const again = { challengeId: challenge.challengeId, otp: wrong }
    expectError(await post(bank, 'verification', again, key), 400, 'ERROR_REQUEST')
    expectError(await post(bank, 'verification', again, `key-${wrong}`), 400, 'ERROR_REQUEST')
    // Two at once are one acceptance.
    for (let i = 0; i < 3; i += 1) {
      const next = await show({ userId })
      const typed = answer(phone, next)
      const once = newKey()
      const both = await Promise.all([verify(next, typed, {}, bankAt(0), once), verify(next, typed, {}, bankAt(1), once)])
      expect(both).toMatchObject([{ isValid: true }, { isValid: true }])
    }
  })
})

describe('attempts of one user', () => {
  test('are ten in a minute, also of one who is not there, and those beyond count nothing', async () => {
    const { phone, userId } = await world.activePhone('3.3')
    for (const who of [userId, 'nobody']) {
      for (let i = 0; i < 10; i += 1) await verify(await show(), '12345678-12345678', { userId: who })
      const { challengeId } = await show()
      const asked = { challengeId, otp: '12345678-12345678', userId: who }
      for (let i = 0; i < 4; i += 1) expectError(await post(bank, 'verification', asked), 429, 'HTTP_429')
    }
    await world.advance(MINUTE)
    const challenge = await show()
    expect(await verify(challenge, answer(phone, challenge), { userId })).toMatchObject({ isValid: true })
  })
})
