// The refusals of protocol 4.0, and the attempts that they cost (v4 §5 to §9, §12).
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { member, type HttpReply } from '../../../phone/http.ts'
import { random } from '../../../phone/v3/crypto.ts'
import { v4 as protocol } from '../../../src/protocol/v4/index.ts'
import { withPair } from '../../../phone/header.ts'
import { expectOk, registrationOf } from '../../helpers/world.ts'
import { readAppV4, startWorldV4, type PhoneV4, type WorldV4 } from '../../helpers/world-v4.ts'

let v4: WorldV4
beforeAll(async () => {
  v4 = await startWorldV4()
})
afterAll(() => v4.close())

const refusalOf = ({ status, json }: HttpReply) => [
  status,
  member(json, 'responseObject', 'code'),
  member(json, 'responseObject', 'message'),
]
const UNAUTHENTICATED = [401, 'ERR_AUTHENTICATION', 'POWER_AUTH_CODE_INVALID']
const NOT_ENCRYPTED = [400, 'ERR_ENCRYPTION', 'POWER_AUTH_ENCRYPTION_FAILED']
const NOT_ACTIVATED = [400, 'ERR_ACTIVATION', 'POWER_AUTH_ACTIVATION_INVALID']
const INVALID = [400, 'ERR_VALIDATION', expect.any(String)]
const NO_KEY = [400, 'ERR_TEMPORARY_KEY', 'POWER_AUTH_TEMPORARY_KEY_FAILURE']

/** Inner layers with a member missing, null, blank, empty or of another type, which a hybrid algorithm needs. */
function incompleteLayers(): Record<string, unknown>[] {
  const request = { algorithm: 'EC_P384_ML_L3', encapsulationKeys: ['AAAA', 'AAAA'] }
  const keys = { ecdsa: 'AAAA', mldsa: 'AAAA' }
  const absent = [undefined, null, '', ' ', 7]
  return [
    ...[...absent, {}, []].flatMap((value) => [{ sharedSecretRequest: value }, { devicePublicKeys: value }]),
    ...absent.flatMap((value) => [
      { sharedSecretRequest: { ...request, algorithm: value } },
      { sharedSecretRequest: { ...request, encapsulationKeys: value } },
      { devicePublicKeys: { ...keys, ecdsa: value } },
      { devicePublicKeys: { ...keys, mldsa: value } },
    ]),
    ...[[], [null], ['AAAA', '']].map((value) => ({ sharedSecretRequest: { ...request, encapsulationKeys: value } })),
  ]
}

