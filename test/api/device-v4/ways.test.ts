// Other ways that an activation of protocol 4.0 begins, changes and ends: providers, one-time passwords, expiry, restricted algorithms,
// replaced keys, upgraded tokens, offline approvals, and both dialects (v4 §2, §7.5, §8, §9, §11).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readQrCode } from '../../helpers/bank.ts'
import { expectError, MINUTE } from '../../helpers/expectations.ts'
import { member, sendJson } from '../../../phone/http.ts'
import { withHeader } from '../../../phone/header.ts'
import type { Prepared } from '../../../phone/v3/state.ts'
import { TOKEN_PATHS } from '../../../phone/operations.ts'
import { type Provider, startProvider } from '../../helpers/provider.ts'
import { expectRefusedV4, readStored, type RefusalV4 } from '../../helpers/refusals-v4.ts'
import { expectOk, registrationOf } from '../../helpers/world.ts'
import { type PhoneV4, startWorldV4, type WorldV4 } from '../../helpers/world-v4.ts'
import { TESTED_ALGORITHMS } from '../../helpers/phone-versions.ts'

const OTP = 'otp-that-is-right'
const UNSUPPORTED = 4
const BIOMETRY = 8

let provider: Provider
let v4: WorldV4
beforeAll(async () => {
  provider = await startProvider()
  v4 = await startWorldV4({
    env: {
      PAWL_ACTIVATION_PROVIDER_URL: provider.url,
      PAWL_ACTIVATION_PROVIDER_TIMEOUT_MS: '60000',
      PAWL_USER_INFO_URL: `${provider.url}/claims`,
      PAWL_USER_INFO_TIMEOUT_MS: '60000',
    },
  })
})
afterAll(async () => {
  await v4.close()
  provider.close()
})

const administer = async (change: Record<string, unknown>) =>
  expectOk(await v4.world.bank.call('PATCH', `/admin/applications/${v4.world.applicationId}`, change))
const registrations = () => `/admin/applications/${v4.world.applicationId}/registrations`
async function registerWith(rules: Readonly<Record<string, unknown>>) {
  const userId = v4.world.newUser()
  const reply = expectOk(await v4.world.bank.call('POST', registrations(), { userId, ...rules }))
  return { userId, code: readQrCode(reply).code }
}
const activateWith = async (phone: PhoneV4, code: string, activationOtp?: unknown) =>
  phone.send(await phone.prepareActivation(code, { layer2: { activationOtp } }))
const commit = (userId: string, otp?: unknown) => v4.world.bank.call('POST', `${registrations()}/commit`, { userId, otp })

describe.each(TESTED_ALGORITHMS)('without a code, with %s,', (algorithm) => {
  test('a phone is activated for the user whom the provider knows, committed by it or by the bank', async () => {
    for (const type of ['DIRECT', 'CUSTOM']) {
      const identityAttributes = { login: 'jan' }
      for (const isCommitted of [false, true]) {
        const userId = v4.world.newUser()
        provider.answerWith(() => ({ body: { userId, commit: isCommitted, customAttributes: { of: 'the provider' } } }))
        const phone = v4.newPhone(algorithm)
        const { layer1 } = await phone.activate('', { layer1: { type, identityAttributes } })
        expect(layer1['customAttributes']).toEqual({ of: 'the provider' })
        expect(provider.questions.findLast(({ path }) => path !== '/claims')?.json).toMatchObject({ type, identityAttributes })
        if (!isCommitted) expectOk(await v4.world.bank.commit(userId))
        await phone.exchange(phone.prepareConfirm(true))
        expect(await phone.readStatus()).toMatchObject({ state: 3, flags: BIOMETRY, isDeadlocked: false })
      }
    }
  })

  test('a phone whose keys are not valid leaves nothing behind', async () => {
    const userId = v4.world.newUser()
    provider.answerWith(() => ({ body: { userId } }))
    const phone = v4.newPhone(algorithm)
    const before = await readStored(v4.server)
    for (const layer2 of [
      { devicePublicKeys: { ecdsa: 'AAAA', mldsa: 'AAAA' } },
      { sharedSecretRequest: { algorithm: 'EC_P256', encapsulationKeys: ['AAAA'] } },
    ]) {
      const layer1 = { type: 'DIRECT', identityAttributes: { a: 'b' } }
      expectRefusedV4(await phone.send(await phone.prepareActivation('', { layer1, layer2 })), 'activation')
    }
    provider.answerWith(() => ({ status: 404 }))
    const layer1 = { type: 'CUSTOM', identityAttributes: { a: 'b' } }
    expectRefusedV4(await phone.send(await phone.prepareActivation('', { layer1 })), 'activation')
    const recovery = { layer1: { type: 'RECOVERY', identityAttributes: { recoveryCode: 'x' } } }
    expectRefusedV4(await phone.send(await phone.prepareActivation('', recovery)), 'validation')
    expect((await readStored(v4.server)) === before).toBe(true)
  })
})

