// Codes without connection over the reference's back-end API: QR texts of the bank's own, and what a user types in (cloud §15.3).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bigEndian, hmac, isEcdsa, random } from '../../../phone/v3/crypto.ts'
import { type Bank, readApplication } from '../../helpers/bank.ts'
import { createCaller, RESOURCE, verdictOf } from '../../helpers/door.ts'
import { expectError, readCounters } from '../../helpers/expectations.ts'
import { startOperationWorld, type OperationWorld, PAYMENT } from '../../helpers/operation-world.ts'
import { askReference, callReference, DIALECTS, WORDS } from '../../helpers/reference.ts'
import { expectOk } from '../../helpers/world.ts'
import { openPhonesV4, type PhonesV4 } from '../../helpers/world-v4.ts'

let world: OperationWorld
let v4: PhonesV4
let bank: Bank
let foreign: Bank
beforeAll(async () => {
  world = await startOperationWorld({ env: { PAWL_REFERENCE_API: 'true', PAWL_OTP_ATTEMPTS_PER_MINUTE: '20' } })
  v4 = await openPhonesV4(world)
  bank = await createCaller(world.bank, 'spring', 'integration', world.applicationId)
  await world.bank.createApplication('other-offline')
  foreign = await createCaller(world.bank, 'other-spring', 'integration', 'other-offline')
})
afterAll(() => world.close())

const anId = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'
const base64 = (text: string | Uint8Array): string => Buffer.from(text as string).toString('base64')

/** RFC 6238 with SHA-256 and eight digits. */
function totpOf(seed: Uint8Array, step: number): string {
  const mac = Buffer.from(hmac(seed, bigEndian(step, 8)))
  const value = mac.readUInt32BE((mac.at(-1) ?? 0) & 15) & 0x7fffffff
  return String(value % 100_000_000).padStart(8, '0')
}

const OFFLINE = '/operation/authorize/offline'