describe('activation/create', () => {
  test('leaves the registration alone when its request or the device keys are wrong', async () => {
    const { userId, code } = await v4.world.register()
    const phone = v4.newPhone('EC_P384_ML_L3')
    const send = async (options: Parameters<PhoneV4['prepareActivation']>[1]) =>
      refusalOf(await phone.send(await phone.prepareActivation(code, options)))
    expect(await send({ layer1: { type: undefined } })).toEqual(INVALID)
    expect(await send({ layer1: { identityAttributes: { code: 'AAAAA-AAAAA-AAAAA-AAAAA' } } })).toEqual(NOT_ACTIVATED)
    for (const layer2 of incompleteLayers()) expect(await send({ layer2 }), JSON.stringify(layer2)).toEqual(INVALID)
    expect(await send({ layer2: { sharedSecretRequest: { algorithm: 'ML_L3', encapsulationKeys: ['AAAA'] } } })).toEqual(
      NOT_ACTIVATED,
    )
    expect(await send({ alterInner: (envelope) => ({ ...envelope, nonce: Buffer.alloc(24, 1).toString('base64') }) })).toEqual(
      INVALID,
    )
    expect(await send({ layer2: { devicePublicKeys: { ecdsa: 'AAAA', mldsa: 'AAAA' } } })).toEqual(NOT_ACTIVATED)
    expect(await registrationOf(v4.world, userId)).toBe('CREATED')
    expectOk(await phone.send(await phone.prepareActivation(code)))
  })

  test('names every member that is wrong, and of a long list only the first', async () => {
    const phone = v4.newPhone('EC_P384')
    const messageOf = async (options: Parameters<PhoneV4['prepareActivation']>[1]) =>
      refusalOf(await phone.send(await phone.prepareActivation('AAAAA-AAAAA-AAAAA-AAAAA', options)))[2]
    expect(await messageOf({ layer1: { type: 'MAGIC', identityAttributes: {} } })).toBe(
      'type must be one of CODE, DIRECT, CUSTOM, identityAttributes must NOT have fewer than 1 properties',
    )
    expect(await messageOf({ layer2: { devicePublicKeys: undefined, platform: 7, activationName: 'x'.repeat(256) } })).toBe(
      'devicePublicKeys must be present, activationName must be at most 255 characters, platform must be string',
    )
    const encapsulationKeys = Array.from({ length: 100 }, () => 1)
    expect(await messageOf({ layer2: { sharedSecretRequest: { algorithm: 'EC_P384', encapsulationKeys } } })).toBe(
      'sharedSecretRequest.encapsulationKeys.0 must be string',
    )
  })

  test('takes a code once, of 50 that come at the same time', async () => {
    const { code } = await v4.world.register()
    const phone = v4.newPhone('EC_P384')
    const requests = await Promise.all(Array.from({ length: 50 }, () => phone.prepareActivation(code)))
    const replies = await Promise.all(requests.map((request) => phone.send(request)))
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200, 400]))
  })

  test('commits nothing for an OTP that nobody asked for', async () => {
    const { userId } = await v4.pendingPhone('EC_P384', { layer2: { activationOtp: 'anything' } })
    expect(await registrationOf(v4.world, userId)).toBe('PENDING_COMMIT')
  })
})

describe('activation/confirm', () => {
  test('is good before the commit, once, and changes neither state nor what else is allowed', async () => {
    const { userId, phone } = await v4.pendingPhone('EC_P384')
    const confirm = phone.prepareConfirm(true)
    const replies = await Promise.all(Array.from({ length: 50 }, () => phone.send(confirm)))
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(await registrationOf(v4.world, userId)).toBe('PENDING_COMMIT')
    expect(refusalOf(await phone.send(phone.prepareConfirm(true)))).toEqual(UNAUTHENTICATED)
    expectOk(await v4.world.bank.commit(userId))
    phone.state.counter -= 1
    expect(await phone.readStatus()).toMatchObject({ state: 3, flags: 8 })
  })

  test.each(['', '{}', '{"requestObject":null}', '{"requestObject":{}}', '{"requestObject":{"enableBiometry":null}}'])(
    'with the body %j confirms without biometry',
    async (body) => {
      const { userId, phone } = await v4.pendingPhone('EC_P384')
      expect(await phone.exchange(phone.prepareConfirm(true, { body }))).toEqual({ status: 'OK' })
      expectOk(await v4.world.bank.commit(userId))
      expect(await phone.readStatus()).toMatchObject({ state: 3, flags: 0 })
      expect((await phone.send(phone.prepareValidation({ factors: 'possession_biometry' }))).status).toBe(401)
    },
  )

  test('counts wrong codes before the commit, without ever blocking', async () => {
    const { userId, phone } = await v4.pendingPhone('EC_P384')
    const wrong = () => phone.prepareConfirm(true, { wrongKeys: { knowledge: Buffer.alloc(32) } })
    for (let i = 0; i < 6; i += 1) expect(refusalOf(await phone.send(wrong()))).toEqual(UNAUTHENTICATED)
    expect(refusalOf(await phone.send(phone.prepareConfirm(true)))).toEqual(UNAUTHENTICATED)
    expect(await registrationOf(v4.world, userId)).toBe('PENDING_COMMIT')
    expect(await phone.readStatus()).toMatchObject({ state: 2, failedAttempts: 5 })
    expectOk(await v4.world.bank.commit(userId))
    await phone.exchange(phone.prepareConfirm(true))
  })

  test('is refused for a body of a wrong type, which costs nothing', async () => {
    const { phone } = await v4.pendingPhone('EC_P384')
    for (const body of ['{', '[]', 'null', '{"requestObject":7}', '{"requestObject":{"enableBiometry":"yes"}}', '[]'])
      expect(refusalOf(await phone.send(phone.prepareConfirm(true, { body })))).toEqual(INVALID)
    expect(await phone.readStatus()).toMatchObject({ failedAttempts: 0 })
    await phone.exchange(phone.prepareConfirm(true))
  })
})