describe('an OTP', () => {
  test('at the key exchange activates at once; wrong ones remove, missing and blank ones cost nothing', async () => {
    const { code } = await registerWith({ otp: OTP, otpPhase: 'ON_KEY_EXCHANGE' })
    const phone = v4.newPhone('EC_P384_ML_L3')
    for (const otp of [undefined, null, '', ' ', 'wrong']) expectRefusedV4(await activateWith(phone, code, otp), 'activation')
    await phone.activate(code, { layer2: { activationOtp: OTP } })
    // Active and not confirmed: codes are good (v4 §8.1).
    expect(await phone.readStatus()).toMatchObject({ state: 3, flags: 1, failedAttempts: 0 })
    await phone.exchange(phone.prepareValidation())
    await phone.exchange(phone.prepareConfirm(false))
    expect(await phone.readStatus()).toMatchObject({ state: 3, flags: 0 })
    const other = await registerWith({ otp: OTP, otpPhase: 'ON_KEY_EXCHANGE' })
    for (let i = 0; i < 5; i += 1) expectRefusedV4(await activateWith(phone, other.code, `wrong-${i}`), 'activation')
    expect(await registrationOf(v4.world, other.userId)).toBe('NONE')
    expectRefusedV4(await activateWith(phone, other.code, OTP), 'activation')
  })

  test('at the commit: too early is refused, too many wrong ones remove, and the phone is told', async () => {
    const { userId, code } = await registerWith({ otp: OTP })
    const phone = v4.newPhone('EC_P384')
    expectRefusedV4(await activateWith(phone, code, OTP), 'activation')
    await phone.activate(code)
    await phone.exchange(phone.prepareConfirm(true))
    for (const otp of [undefined, ' ', 'wrong']) expectError(await commit(userId, otp), 400, 'ERROR_OTP_INVALID')
    expectOk(await commit(userId, OTP))
    await phone.exchange(phone.prepareValidation())
    const other = await registerWith({ otp: OTP })
    const second = v4.newPhone('EC_P384')
    await second.activate(other.code)
    for (let i = 0; i < 5; i += 1) expectError(await commit(other.userId, `wrong-${i}`), 400, 'ERROR_OTP_INVALID')
    expect(await second.readStatus()).toMatchObject({ state: 5 })
    expectRefusedV4(await second.send(second.prepareConfirm(true)), 'code')
  })

  test('gets no further guesses by confirmations in between', async () => {
    const { userId, code } = await registerWith({ otp: OTP })
    const phone = v4.newPhone('EC_P384')
    await phone.activate(code)
    for (let i = 0; i < 4; i += 1) expectError(await commit(userId, `wrong-${i}`), 400, 'ERROR_OTP_INVALID')
    await phone.exchange(phone.prepareConfirm(true))
    expect(await phone.readStatus()).toMatchObject({ state: 2, failedAttempts: 4 })
    expectError(await commit(userId, 'wrong'), 400, 'ERROR_OTP_INVALID')
    expect(await registrationOf(v4.world, userId)).toBe('NONE')
  })
})

