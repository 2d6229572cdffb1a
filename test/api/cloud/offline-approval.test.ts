// /operations/offline: a QR code that the phone scans, and the one-time password that its user types (cloud §6.5, §6.6, §6.8; v3 §15).
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorCode, expectError, MINUTE, readCounters, SECOND, STATE } from '../../helpers/expectations.ts'
import type { HttpReply } from '../../../phone/http.ts'
import { member } from '../../../phone/http.ts'
import {
  beginStep,
  expectNothingCounted,
  type Holder,
  type OperationWorld,
  PAYMENT,
  PAYMENT_DATA,
  startOperationWorld,
  type TestOperation,
} from '../../helpers/operation-world.ts'
import { b64, random } from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import type { OperationQr } from '../../../phone/operations.ts'
import { expectOk } from '../../helpers/world.ts'

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000'
const OK = { status: 'OK' }
const WRONG_KEYS = { knowledge: random(16) }

let world: OperationWorld
beforeAll(async () => {
  world = await startOperationWorld({ env: { PAWL_OTP_ATTEMPTS_PER_MINUTE: '100' } })
})
afterAll(() => world.close())

/** A user with an operation, as far as the scanned QR code. */
async function scanned(body: Record<string, unknown> = {}, version: (typeof PHONE_VERSIONS)[number] = '3.2') {
  const holder = await world.holder(version)
  const operation = await world.operation(holder.userId, body)
  return { ...holder, holder, operation, qr: await scan(holder, operation) }
}

async function scan({ phone }: Holder, { id }: TestOperation): Promise<OperationQr> {
  return phone.scanOperation(String(member(expectOk(await world.bank.offlineQr(id)).json, 'operationQrCodeData')))
}

/** Of passwords that come at once those beyond the maximum of 3 are told that the operation has ended, whether they are right or wrong. */
function expectThreeCounted(replies: readonly HttpReply[]): void {
  const codes = replies.map(errorCode)
  expect(codes.filter((code) => code === 'ERROR_OTP_INVALID')).toHaveLength(3)
  expect(codes.filter((code) => code === 'ERROR_OPERATION_STATE_CHANGE')).toHaveLength(replies.length - 3)
}

const typeOtp = ({ operationId, nonce }: OperationQr, otp: string): Promise<HttpReply> =>
  world.bank.offlineOtp(operationId, otp, nonce)