describe('an authentication code', () => {
  test('is accepted once of 50, and the others block nobody', async () => {
    const { userId, phone } = await v4.activePhone('EC_P384')
    const request = phone.prepareValidation({ body: '{}' })
    const replies = await Promise.all(Array.from({ length: 50 }, () => phone.send(request)))
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(await registrationOf(v4.world, userId)).toBe('ACTIVE')
    expect(await phone.readStatus()).toMatchObject({ failedAttempts: 0, distance: 0 })
    await phone.exchange(phone.prepareValidation())
    expect(await phone.readStatus()).toMatchObject({ failedAttempts: 0, distance: 0, isDeadlocked: false })
  })

  test('that is refused whatever it is, is compared with a decoy: its time does not tell the right PIN', async () => {
    const { userId, phone } = await v4.activePhone('EC_P384')
    const { phone: pending } = await v4.pendingPhone('EC_P384')
    const wrong = { wrongKeys: { knowledge: Buffer.alloc(32) } }
    for (let i = 0; i < 5; i += 1) await pending.send(pending.prepareConfirm(true, wrong))
    const foreign = v4.world.newUser()
    expectOk(await v4.world.bank.createApplication(foreign))
    const stranger = phone.speaking({ app: await readAppV4(v4.world.bank, foreign) })
    const compared = vi.spyOn(protocol, 'verifyAuthenticationCode')
    const expectNoMatch = async (speaker: PhoneV4, request = speaker.prepareValidation()): Promise<void> => {
      compared.mockClear()
      expect(refusalOf(await speaker.send(request))).toEqual(UNAUTHENTICATED)
      const found = compared.mock.results.map(({ value }) => value as unknown)
      expect(found).toEqual(found.map(() => ({ move: undefined, isPossessionRight: false })))
      expect(found).not.toEqual([])
    }
    try {
      await expectNoMatch(stranger)
      // At the maximum of wrong codes before the commit.
      await expectNoMatch(pending, pending.prepareConfirm(true))
      expectOk(await v4.world.bank.change(userId, 'BLOCK'))
      await expectNoMatch(phone)
    } finally {
      compared.mockRestore()
    }
  })

  test('of one generation is refused at the paths of the other and counts nothing there', async () => {
    const { phone } = await v4.activePhone('EC_P384')
    const { phone: old } = await v4.world.activePhone('3.3')
    const cross = (path: string, request: { readonly headers: Readonly<Record<string, string>>; readonly body: Uint8Array }) =>
      phone.send({ method: 'POST', path, headers: request.headers, body: request.body, open: () => undefined })
    expect(refusalOf(await cross('/pa/v3/signature/validate', phone.prepareValidation()))[0]).toBe(401)
    expect(refusalOf(await cross('/pa/v4/auth/validate', old.prepareValidation()))).toEqual(UNAUTHENTICATED)
    expect(refusalOf(await cross('/pa/v4/signature/validate', phone.prepareValidation()))[0]).toBe(404)
    // The same path in other letters is the same endpoint.
    expect(refusalOf(await cross('/pa/v%34/auth/validate', old.prepareValidation()))).toEqual(UNAUTHENTICATED)
    // A header of 4.0 that names an activation of 3.x.
    phone.state.activationId = old.state.activationId
    for (let i = 0; i < 6; i += 1) expect(refusalOf(await phone.send(phone.prepareValidation()))).toEqual(UNAUTHENTICATED)
    // Nor does it count when the application version is unknown too.
    for (let i = 0; i < 6; i += 1) {
      const unknown = withPair(phone.prepareValidation(), 'pa_application_key', Buffer.alloc(16, i).toString('base64'))
      expect(refusalOf(await phone.send(unknown))).toEqual(UNAUTHENTICATED)
    }
    expectOk(await old.send(old.prepareValidation()))
  })

  test('while a key of knowledge is replaced both keys are good, and of 20 requests with the new one each is decided once', async () => {
    const { phone } = await v4.activePhone('EC_P384')
    const knowledge = await phone.exchange(await phone.preparePasswordChange())
    phone.adopt({ knowledge })
    const request = phone.prepareValidation()
    const replies = await Promise.all(Array.from({ length: 4 }, () => phone.send(request)))
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    await phone.exchange(phone.prepareValidation())
    expect(await phone.readStatus()).toMatchObject({ failedAttempts: 0, isDeadlocked: false })
  })
})