describe('an activation that is blocked or removed', () => {
  test.each([
    ['BLOCK', 4],
    ['REMOVE', 5],
  ])('by %s is told so and refused on every other endpoint; nothing changes', async (change, state) => {
    const { userId, phone } = await v4.activePhone('EC_P384')
    const token = await phone.createToken()
    const sealed = { temporaryKey: await phone.fetchTemporaryKey('activation') }
    expectOk(await v4.world.bank.change(userId, change))
    expect(await phone.readStatus()).toMatchObject({ state, distance: 0 })
    const before = await readStored(v4.server)
    const expected: readonly (readonly [RefusalV4, Prepared<unknown>])[] = [
      ['code', phone.prepareValidation()],
      ['code', phone.prepareConfirm(true)],
      ['code', phone.prepareRemove()],
      ['code', phone.prepareTokenRemove(token.id)],
      ['code', phone.prepareBiometryRemove()],
      ['code', phone.prepareUpgradeConfirm()],
      ['code', await phone.prepareTokenCreate(sealed)],
      ['code', await phone.preparePasswordChange(sealed)],
      ['code', await phone.prepareBiometryAdd(sealed)],
      ['code', await phone.prepareRename('x', sealed)],
      ['code', await phone.prepareDetail(token, sealed)],
      ['vault', await phone.prepareVaultUnlock('KDK_APP_VAULT_2FA', sealed)],
      ['encryption', await phone.prepareUserInfo(sealed)],
      ['configuration', await phone.prepareConfiguration('activation', sealed)],
    ]
    for (const [refusal, request] of expected) {
      expectRefusedV4(await phone.send(request), refusal, request.path)
      const svc = Object.entries(request.headers).map(([name, value]) => [name.replace('X-PowerAuth', 'X-Svc'), value] as const)
      const reply = await phone.send({ ...request, headers: Object.fromEntries(svc) })
      // What is refused before all checks have passed uses up nothing; the configuration is refused after them.
      expectRefusedV4(reply, refusal === 'configuration' ? 'encryption' : refusal, request.path, 'SVC_')
    }
    expect((await readStored(v4.server)) === before, 'something was changed').toBe(true)
  })

  test('is blocked by any code once its attempts are at the maximum', async () => {
    const { userId, phone } = await v4.activePhone('EC_P384')
    const { db } = v4.server.context
    const { activationId } = phone.state
    await db.updateTable('activation').set({ failed_attempts: 5 }).where('activation_id', '=', activationId).execute()
    expectRefusedV4(await phone.send(phone.prepareValidation({ factors: 'possession' })), 'code')
    expect(await registrationOf(v4.world, userId)).toBe('BLOCKED')
  })
})

describe('an application that admits fewer algorithms', () => {
  test('tells its phones, gives them no more keys, and takes their codes', async () => {
    const { phone } = await v4.activePhone('EC_P384_ML_L3')
    const temporaryKey = await phone.fetchTemporaryKey('activation')
    const { code } = await v4.world.register()
    const created = await v4.newPhone('EC_P384_ML_L3').prepareActivation(code)
    await administer({ algorithms: ['EC_P384'] })
    expect(await phone.readStatus({ temporaryKey })).toMatchObject({ state: 3, flags: BIOMETRY | UNSUPPORTED })
    await expect(phone.fetchTemporaryKey('activation')).rejects.toThrow('ERR_TEMPORARY_KEY')
    await expect(phone.fetchTemporaryKey('application')).rejects.toThrow('ERR_TEMPORARY_KEY')
    expectRefusedV4(await phone.send(created), 'activation')
    await phone.exchange(phone.prepareValidation())
    await administer({ algorithms: [] })
    expect(await phone.readStatus()).toMatchObject({ flags: BIOMETRY })
    expectOk(await v4.newPhone('EC_P384').send(await v4.newPhone('EC_P384').prepareActivation(code)))
  })
})

describe('a key of biometry', () => {
  test('that is replaced twice leaves the first and the last; which one is used is kept', async () => {
    const { phone } = await v4.activePhone('EC_P384')
    const validate = () => phone.send(phone.prepareValidation({ factors: 'possession_biometry' }))
    const [first = new Uint8Array(0)] = [phone.state.keys?.biometry]
    const second = await phone.exchange(await phone.prepareBiometryAdd())
    const third = await phone.exchange(await phone.prepareBiometryAdd())
    phone.adopt({ biometry: second })
    expectRefusedV4(await validate(), 'code')
    phone.adopt({ biometry: third })
    expectOk(await validate())
    phone.adopt({ biometry: first })
    expectRefusedV4(await validate(), 'code')
    await phone.exchange(phone.prepareBiometryRemove())
    phone.adopt({ biometry: third })
    expectRefusedV4(await validate(), 'code')
    // After the removal the next one is current at once; using it forgets no other.
    const fourth = await phone.exchange(await phone.prepareBiometryAdd())
    const fifth = await phone.exchange(await phone.prepareBiometryAdd())
    phone.adopt({ biometry: fourth })
    expectOk(await validate())
    phone.adopt({ biometry: fifth })
    expectRefusedV4(await validate(), 'code')
    await phone.exchange(phone.prepareValidation())
    expect(await phone.readStatus()).toMatchObject({ failedAttempts: 0, isDeadlocked: false })
  })

  test('opens KEK_DEVICE_PRIVATE where the application says so, KDK_APP_VAULT_KNOWLEDGE never', async () => {
    const { phone } = await v4.activePhone('EC_P384')
    const ask = async (identifier: string) =>
      phone.send(await phone.prepareVaultUnlock(identifier, { factors: 'possession_biometry' }))
    await administer({ vaultFactors: ['POSSESSION_BIOMETRY'] })
    expectOk(await ask('KEK_DEVICE_PRIVATE'))
    expectRefusedV4(await ask('KDK_APP_VAULT_KNOWLEDGE'), 'vault')
    await administer({ vaultFactors: [] })
    expectRefusedV4(await ask('KEK_DEVICE_PRIVATE'), 'vault')
    expectOk(await ask('KDK_APP_VAULT_2FA'))
  })
})