describe('GET /operations/offline/qr', () => {
  test.each(PHONE_VERSIONS)('is signed for the phone of %s and shows the operation', async (version) => {
    const holder = await world.holder(version)
    const { id } = await world.operation(holder.userId)
    const reply = expectOk(await world.bank.offlineQr(id.toUpperCase()))
    expect(Object.keys(reply.json as object)).toEqual(['operationQrCodeData', 'nonce'])
    const text = String(member(reply.json, 'operationQrCodeData'))
    expect(text.split('\n')).toHaveLength(7)
    expect(holder.phone.scanOperation(text)).toEqual({
      operationId: id,
      title: 'Payment',
      message: 'Please confirm the payment',
      data: PAYMENT_DATA,
      flags: 'B',
      totp: undefined,
      nonce: member(reply.json, 'nonce'),
    })
    const other = await world.holder(version)
    expect(() => other.phone.scanOperation(text)).toThrow('signature')
    expect(() => other.phone.scanOperation('no\nQR\ntext')).toThrow('has 7 lines or more, and this one has 3')
  })

  test('gives a new nonce each time and moves nothing', async () => {
    const holder = await world.holder()
    const { id } = await world.operation(holder.userId)
    await expectNothingCounted(world, holder, id, async () => {
      const replies = await Promise.all(Array.from({ length: 5 }, () => world.bank.offlineQr(id)))
      expect(new Set(replies.map((reply) => member(expectOk(reply).json, 'nonce'))).size).toBe(5)
    })
  })

  test('fills, escapes and translates title and message', async () => {
    const { userId } = await world.holder()
    const texts = {
      en: { title: 'In English', message: 'x', attributes: [] },
      cs: { title: 'Platba ${amount}', message: 'Řádek\n${note}\\ ${missing}.', attributes: [] },
    }
    const template = await world.template({ texts })
    const parameters = { ...PAYMENT, note: 'a\\b\nc' }
    const { id } = await world.operation(userId, { template, parameters, language: 'CS' })
    const text = String(member(expectOk(await world.bank.offlineQr(id)).json, 'operationQrCodeData'))
    expect(text.split('\n').slice(1, 3)).toEqual(['Platba 10', 'Řádek\\na\\\\b\\nc\\\\ .'])
    expect(text.split('\n')).toHaveLength(7)
  })

  test.each([
    [['possession_knowledge'], '', ''],
    [['possession_knowledge', 'possession_biometry'], 'XFC', 'BCFX'],
    [['possession_knowledge'], 'C', 'C'],
    [['possession', 'possession_biometry'], '', 'B'],
  ] as const)('of the factors %j and risk flags %j has the flags %j', async (signatureTypes, riskFlags, flags) => {
    const { qr } = await scanned({ template: await world.template({ signatureTypes, riskFlags }) })
    expect(qr.flags.split('').toSorted().join('')).toBe(flags)
  })

  test('shows the one-time password of a proximity check, the one that the bank sees', async () => {
    const template = await world.template({ isProximityCheckEnabled: true })
    await beginStep(world)
    const { qr, operation } = await scanned({ template })
    const shown = member(expectOk(await world.bank.readOperation(operation.id)).json, 'proximityOtp')
    expect(qr.totp).toMatch(/^\d{8}$/)
    expect(qr.totp).toBe(shown)
  })

  test.each([
    ['x', 1],
    ['ř', 2],
    ['💶', 4],
    // As it stands in the text: escaped.
    ['\\', 2],
  ])('fits into a QR code, or is refused, with many %j', async (character, bytes) => {
    const { userId } = await world.holder()
    // A parameter is shorter than a QR code.
    const names = Array.from({ length: 8 }, (_, i) => `note${i}`)
    const message = names.map((name) => `\${${name}}`).join('')
    const template = await world.template({ texts: { en: { title: 'Pay', message, attributes: [] } } })
    const qrOf = async (count: number) => {
      const notes = names.map((name, i) => [name, character.repeat(Math.min(500, Math.max(0, count - 500 * i)))])
      const { id } = await world.operation(userId, { template, parameters: { ...PAYMENT, ...Object.fromEntries(notes) } })
      return { id, reply: await world.bank.offlineQr(id) }
    }
    const textOf = (reply: HttpReply) => Buffer.from(String(member(expectOk(reply).json, 'operationQrCodeData')))
    // Signatures differ by a few bytes.
    const room = Math.floor((2_953 - textOf((await qrOf(1)).reply).length) / bytes) - 4
    expect(textOf((await qrOf(room)).reply).length).toBeGreaterThan(2_900)
    for (const count of [room + 20, 3_500]) {
      const { id, reply } = await qrOf(count)
      expectError(reply, 400, 'ERROR_REQUEST')
      expect(reply.text).toContain('2953')
      const { rows } = await sql`select 1 from operation_nonce where operation_id = ${id}`.execute(world.db)
      expect(rows).toEqual([])
    }
  })

  test('refuses what is unknown, foreign, over, or of a user without active registration', async () => {
    const side = await world.openSide()
    const { id } = await world.operation((await world.holder()).userId)
    expectError(await side.bank.offlineQr(id), 400, 'ERROR_OPERATION_NOT_FOUND')
    expectError(await world.bank.offlineQr(UNKNOWN_ID), 400, 'ERROR_OPERATION_NOT_FOUND')
    for (const query of ['', '?operationId=x', `?operationId=${id}&operationId=${id}`]) {
      expectError(await world.bank.call('GET', `/operations/offline/qr${query}`), 400, 'ERROR_REQUEST')
    }
    for (const status of ['APPROVED', 'REJECTED', 'FAILED', 'EXPIRED', 'CANCELED'] as const) {
      await world.db.updateTable('operation').set({ status }).where('operation_id', '=', id).execute()
      expectError(await world.bank.offlineQr(id), 400, 'ERROR_OPERATION_STATE_CHANGE')
    }
  })

  test('refuses one whose time is over though nobody has stored that', async () => {
    const { userId } = await world.holder()
    const { id } = await world.operation(userId, { template: await world.template({ expirationSeconds: 1 }) })
    await world.advance(SECOND)
    expectError(await world.bank.offlineQr(id), 400, 'ERROR_OPERATION_STATE_CHANGE')
  })

  test.each(['BLOCKED', 'removed', 'removed and registered again'])('refuses a user who is %s', async (state) => {
    const { userId } = await world.holder()
    const { id } = await world.operation(userId)
    expectOk(await (state === 'BLOCKED' ? world.bank.change(userId, 'BLOCK') : world.bank.remove(userId)))
    if (state.endsWith('again')) await world.register(userId)
    expectError(await world.bank.offlineQr(id), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    // The registration comes before the state of the operation.
    expectOk(await world.bank.cancelOperation(id))
    expectError(await world.bank.offlineQr(id), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expectError(await world.bank.offlineOtp(id, '1234567812345678', 'x'), 400, 'ERROR_REGISTRATION_NOT_FOUND')
  })

  test('refuses an operation that nobody has claimed', async () => {
    const { id } = await world.operation((await world.holder()).userId)
    await world.unclaim(id)
    expectError(await world.bank.offlineQr(id), 400, 'ERROR_REGISTRATION_NOT_FOUND')
  })
})

describe('a right password', () => {
  test.each(PHONE_VERSIONS)('approves, moves the counter and resets the failures in %s', async (version) => {
    const { holder, phone, operation, qr } = await scanned({}, version)
    expect((await phone.send(phone.prepareValidation({ wrongKeys: WRONG_KEYS }))).status).toBe(401)
    const { ctrByte } = await readCounters(phone)
    const reply = expectOk(await typeOtp(qr, phone.computeOtp(qr)))
    expect(reply.json).toEqual(OK)
    expect(await world.counts(holder, operation.id)).toEqual({
      state: STATE.ACTIVE,
      // One for the wrong code that the phone made before.
      ctrByte: ctrByte + 2,
      failedAttempts: 0,
      status: 'APPROVED',
      failureCount: 0,
    })
    expect(await world.stored(operation.id)).toMatchObject({
      finalizedAt: expect.any(Date),
      additionalData: { activationId: phone.state.activationId, applicationId: 'test-app', authFactor: 'possession_knowledge' },
    })
    expect(await world.audit(operation.id)).toEqual(['offline_otp_ok', 'operation_approved'])
    expectOk(await phone.send(phone.prepareValidation()))
  })

  test.each([
    ['16 digits', (otp: string) => otp.replace('-', '')],
    ['two groups of eight', (otp: string) => otp],
    ['four groups of four', (otp: string) => otp.replace('-', '').replace(/(\d{4})(?=\d)/g, '$1-')],
  ])('may be typed as %s', async (_, spell) => {
    const { phone, qr } = await scanned()
    expectOk(await typeOtp(qr, spell(phone.computeOtp(qr))))
  })

  test('may come with biometry where the template allows it', async () => {
    const { phone, operation, qr } = await scanned()
    expectOk(await typeOtp(qr, phone.computeOtp(qr, { factors: 'possession_biometry' })))
    expect((await world.stored(operation.id)).additionalData).toMatchObject({ authFactor: 'possession_biometry' })
    const template = await world.template({ signatureTypes: ['possession_knowledge'] })
    const other = await scanned({ template })
    const refused = await typeOtp(other.qr, other.phone.computeOtp(other.qr, { factors: 'possession_biometry' }))
    expectError(refused, 400, 'ERROR_OTP_INVALID')
    expect((await world.stored(other.operation.id)).failureCount).toBe(1)
    expectOk(await typeOtp(other.qr, other.phone.computeOtp(other.qr)))
  })

  test('approves nothing where the flags of the activation forbid it, and is not counted', async () => {
    const template = await world.template({ activationFlag: 'VIP' })
    const { holder, phone, operation, qr } = await scanned({ template })
    for (const flags of ['', 'VIPS', 'VIP,VERIFICATION_PENDING', 'VERIFICATION_IN_PROGRESS,VIP']) {
      await world.setFlags(holder, flags)
      expectError(await typeOtp(qr, phone.computeOtp(qr)), 400, 'ERROR_OTP_INVALID')
      expect(await world.counts(holder, operation.id)).toMatchObject({ failedAttempts: 0, failureCount: 0, status: 'PENDING' })
    }
    await world.setFlags(holder, 'OTHER,VIP')
    expectOk(await typeOtp(qr, phone.computeOtp(qr)))
  })

  test('is good once', async () => {
    const { holder, phone, operation, qr } = await scanned()
    const otp = phone.computeOtp(qr)
    expectOk(await typeOtp(qr, otp))
    await expectNothingCounted(world, holder, operation.id, async () => {
      expectError(await typeOtp(qr, otp), 400, 'ERROR_OPERATION_STATE_CHANGE')
      expectError(await typeOtp(qr, '0000000000000000'), 400, 'ERROR_OPERATION_STATE_CHANGE')
    })
  })

  test('is good once among ten at once', async () => {
    const { phone, operation, qr } = await scanned()
    const otp = phone.computeOtp(qr)
    const replies = await Promise.all(Array.from({ length: 10 }, () => typeOtp(qr, otp)))
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    // As if they had come one after the other.
    for (const reply of replies.filter(({ status }) => status !== 200)) {
      expectError(reply, 400, 'ERROR_OPERATION_STATE_CHANGE')
      expect(member(reply.json, 'responseObject', 'violations')).toEqual([{ fieldName: 'operation', hint: 'is APPROVED' }])
    }
    expect(await world.stored(operation.id)).toMatchObject({ status: 'APPROVED', failureCount: 0 })
    expect((await world.audit(operation.id)).filter((type) => type === 'operation_approved')).toHaveLength(1)
  })

  test('uses up its counter value for codes, and a code uses up that of a password', async () => {
    const { phone, qr } = await scanned()
    const before = phone.state.ctrData
    const otp = phone.computeOtp(qr)
    const after = phone.state.ctrData
    phone.state.ctrData = before
    const code = phone.prepareValidation()
    phone.state.ctrData = after
    expectOk(await typeOtp(qr, otp))
    expect((await phone.send(code)).status).toBe(401)
    const second = await scanned()
    const late = second.phone.computeOtp(second.qr)
    expectOk(await second.phone.send(second.phone.prepareValidation()))
    expectError(await typeOtp(second.qr, late), 400, 'ERROR_OTP_INVALID')
  })

  test('may be up to 19 steps ahead', async () => {
    const { phone, qr } = await scanned()
    phone.skip(19)
    expectOk(await typeOtp(qr, phone.computeOtp(qr)))
    expectOk(await phone.send(phone.prepareValidation()))
    const far = await scanned()
    far.phone.skip(20)
    expectError(await typeOtp(far.qr, far.phone.computeOtp(far.qr)), 400, 'ERROR_OTP_INVALID')
  })

  test('may belong to any of the newest ten nonces', async () => {
    const { holder, phone, operation, qr: first } = await scanned()
    const second = await scan(holder, operation)
    for (let i = 0; i < 9; i++) expectOk(await world.bank.offlineQr(operation.id))
    expectError(await typeOtp(first, phone.computeOtp(first)), 400, 'ERROR_OTP_INVALID')
    expect(await world.counts(holder, operation.id)).toMatchObject({ failedAttempts: 0, failureCount: 1, status: 'PENDING' })
    expectOk(await typeOtp(second, phone.computeOtp(second)))
  })

  test('belongs to none but the newest ten where requests at the same moment left eleven', async () => {
    const { holder, phone, operation, qr: first } = await scanned()
    for (let i = 0; i < 9; i++) expectOk(await world.bank.offlineQr(operation.id))
    await sql`update operation_nonce set created_at = created_at - interval '1 minute' where nonce = ${first.nonce}`.execute(
      world.db,
    )
    await sql`insert into operation_nonce (operation_id, nonce, created_at) values (${operation.id}, 'eleventh', now())`.execute(
      world.db,
    )
    expectError(await typeOtp(first, phone.computeOtp(first)), 400, 'ERROR_OTP_INVALID')
    expect(await world.counts(holder, operation.id)).toMatchObject({ failedAttempts: 0, failureCount: 1, status: 'PENDING' })
  })

  test('lets a phone whose online approval failed approve after all', async () => {
    const { phone, operation, qr } = await scanned()
    expectError(await phone.send(phone.prepareAuthorize({ ...operation, data: 'A2' })), 401, 'OPERATION_FAILED')
    expectOk(await typeOtp(qr, phone.computeOtp(qr)))
    expectError(await phone.send(phone.prepareAuthorize(operation)), 400, 'OPERATION_ALREADY_FINISHED')
  })
})

describe('a wrong password', () => {
  test('counts on operation and activation, up to both maxima', async () => {
    const { holder, phone, operation, qr } = await scanned()
    const { ctrByte } = await readCounters(phone)
    for (let failures = 1; failures < 5; failures++) {
      expectError(await typeOtp(qr, phone.computeOtp(qr, { wrongKeys: WRONG_KEYS })), 400, 'ERROR_OTP_INVALID')
      const counted = { state: STATE.ACTIVE, ctrByte, failedAttempts: failures, status: 'PENDING', failureCount: failures }
      expect(await world.counts(holder, operation.id)).toEqual(counted)
      expect(member((await world.bank.readOperation(operation.id)).json, 'failureCount')).toBe(failures)
    }
    expectError(await typeOtp(qr, phone.computeOtp(qr, { wrongKeys: WRONG_KEYS })), 400, 'ERROR_OTP_INVALID')
    const ended = { state: STATE.BLOCKED, ctrByte, failedAttempts: 5, status: 'FAILED', failureCount: 5 }
    expect(await world.counts(holder, operation.id)).toEqual(ended)
    expect(await world.audit(operation.id)).toEqual([
      ...Array.from({ length: 5 }, () => 'offline_otp_invalid'),
      'operation_failed',
    ])
    expectError(await typeOtp(qr, phone.computeOtp(qr)), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expectOk(await world.bank.change(holder.userId, 'UNBLOCK'))
    expectError(await typeOtp(qr, phone.computeOtp(qr)), 400, 'ERROR_OPERATION_STATE_CHANGE')
    expect(await world.counts(holder, operation.id)).toEqual({ ...ended, state: STATE.ACTIVE, failedAttempts: 0 })
  })

  test('fails the operation exactly at its maximum, whatever that of the activation is', async () => {
    const template = await world.template({ maxFailureCount: 2 })
    const { holder, phone, operation, qr } = await scanned({ template })
    for (let i = 0; i < 2; i++) {
      expectError(await typeOtp(qr, phone.computeOtp(qr, { wrongKeys: WRONG_KEYS })), 400, 'ERROR_OTP_INVALID')
    }
    const counted = { state: STATE.ACTIVE, failedAttempts: 2, status: 'FAILED', failureCount: 2 }
    expect(await world.counts(holder, operation.id)).toMatchObject(counted)
    expectError(await typeOtp(qr, phone.computeOtp(qr)), 400, 'ERROR_OPERATION_STATE_CHANGE')
    expect(await world.counts(holder, operation.id)).toMatchObject(counted)
  })

  test('blocks the activation while an operation that allows more stays pending', async () => {
    const template = await world.template({ maxFailureCount: 10 })
    const { holder, phone, operation, qr } = await scanned({ template })
    for (let i = 0; i < 5; i++) {
      expectError(await typeOtp(qr, phone.computeOtp(qr, { wrongKeys: WRONG_KEYS })), 400, 'ERROR_OTP_INVALID')
    }
    expect(await world.counts(holder, operation.id)).toMatchObject({ state: STATE.BLOCKED, status: 'PENDING', failureCount: 5 })
    await expectNothingCounted(world, holder, operation.id, async () => {
      expectError(await typeOtp(qr, '0000000000000000'), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    })
  })

  test.each<[string, (qr: OperationQr) => OperationQr]>([
    ['operation', (qr) => ({ ...qr, operationId: UNKNOWN_ID })],
    ['amount', (qr) => ({ ...qr, data: qr.data.replace('A10EUR', 'A11EUR') })],
    ['nonce', (qr) => ({ ...qr, nonce: b64(random(16)) })],
    ['proximity check', (qr) => ({ ...qr, totp: '12345678' })],
  ])('of another %s counts on the operation alone', async (_, change) => {
    const { holder, phone, operation, qr } = await scanned()
    expectError(await typeOtp(qr, phone.computeOtp(change(qr))), 400, 'ERROR_OTP_INVALID')
    expect(await world.counts(holder, operation.id)).toMatchObject({ failedAttempts: 0, failureCount: 1, status: 'PENDING' })
    expectOk(await typeOtp(qr, phone.computeOtp(qr)))
  })

  test('of another phone counts on the operation alone, one whose first group is right on the activation too', async () => {
    const { holder, phone, operation, qr } = await scanned()
    const other = await world.holder()
    const pressed = phone.computeOtp(qr, { factors: 'possession' })
    for (const otp of [other.phone.computeOtp(qr), `${pressed}-${pressed}`]) {
      expectError(await typeOtp(qr, otp), 400, 'ERROR_OTP_INVALID')
    }
    expectError(await typeOtp(qr, pressed), 400, 'ERROR_OTP_INVALID')
    // The second one began with the code of possession.
    expect(await world.counts(holder, operation.id)).toMatchObject({ failedAttempts: 1, failureCount: 2, status: 'PENDING' })
  })

  test('ten at once count exactly to the maximum', async () => {
    const template = await world.template({ maxFailureCount: 3 })
    const { holder, operation, qr } = await scanned({ template })
    const replies = await Promise.all(Array.from({ length: 10 }, (_, i) => typeOtp(qr, `0000000${i}-00000000`)))
    expectThreeCounted(replies)
    expect(await world.stored(operation.id)).toMatchObject({ status: 'FAILED', failureCount: 3 })
    expect((await readCounters(holder.phone)).failedAttempts).toBeLessThanOrEqual(5)
    expect((await world.audit(operation.id)).filter((type) => type === 'operation_failed')).toHaveLength(1)
  })
})

describe('a password with an unknown nonce', () => {
  test('ten at once count exactly to the maximum', async () => {
    const template = await world.template({ maxFailureCount: 3 })
    const { phone, operation, qr } = await scanned({ template })
    const otp = phone.computeOtp(qr)
    const replies = await Promise.all(Array.from({ length: 10 }, () => world.bank.offlineOtp(operation.id, otp, 'unknown')))
    expectThreeCounted(replies)
    expect(await world.stored(operation.id)).toMatchObject({ status: 'FAILED', failureCount: 3 })
  })

  test('counts on the operation alone', async () => {
    const template = await world.template({ maxFailureCount: 2 })
    const { holder, phone, operation, qr } = await scanned({ template })
    const { qr: foreign } = await scanned()
    const before = await readCounters(phone)
    const otp = phone.computeOtp(qr)
    expectError(await world.bank.offlineOtp(operation.id, otp, foreign.nonce), 400, 'ERROR_OTP_INVALID')
    expect(await world.counts(holder, operation.id)).toEqual({ ...before, status: 'PENDING', failureCount: 1 })
    expectError(await world.bank.offlineOtp(operation.id, otp, `${qr.nonce} `), 400, 'ERROR_OTP_INVALID')
    expect(await world.counts(holder, operation.id)).toEqual({ ...before, status: 'FAILED', failureCount: 2 })
    expect(await world.audit(operation.id)).toContain('operation_failed')
    expectError(await typeOtp(qr, otp), 400, 'ERROR_OPERATION_STATE_CHANGE')
  })
})

describe('what is not a password', () => {
  let victim: Awaited<ReturnType<typeof scanned>>
  beforeAll(async () => {
    victim = await scanned()
  })

  test.each([
    '123456781234567',
    '12345678123456789',
    '1234567-812345678',
    '1234-5678-12345678',
    '12345678--12345678',
    '-1234567812345678',
    '1234 5678 1234 5678',
    ' 1234567812345678',
    '1234567812345678 ',
    '１２３４５６７８１２３４５６７８',
    'abcdefghabcdefgh',
    '12345678',
    '0x12345678901234',
  ])('%j is refused and nothing is counted', async (otp) => {
    const { holder, operation, qr } = victim
    await expectNothingCounted(world, holder, operation.id, async () => {
      expectError(await typeOtp(qr, otp), 400, 'ERROR_OTP_INVALID')
    })
    // The form comes before everything that is stored.
    expectError(await world.bank.offlineOtp(UNKNOWN_ID, otp, qr.nonce), 400, 'ERROR_OTP_INVALID')
  })

  test.each<[string, unknown[]]>([
    ['missing members', [undefined, undefined, undefined]],
    ['a null password', ['ID', null, 'NONCE']],
    ['a blank password', ['ID', ' ', 'NONCE']],
    ['a password of a number', ['ID', 1234567812345678, 'NONCE']],
    ['a password with a line break', ['ID', '1234567812345678\n', 'NONCE']],
    ['a blank nonce', ['ID', '1234567812345678', '']],
    ['a nonce of another type', ['ID', '1234567812345678', ['NONCE']]],
    ['a nonce with U+0000', ['ID', '1234567812345678', 'a\u0000']],
    ['a nonce with half of a surrogate pair', ['ID', '1234567812345678', '\ud800']],
    ['an id that is not a UUID', ['x', '1234567812345678', 'NONCE']],
    ['an id in braces', ['{ID}', '1234567812345678', 'NONCE']],
  ])('%s is a structural error and nothing is counted', async (_, members) => {
    const { holder, operation, qr } = victim
    const fill = (value: unknown) =>
      typeof value === 'string' ? value.replace('ID', operation.id).replace('NONCE', qr.nonce) : value
    await expectNothingCounted(world, holder, operation.id, async () => {
      const [id, otp, nonce] = members.map(fill)
      const reply = await world.bank.offlineOtp(id, otp, nonce)
      expectError(reply, 400, 'ERROR_REQUEST')
      // A password is never repeated.
      expect(reply.text).not.toContain('1234567812345678')
    })
  })

  test('an unknown or foreign operation is unknown, and nothing is counted', async () => {
    const { holder, phone, operation, qr } = victim
    const side = await world.openSide()
    await expectNothingCounted(world, holder, operation.id, async () => {
      const otp = phone.computeOtp(qr)
      expectError(await side.bank.offlineOtp(operation.id, otp, qr.nonce), 400, 'ERROR_OPERATION_NOT_FOUND')
      expectError(await world.bank.offlineOtp(UNKNOWN_ID, otp, qr.nonce), 400, 'ERROR_OPERATION_NOT_FOUND')
    })
  })

  test('a password after the time of the operation changes nothing', async () => {
    const template = await world.template({ expirationSeconds: 60 })
    const { holder, phone, operation, qr } = await scanned({ template })
    await world.advance(MINUTE)
    await world.housekeeping()
    await expectNothingCounted(world, holder, operation.id, async () => {
      expectError(await typeOtp(qr, phone.computeOtp(qr)), 400, 'ERROR_OPERATION_STATE_CHANGE')
      expectError(await world.bank.offlineOtp(operation.id, '0000000000000000', 'x'), 400, 'ERROR_OPERATION_STATE_CHANGE')
    })
  })
})

describe('a password with a proximity check', () => {
  let template: string
  beforeAll(async () => {
    template = await world.template({ isProximityCheckEnabled: true })
  })

  test('covers the one-time password of the screen', async () => {
    const { phone, operation, qr } = await scanned({ template })
    expectError(await typeOtp(qr, phone.computeOtp({ ...qr, totp: undefined })), 400, 'ERROR_OTP_INVALID')
    expect((await world.stored(operation.id)).failureCount).toBe(1)
    expectOk(await typeOtp(qr, phone.computeOtp(qr)))
    expect(await world.stored(operation.id)).toMatchObject({ status: 'APPROVED', failureCount: 1 })
  })

  test('may be one step of 30 s old, not two', async () => {
    await beginStep(world)
    const first = await scanned({ template })
    await world.advance(30 * SECOND)
    expectOk(await typeOtp(first.qr, first.phone.computeOtp(first.qr)))
    const second = await scanned({ template })
    await world.advance(60 * SECOND)
    expectError(await typeOtp(second.qr, second.phone.computeOtp(second.qr)), 400, 'ERROR_OTP_INVALID')
    expect(await world.counts(second.holder, second.operation.id)).toMatchObject({ failedAttempts: 0, failureCount: 1 })
  })

  test('whose seed was altered in the database: no password is right, and no code is made any more', async () => {
    const { holder, phone, operation, qr } = await scanned({ template })
    await sql`update operation set proximity_seed = ${Buffer.alloc(60)} where operation_id = ${operation.id}`.execute(world.db)
    expectError(await typeOtp(qr, phone.computeOtp(qr)), 400, 'ERROR_OTP_INVALID')
    expectError(await world.bank.offlineQr(operation.id), 400, 'ERROR_OPERATION_NOT_FOUND')
    expect(await world.counts(holder, operation.id)).toMatchObject({ failedAttempts: 0, failureCount: 1, status: 'PENDING' })
  })

  test('is shown to the bank while the operation is pending, and to nobody else', async () => {
    const { holder, phone, operation, qr } = await scanned({ template })
    const read = await world.bank.readOperation(operation.id)
    expect(member(read.json, 'proximityOtp')).toMatch(/^\d{8}$/)
    const list = await phone.send(await phone.prepareTokenCall('list', holder.token))
    expect(expectOk(list).text).not.toContain(String(qr.totp))
    expectOk(await world.bank.cancelOperation(operation.id))
    expect(member((await world.bank.readOperation(operation.id)).json, 'proximityOtp')).toBeUndefined()
  })
})

describe('the attempts of one user', () => {
  test('are limited to ten in a minute, and those beyond count nothing', async () => {
    const limited = await startOperationWorld({ hasStoppedClock: true })
    try {
      const holder = await limited.holder()
      const other = await limited.holder()
      const template = await limited.template({ maxFailureCount: 30 })
      const { id } = await limited.operation(holder.userId, { template })
      // Without a nonce the activation is not counted and stays active.
      const type = () => limited.bank.offlineOtp(id, '1234567812345678', 'x')
      expectError(await limited.bank.offlineOtp(id, 'no password', 'x'), 400, 'ERROR_OTP_INVALID')
      for (let i = 0; i < 10; i++) expectError(await type(), 400, 'ERROR_OTP_INVALID')
      const reply = await type()
      expectError(reply, 429, 'HTTP_429')
      expect(Number(reply.headers['retry-after'])).toBeGreaterThanOrEqual(1)
      expect(Number(reply.headers['retry-after'])).toBeLessThanOrEqual(60)
      expect((await limited.stored(id)).failureCount).toBe(10)
      const free = await limited.operation(other.userId, { template })
      expectError(await limited.bank.offlineOtp(free.id, '1234567812345678', 'x'), 400, 'ERROR_OTP_INVALID')
      await limited.advance(61 * SECOND)
      expectError(await type(), 400, 'ERROR_OTP_INVALID')
    } finally {
      await limited.close()
    }
  })
})