describe('envelopes', () => {
  test('are good once, in their window, and for their activation', async () => {
    const { phone } = await v4.activePhone('EC_P384')
    const { phone: other } = await v4.activePhone('EC_P384')
    const request = await phone.prepareUserInfo()
    const replies = await Promise.all(Array.from({ length: 50 }, () => phone.send(request)))
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(refusalOf(await phone.send(request))).toEqual(NOT_ENCRYPTED)
    const late = await phone.prepareUserInfo({ timestamp: (await phone.serverTime()) - 301_000 })
    expect(refusalOf(await phone.send(late))).toEqual(NOT_ENCRYPTED)
    const foreign = await phone.prepareUserInfo()
    expect(
      refusalOf(await phone.send({ ...foreign, headers: { ...foreign.headers, ...other.encryptionHeader('activation') } })),
    ).toEqual(NOT_ENCRYPTED)
    expect(
      refusalOf(await phone.send({ ...foreign, headers: { ...foreign.headers, ...phone.encryptionHeader('application') } })),
    ).toEqual(NOT_ENCRYPTED)
    expectOk(await phone.send(foreign))
  })

  test.each([
    ['token/create', 401, (phone: PhoneV4) => phone.prepareTokenCreate()],
    ['password/change', 401, (phone: PhoneV4) => phone.preparePasswordChange()],
    ['biometry/add', 401, (phone: PhoneV4) => phone.prepareBiometryAdd()],
    ['activation/rename', 400, (phone: PhoneV4) => phone.prepareRename('x')],
    ['vault/unlock', 400, (phone: PhoneV4) => phone.prepareVaultUnlock('KDK_APP_VAULT_2FA')],
  ] as const)('%s that comes again is answered %d, which counts nothing', async (_, status, prepare) => {
    const { phone } = await v4.activePhone('EC_P384')
    const request = await prepare(phone)
    expectOk(await phone.send<unknown>(request))
    expect((await phone.send<unknown>(request)).status).toBe(status)
    expect(await phone.readStatus()).toMatchObject({ failedAttempts: 0 })
  })

  test('of both layers of an activation have nonces of their own', async () => {
    const { userId, code } = await v4.world.register()
    const phone = v4.newPhone('EC_P384')
    const temporaryKey = await phone.fetchTemporaryKey('application')
    const nonce = random(24)
    const same = await phone.prepareActivation(code, { temporaryKey, nonce, innerNonce: nonce })
    expect(refusalOf(await phone.send(same))).toEqual(NOT_ENCRYPTED)
    expect(await registrationOf(v4.world, userId)).toBe('CREATED')
    expectOk(await phone.send(await phone.prepareActivation(code, { temporaryKey, nonce })))
  })

  test('of a blocked activation: the status is told, a token and a code are refused', async () => {
    const { userId, phone } = await v4.activePhone('EC_P384')
    const token = await phone.createToken()
    expectOk(await v4.world.bank.change(userId, 'BLOCK'))
    expect(await phone.readStatus()).toMatchObject({ state: 4 })
    expect(refusalOf(await phone.send(await phone.prepareDetail(token)))).toEqual(UNAUTHENTICATED)
    expect(refusalOf(await phone.send(await phone.prepareRename('x')))).toEqual(UNAUTHENTICATED)
    expect(refusalOf(await phone.send(await phone.prepareUserInfo()))).toEqual(NOT_ENCRYPTED)
  })
})