describe('a token of protocol 3', () => {
  test('is good after the upgrade in a header of either generation', async () => {
    const { phone: old } = await v4.world.activePhone('3.3')
    const token = await old.createToken()
    const phone = v4.newPhone('EC_P384')
    phone.state.activationId = old.state.activationId
    const authorize = (body: Uint8Array) =>
      old.prepareSigned({ path: '/pa/v4/upgrade/start', resourceId: '/pa/upgrade/start', body: Buffer.from(body).toString() })
        .headers
    await phone.exchange(await phone.prepareUpgradeStart(authorize, { counter: 2 }))
    await phone.exchange(phone.prepareUpgradeConfirm())
    expectOk(await old.send(await old.prepareTokenCall('list', token)))
    const { id, secret } = token
    expect(secret).toHaveLength(16)
    expectOk(await phone.send(await phone.prepareDetail({ id, secret, factors: 'possession_knowledge' })))
    const header = phone.tokenHeader({ id, secret, factors: 'possession_knowledge' }, await phone.serverTime())
    expectOk(await sendJson(v4.world.url, 'POST', TOKEN_PATHS.list, {}, header))
  })
})

describe('claims of a provider', () => {
  test('are told, and its failure is one of user information in either dialect', async () => {
    const { phone } = await v4.activePhone('EC_P384')
    provider.answerWith(() => ({ body: { given_name: 'Jan' } }))
    expect(await phone.exchange(await phone.prepareUserInfo())).toMatchObject({ given_name: 'Jan' })
    provider.answerWith(() => ({ status: 500 }))
    expectRefusedV4(await phone.send(await phone.prepareUserInfo()), 'userInfo')
    const svc = phone.speaking({ dialect: 'Svc' })
    expectRefusedV4(await svc.send(await svc.prepareUserInfo()), 'userInfo', '', 'SVC_')
  })
})

describe('dialects', () => {
  test('the status is a blob for X-PowerAuth and a name with the end of the block for X-Svc', async () => {
    const { userId, phone } = await v4.pendingPhone('EC_P384')
    const svc = phone.speaking({ dialect: 'Svc' })
    const ask = async () => svc.exchange(await svc.prepareEncrypted('/pa/v4/activation/status', 'activation'))
    expect(await ask()).toEqual({ activationStatus: 'PENDING_COMMIT', timestampBlockExpire: null })
    expectOk(await v4.world.bank.commit(userId))
    expect(await ask()).toEqual({ activationStatus: 'ACTIVE', timestampBlockExpire: null })
    expectOk(await v4.world.bank.change(userId, 'BLOCK'))
    expect(await ask()).toEqual({ activationStatus: 'BLOCKED', timestampBlockExpire: null })
    expect(Object.keys((await phone.readStatus()).answer)).toEqual(['activationStatus'])
    expectOk(await v4.world.bank.remove(userId))
    expect(await ask()).toEqual({ activationStatus: 'REMOVED', timestampBlockExpire: null })
  })

  test('the scheme word of the contract belongs to its headers', async () => {
    const { phone } = await v4.activePhone('EC_P384')
    for (const scheme of ['Svc', 'PowerAuth']) {
      const svc = phone.speaking({ dialect: 'Svc', scheme })
      expectOk(await svc.send(svc.prepareValidation()))
    }
    const request = withHeader(phone.prepareValidation(), 'X-PowerAuth-Authorization', 'Svc x="y"')
    expectRefusedV4(await phone.send(request), 'code')
  })
})