describe.each(DIALECTS)('in the words of %s', (dialect) => {
  const { place, code, isValid, factors } = WORDS[dialect]
  const path = `${place}/offline/verify`
  const right = { [isValid]: true }
  const wrong = { [isValid]: false }
  const dataOf = (nonce: string, body = 'order-7&A1*A10EUR', resourceId = OFFLINE) =>
    ['POST', base64(resourceId), nonce, base64(body)].join('&')
  const qrOf = (nonce: string, more: object = {}) => ({
    operationId: 'order-7',
    title: '',
    message: '',
    data: 'A1*A10EUR',
    flags: '',
    totp: undefined,
    nonce,
    ...more,
  })

  test('a phone of 3.x scans what was made for it, and its code is good once', async () => {
    const { phone, userId } = await world.activePhone('3.3')
    const { activationId } = phone.state
    const lines = 'order-7\nPay\nTen euro\nA1*A10EUR\nB'
    const made = await askReference(bank, dialect, `${place}/offline/personalized/create`, {
      activationId,
      data: lines,
      nonce: null,
      proximityCheck: null,
    })
    const qr = phone.scanOperation(String(made['offlineData']))
    expect(qr).toMatchObject({ operationId: 'order-7', data: 'A1*A10EUR', nonce: made['nonce'] })
    const asked = {
      activationId,
      data: dataOf(qr.nonce),
      [code]: phone.computeOtp(qr),
      componentLength: 8,
      allowBiometry: false,
      proximityCheck: null,
    }
    expect(await askReference(bank, dialect, path, asked)).toEqual({
      ...right,
      activationId,
      activationStatus: 'ACTIVE',
      userId,
      applicationId: world.applicationId,
      [factors]: 'POSSESSION_KNOWLEDGE',
      remainingAttempts: 5,
      applicationRoles: [],
      activationFlags: [],
    })
    const rows = await world.db.selectFrom('audit_trail').selectAll().where('user_id', '=', userId).orderBy('sequence').execute()
    expect(rows.at(-1)).toMatchObject({
      event_type: 'offline_code_ok',
      event_data: expect.stringMatching(/^POST\n\/operation\/authorize\/offline\n17\n[0-9a-f]{64}$/),
      verified_by: 'spring',
    })
    const again = await askReference(bank, dialect, path, asked)
    expect(again).toMatchObject({ ...wrong, remainingAttempts: 5, activationStatus: 'ACTIVE' })
    expect(again).not.toHaveProperty(factors)
    expect(await verdictOf(bank, phone.prepareSigned({ path: '/', resourceId: RESOURCE, body: 'x' }))).toMatchObject({
      isValid: true,
    })
  })

  test('a code of 4.0 is good once among twenty at once, in groups of six as well', async () => {
    const { phone } = await v4.activePhone('EC_P384')
    const activationId = phone.state.activationId
    const nonce = base64(random(16))
    const otp = phone.typeOtp({ operationId: 'order-7', operationData: 'A1*A10EUR', nonce, length: 6 })
    const asked = { activationId, data: dataOf(nonce), [code]: otp, componentLength: 6, allowBiometry: true }
    const verdicts = await Promise.all(Array.from({ length: 20 }, () => askReference(bank, dialect, path, asked)))
    expect(verdicts.filter((verdict) => verdict[isValid] === true)).toHaveLength(1)
    expectError(await callReference(bank, dialect, path, asked), 429, 'HTTP_429')
  })

  test('biometry counts where it is allowed, and a proximity check is part of what is covered', async () => {
    const { phone } = await world.activePhone('3.3')
    const { activationId } = phone.state
    const nonce = base64(random(16))
    const verify = (more: object) => askReference(bank, dialect, path, { activationId, data: dataOf(nonce), ...more })
    const biometric = phone.computeOtp(qrOf(nonce), { factors: 'possession_biometry' })
    expect(await verify({ [code]: biometric, allowBiometry: false })).toMatchObject({ ...wrong, remainingAttempts: 4 })
    expect(await verify({ [code]: biometric, allowBiometry: true })).toMatchObject({ ...right, [factors]: 'POSSESSION_BIOMETRY' })
    const seed = random(16)
    const made = await askReference(bank, dialect, `${place}/offline/personalized/create`, {
      activationId,
      data: 'order-7\nPay\nTen euro\nA1*A10EUR\nB',
      nonce,
      proximityCheck: { seed: base64(seed), stepLength: 3600 },
    })
    const qr = phone.scanOperation(String(made['offlineData']))
    expect([qr.nonce, qr.totp]).toEqual([nonce, totpOf(seed, Math.floor(Date.now() / 3_600_000))])
    const proximityCheck = { seed: base64(seed), stepLength: 3600, stepCount: 1 }
    expect(await verify({ [code]: phone.computeOtp({ ...qr, totp: undefined }), proximityCheck })).toMatchObject(wrong)
    expect(await verify({ [code]: phone.computeOtp(qr), proximityCheck })).toMatchObject(right)
  })

  test('a body that is no text stays as it is beside a proximity check', async () => {
    const { phone } = await world.activePhone('3.3')
    const seed = random(16)
    const nonce = base64(random(16))
    const body = Buffer.from('ff00fe26c3', 'hex')
    const totp = totpOf(seed, Math.floor(Date.now() / 3_600_000))
    const asked = {
      activationId: phone.state.activationId,
      data: ['POST', base64('/cash'), nonce, base64(body)].join('&'),
      [code]: phone.answerOffline({ resourceId: '/cash', body, nonce, totp }),
      proximityCheck: { seed: base64(seed), stepLength: 3600, stepCount: 1 },
    }
    // The reference reads it as UTF-8 before it adds the password, so that another body would do.
    const read = Buffer.from(body.toString())
    expect(
      await askReference(bank, dialect, path, { ...asked, data: asked.data.replace(base64(body), base64(read)) }),
    ).toMatchObject(wrong)
    expect(await askReference(bank, dialect, path, asked)).toMatchObject(right)
  })

  test('only guesses count, and the fifth blocks', async () => {
    const { phone } = await world.activePhone('3.3')
    const { activationId } = phone.state
    const nonce = base64(random(16))
    const verify = (otp: string) => askReference(bank, dialect, path, { activationId, data: dataOf(nonce), [code]: otp })
    for (const text of ['00000000-00000000', '1', '00000000-00000000-00000000', 'x'])
      expect(await verify(text)).toMatchObject({ ...wrong, activationId })
    expect(await readCounters(phone)).toMatchObject({ failedAttempts: 0 })
    const guess = () => phone.computeOtp(qrOf(nonce), { wrongKeys: { knowledge: random(32) } })
    for (let left = 4; left >= 0; left -= 1) expect(await verify(guess())).toMatchObject({ ...wrong, remainingAttempts: left })
    expect(await verify(phone.computeOtp(qrOf(nonce)))).toMatchObject({ ...wrong, activationStatus: 'BLOCKED' })
  })

  test('what is of another application, of none or not well-formed is wrong or refused', async () => {
    const { phone } = await world.activePhone('3.3')
    const { activationId } = phone.state
    const nonce = base64(random(16))
    const asked = { activationId, data: dataOf(nonce), [code]: phone.computeOtp(qrOf(nonce)) }
    const unknown = { ...wrong, activationStatus: 'REMOVED', applicationRoles: [], activationFlags: [] }
    expect(await askReference(foreign, dialect, path, asked)).toEqual({ ...unknown, activationId })
    expect(await askReference(bank, dialect, path, { ...asked, activationId: anId })).toEqual({ ...unknown, activationId: anId })
    for (const data of ['', `${asked.data}&offline`, asked.data.replace('POST', 'GET')])
      expect(await askReference(bank, dialect, path, { ...asked, data })).toMatchObject(wrong)
    for (const more of [
      { componentLength: 4 },
      { proximityCheck: { seed: 'x', stepLength: 30, stepCount: 1 } },
      { [code]: undefined },
    ])
      expectError(await callReference(bank, dialect, path, { ...asked, ...more }), 400, 'ERR0024')
    expect(await askReference(bank, dialect, path, asked)).toMatchObject(right)
  })

  test('a code for an operation of pawl is not taken out of circulation', async () => {
    const holder = await world.holder()
    const template = await world.template()
    const operation = expectOk(await world.bank.createOperation({ userId: holder.userId, template, parameters: PAYMENT }))
      .json as { operationId: string }
    const nonce = base64(random(16))
    const data = dataOf(nonce, `${operation.operationId}&A1*A10EUR`)
    const asked = { activationId: holder.phone.state.activationId, data, [code]: '12345678-12345678' }
    expectError(await callReference(bank, dialect, path, asked), 400, 'ERR0024')
    // In another application it is no operation.
    expect(await askReference(foreign, dialect, path, asked)).toMatchObject(wrong)
  })

  test('any bytes may be covered where an id of an operation would stand', async () => {
    const { phone } = await world.activePhone('3.3')
    const { activationId } = phone.state
    const nonce = base64(random(16))
    for (const id of ['\0'.repeat(36), `${anId.slice(1)}\0`, '\u00e9'.repeat(18), anId]) {
      const asked = { activationId, data: dataOf(nonce, `${id}&A1*A10EUR`), [code]: '12345678-12345678' }
      expect(await askReference(bank, dialect, path, asked)).toMatchObject({ ...wrong, activationStatus: 'ACTIVE' })
    }
    const operationId = '\0'.repeat(36)
    const asked = {
      activationId,
      data: dataOf(nonce, `${operationId}&A1*A10EUR`),
      [code]: phone.computeOtp(qrOf(nonce, { operationId })),
    }
    expect(await askReference(bank, dialect, path, asked)).toMatchObject(right)
  })

  test('a text for one phone is not that of an operation of pawl: it would show another title', async () => {
    const holder = await world.holder()
    const template = await world.template()
    const { operationId } = expectOk(await world.bank.createOperation({ userId: holder.userId, template, parameters: PAYMENT }))
      .json as { operationId: string }
    const create = (data: string) =>
      callReference(bank, dialect, `${place}/offline/personalized/create`, {
        activationId: holder.phone.state.activationId,
        data,
        nonce: base64(random(16)),
      })
    expectError(await create(`${operationId}\nLottery\nYou win\nA1*A10EUR\n`), 400, 'ERR0024')
    expectError(await create(operationId), 400, 'ERR0024')
    expectOk(await create(`${anId}\nPay\nTen euro\nA1*A10EUR\n`))
  })

  test('a credential of another application takes no place of the activation, whose places are one number over both ways', async () => {
    const { phone, userId } = await world.holder()
    const { activationId } = phone.state
    const garbage = { activationId, data: dataOf(base64(random(16))), [code]: '12345678-12345678' }
    for (let i = 0; i < 20; i += 1) expectOk(await callReference(foreign, dialect, path, garbage))
    expectError(await callReference(foreign, dialect, path, garbage), 429, 'HTTP_429')
    expectOk(await callReference(bank, dialect, path, garbage))
    const template = await world.template()
    const { operationId } = expectOk(await world.bank.createOperation({ userId, template, parameters: PAYMENT })).json as {
      operationId: string
    }
    const approve = () => world.bank.offlineOtp(operationId, '12345678-12345678', base64(random(16)))
    expect((await approve()).status).toBe(400)
    for (let i = 2; i < 20; i += 1) await callReference(bank, dialect, path, garbage)
    expectError(await approve(), 429, 'HTTP_429')
  })

  test('a text for all phones is signed by the master key', async () => {
    const { applicationId } = world
    const made = await askReference(bank, dialect, `${place}/offline/non-personalized/create`, {
      applicationId,
      data: 'hello\nthere',
    })
    const text = String(made['offlineData'])
    expect(text.split('\n').slice(0, -1)).toEqual(['hello', 'there', made['nonce']])
    expect(Buffer.from(String(made['nonce']), 'base64')).toHaveLength(16)
    const head = text.slice(0, text.lastIndexOf('\n') + 2)
    expect(head).toMatch(/\n0$/)
    const { masterPublicKey } = readApplication(await world.bank.call('GET', `/admin/applications/${applicationId}`))
    expect(isEcdsa(masterPublicKey, Buffer.from(head), Buffer.from(text.slice(head.length), 'base64'))).toBe(true)
    expectError(
      await callReference(bank, dialect, `${place}/offline/non-personalized/create`, {
        applicationId: 'other-offline',
        data: 'x',
      }),
      400,
      'ERR0015',
    )
  })

  test('a text for one phone needs one that is active', async () => {
    const { phone, userId } = await world.activePhone('3.3')
    const create = (more: object, caller = bank) =>
      callReference(caller, dialect, `${place}/offline/personalized/create`, {
        activationId: phone.state.activationId,
        data: 'x',
        ...more,
      })
    expectError(await create({ activationId: anId }), 400, 'ERR0009')
    expectError(await create({}, foreign), 400, 'ERR0009')
    expectError(await create({ nonce: 'x' }), 400, 'ERR0024')
    expectError(await create({ data: 'x'.repeat(2501) }), 400, 'ERR0024')
    expectError(await create({ proximityCheck: { seed: base64(random(8)), stepLength: 30 } }), 400, 'ERR0024')
    expectOk(await world.bank.change(userId, 'BLOCK'))
    expectError(await create({}), 400, 'ERR0008')
  })
})