describe('keystore/create', () => {
  test('refuses another algorithm than that of the activation, a foreign activation, and what is not a request', async () => {
    const { phone } = await v4.activePhone('EC_P384')
    const hybrid = v4.newPhone('EC_P384_ML_L3')
    hybrid.state.activationId = phone.state.activationId
    hybrid.state.keys = phone.state.keys
    await expect(hybrid.fetchTemporaryKey('activation')).rejects.toThrow('ERR_TEMPORARY_KEY')
    phone.state.activationId = '00000000-0000-4000-8000-000000000000'
    await expect(phone.fetchTemporaryKey('activation')).rejects.toThrow('ERR_TEMPORARY_KEY')
    const body = Buffer.from('{"requestObject":{"jwt":"a.b.c"}}')
    const headers = { 'Content-Type': 'application/json' }
    const reply = await phone.send({ method: 'POST', path: '/pa/v4/keystore/create', headers, body, open: () => undefined })
    expect(refusalOf(reply)).toEqual(NO_KEY)
  })
})

describe('vault, password and biometry', () => {
  test('a vault key is refused for an unknown or blank identifier, a wrong factor or reason, and nothing is counted', async () => {
    const { phone } = await v4.activePhone('EC_P384')
    const failed = [400, 'ERR_SECURE_VAULT', 'POWER_AUTH_SECURE_VAULT_INVALID']
    const send = async (identifier: unknown, options?: Parameters<PhoneV4['prepareVaultUnlock']>[1]) =>
      refusalOf(await phone.send(await phone.prepareVaultUnlock(identifier, options)))
    expect(await send('UNKNOWN')).toEqual(failed)
    expect(await send(' ')).toEqual(INVALID)
    expect(await send('', { plaintext: '{}' })).toEqual(INVALID)
    expect(await send('', { plaintext: '{"keyIdentifier":"KDK_APP_VAULT_2FA","reason":"a\\nb"}' })).toEqual(failed)
    const tooLong = JSON.stringify({ keyIdentifier: 'KDK_APP_VAULT_2FA', reason: 'x'.repeat(256) })
    expect(await send('', { plaintext: tooLong })).toEqual(failed)
    expect(await send('KDK_APP_VAULT_KNOWLEDGE', { factors: 'possession_biometry' })).toEqual(failed)
    expect(await send('KEK_DEVICE_PRIVATE', { factors: 'possession_biometry' })).toEqual(failed)
    expect(await send('KEK_DEVICE_PRIVATE', { factors: 'possession' })).toEqual(failed)
    expect(await phone.readStatus()).toMatchObject({ failedAttempts: 0 })
    await phone.exchange(await phone.prepareVaultUnlock('KDK_APP_VAULT_2FA', { factors: 'possession_biometry' }))
    expect(await send('KDK_APP_VAULT_2FA', { wrongKeys: { knowledge: Buffer.alloc(32) } })).toEqual(UNAUTHENTICATED)
  })

  test('keys are agreed on with the algorithm of the activation, for possession and knowledge', async () => {
    const { phone } = await v4.activePhone('EC_P384')
    const plaintext = JSON.stringify({ algorithm: 'EC_P384_ML_L3', encapsulationKeys: ['AAAA', 'AAAA'] })
    expect(refusalOf(await phone.send(await phone.preparePasswordChange({ plaintext })))).toEqual([
      400,
      'ERR_PASSWORD_CHANGE',
      'POWER_AUTH_PASSWORD_CHANGE_FAILURE',
    ])
    expect(refusalOf(await phone.send(await phone.prepareBiometryAdd({ plaintext: '{}' })))).toEqual([
      400,
      'ERR_BIOMETRY',
      'POWER_AUTH_BIOMETRY_FAILURE',
    ])
    expect(refusalOf(await phone.send(await phone.preparePasswordChange({ factors: 'possession' })))).toEqual(UNAUTHENTICATED)
    expect(refusalOf(await phone.send(phone.prepareBiometryRemove({ factors: 'possession_knowledge' })))).toEqual(UNAUTHENTICATED)
  })
})