describe('an operation that is approved offline', () => {
  const PAYMENT = { amount: '10', currency: 'EUR', iban: 'DE89370400440532013000' }

  test.each(TESTED_ALGORITHMS)('shows a QR code that %s proves, and takes each password once', async (algorithm) => {
    const { userId, phone } = await v4.activePhone(algorithm)
    const create = async () => {
      const body = { userId, template: 'payment', parameters: PAYMENT, language: 'en' }
      const reply = await v4.world.bank.createOperation(body)
      return String(member(expectOk(reply).json, 'operationId'))
    }
    const scan = async (operationId: string) => {
      const { json } = expectOk(await v4.world.bank.offlineQr(operationId))
      const text = String(member(json, 'operationQrCodeData'))
      expect(phone.isPersonalized(text)).toBe(true)
      const [, , , operationData = ''] = text.split('\n')
      return { operationId, operationData, nonce: String(member(json, 'nonce')) }
    }
    const approve = (operationId: string, otp: string, nonce: string) => v4.world.bank.offlineOtp(operationId, otp, nonce)
    const qr = await scan(await create())
    const wrong = phone.typeOtp({ ...qr, wrongKeys: { knowledge: Buffer.alloc(32) } })
    expectError(await approve(qr.operationId, wrong, qr.nonce), 400, 'ERROR_OTP_INVALID')
    expect(await phone.readStatus()).toMatchObject({ failedAttempts: 1 })
    const otp = phone.typeOtp(qr)
    expect(otp).toMatch(/^\d{8}-\d{8}$/)
    expectOk(await approve(qr.operationId, otp, qr.nonce))
    expect(await phone.readStatus()).toMatchObject({ failedAttempts: 0, distance: 0, isDeadlocked: false })
    expectError(await approve(qr.operationId, otp, qr.nonce), 400, 'ERROR_OPERATION_STATE_CHANGE')
    // While a key is replaced both are good, offline too.
    const knowledge = await phone.exchange(await phone.preparePasswordChange())
    phone.adopt({ knowledge })
    const next = await scan(await create())
    expectOk(await approve(next.operationId, phone.typeOtp(next), next.nonce))
    await phone.exchange(phone.prepareValidation())
    // With biometry switched off its codes are wrong ones, and those of knowledge are good.
    await phone.exchange(phone.prepareBiometryRemove())
    const last = await scan(await create())
    const biometric = phone.typeOtp({ ...last, factors: 'possession_biometry' })
    expectError(await approve(last.operationId, biometric, last.nonce), 400, 'ERROR_OTP_INVALID')
    expectOk(await approve(last.operationId, phone.typeOtp(last), last.nonce))
  })
})

test('a registration that runs out, confirmed or not, is REMOVED for its phone and gone for its bank', async () => {
  const confirmed = await v4.pendingPhone('EC_P384')
  await confirmed.phone.exchange(confirmed.phone.prepareConfirm(true))
  expect(await confirmed.phone.readStatus()).toMatchObject({ state: 2, flags: BIOMETRY })
  const waiting = await v4.pendingPhone('EC_P384_ML_L3')
  const { userId, code } = await v4.world.register()
  await v4.world.advance(5 * MINUTE + 1000)
  for (const { userId: owner, phone } of [confirmed, waiting]) {
    expect(await phone.readStatus()).toMatchObject({ state: 5 })
    expectRefusedV4(await phone.send(phone.prepareConfirm(true)), 'code')
    expectError(await v4.world.bank.commit(owner), 400, 'ERROR_REGISTRATION_NOT_FOUND')
    expect(await registrationOf(v4.world, owner)).toBe('NONE')
  }
  const late = v4.newPhone('EC_P384')
  expectRefusedV4(await activateWith(late, code), 'activation')
  expect(await registrationOf(v4.world, userId)).toBe('NONE')
})

// The last: the phones above know other keys.
describe('an application that was made before protocol 4.0', () => {
  test('gets its missing master keys when phones ask for the first time, all at once', async () => {
    const { db } = v4.server.context
    const keys = db.deleteFrom('master_key_pair').where('application_id', '=', v4.world.applicationId)
    await keys.where('algorithm', '<>', 'EC_P256').execute()
    const phone = v4.newPhone('EC_P384_ML_L5')
    const requests = Array.from({ length: 8 }, () => phone.newTemporaryKeyRequest('application'))
    const replies = await Promise.all(requests.map(({ json }) => sendJson(v4.world.url, 'POST', '/pa/v4/keystore/create', json)))
    const stored = db.selectFrom('master_key_pair').select(['algorithm', 'public_key as publicKey'])
    const found = await stored.where('application_id', '=', v4.world.applicationId).execute()
    const publicKeys = new Map(found.map(({ algorithm, publicKey }) => [algorithm, publicKey]))
    expect(found).toHaveLength(3)
    const app = {
      ...v4.app,
      p384: publicKeys.get('EC_P384') ?? new Uint8Array(0),
      mlDsa87: publicKeys.get('ML_DSA_87') ?? new Uint8Array(0),
    }
    // Each answer is signed with the keys that were stored.
    const configured = v4.newPhone('EC_P384_ML_L5', { app })
    for (const [i, request] of requests.entries()) {
      const reply = replies[i]
      if (reply) expect(configured.openTemporaryKey('application', request, reply).id).toEqual(expect.any(String))
    }
  })
})
