// Activations without a code: DIRECT and CUSTOM through a server of the bank (v3 §8.6).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { activateDirectly } from '../../../src/domain/activation/direct.ts'
import type { TestServer } from '../../helpers/app.ts'
import { expectError, expectRefused, MINUTE, readCounters, SECOND, STATE } from '../../helpers/expectations.ts'
import { type HttpReply, member } from '../../../phone/http.ts'
import { b64, random } from '../../../phone/v3/crypto.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { BROKEN_ANSWERS, inLog, type Provider, type ProviderAnswer, startProvider, UNCARRIED } from '../../helpers/provider.ts'
import type { ActivationOptions, VirtualPhone } from '../../../phone/v3/virtual-phone.ts'
import { expectOk, registrationOf, startServerWithWorld, type World } from '../../helpers/world.ts'

const SECRET = 'Basic of-the-activation-server'

let provider: Provider
let server: TestServer
let world: World
/** Its server does not wait long for the provider; only for tests in which no answer comes. */
let impatient: World
beforeAll(async () => {
  provider = await startProvider()
  const env = {
    PAWL_ACTIVATION_PROVIDER_URL: `${provider.url}/find`,
    PAWL_ACTIVATION_PROVIDER_TIMEOUT_MS: '60000',
    PAWL_ACTIVATION_PROVIDER_AUTHORIZATION: SECRET,
  }
  ;({ server, world } = await startServerWithWorld({ env }))
  impatient = (await startServerWithWorld({ env: { ...env, PAWL_ACTIVATION_PROVIDER_TIMEOUT_MS: '300' } })).world
})
afterAll(async () => {
  await world.close()
  await impatient.close()
  provider.close()
})

const direct = (
  more: Readonly<Record<string, unknown>> = {},
  layer2: Readonly<Record<string, unknown>> = {},
): ActivationOptions => ({
  layer1: { type: 'DIRECT', identityAttributes: { login: 'jan', pin: 'p-1' }, ...more },
  layer2,
})
const prepare = (phone: VirtualPhone, options = direct()) => phone.prepareActivation('', options)
const sendFrom = async (phone: VirtualPhone, options = direct()): Promise<HttpReply> => phone.send(await prepare(phone, options))
const detailOf = async (activationId: string): Promise<unknown> =>
  expectOk(await world.bank.call('GET', `/admin/applications/${world.applicationId}/registrations/${activationId}`)).json
const auditOf = async (activationId: string): Promise<string[]> => {
  const events = server.context.db.selectFrom('audit_trail').select('event_type').where('activation_id', '=', activationId)
  return (await events.orderBy('sequence').execute()).map((event) => event.event_type)
}

describe.each(PHONE_VERSIONS)('an activation in %s', (version) => {
  test.each(['DIRECT', 'CUSTOM'])('of type %s waits for the commit of the bank', async (type) => {
    const userId = world.newUser()
    provider.answerWith(() => ({ body: { userId } }))
    const phone = world.newPhone(version)
    const customAttributes = { source: 'test', nested: [1] }
    const result = await phone.exchange(await prepare(phone, direct({ type, customAttributes })))
    expect(provider.questions.at(-1)).toMatchObject({
      method: 'POST',
      path: '/find',
      headers: { 'content-type': 'application/json', authorization: SECRET },
    })
    const identityAttributes = { login: 'jan', pin: 'p-1' }
    expect(provider.questions.at(-1)?.json).toEqual({
      applicationId: world.applicationId,
      type,
      identityAttributes,
      customAttributes,
      protocolVersion: version,
      platform: 'ios',
      deviceInfo: 'iPhone16,2',
    })
    expect(result.layer1['customAttributes']).toEqual(customAttributes)
    expect((await world.bank.view(userId)).json).toEqual({
      registration: 'PENDING_COMMIT',
      name: 'Test phone',
      platform: 'ios',
      deviceInfo: 'iPhone16,2',
      activationFingerprint: result.fingerprint,
    })
    expectRefused(await phone.send(phone.prepareValidation()), 'signature')
    expectOk(await world.bank.commit(userId))
    expectOk(await phone.send(phone.prepareValidation()))
  })

  test('is active at once when the provider commits it', async () => {
    const userId = world.newUser()
    provider.answerWith(() => ({ body: { userId, commit: true, customAttributes: { of: 'the provider' } } }))
    const phone = world.newPhone(version)
    const result = await phone.exchange(await prepare(phone, direct({ customAttributes: { of: 'the phone' } })))
    expect(result.layer1['customAttributes']).toEqual({ of: 'the provider' })
    expectOk(await phone.send(phone.prepareValidation()))
    expectError(await world.bank.commit(userId), 400, 'ERROR_REGISTRATION_NOT_FOUND')
  })
})

test.each([
  ['of a provider that the application does not have', { providerId: 'unknown' }, 'ERR_ACTIVATION'],
  ['without a provider', {}, 'ERR_VALIDATION'],
  ['of a provider whose id is blank', { providerId: ' ' }, 'ERR_VALIDATION'],
] as const)('a login at an OpenID provider is not for this server: %s', async (_, attributes, code) => {
  const asked = provider.questions.length
  const userId = world.newUser()
  provider.answerWith(() => ({ body: { userId, commit: true } }))
  const login = { method: 'oidc', code: 'c', nonce: 'n', codeVerifier: 'v'.repeat(43), ...attributes }
  expectError(await sendFrom(world.newPhone('3.3'), direct({ identityAttributes: login })), 400, code)
  expect(provider.questions).toHaveLength(asked)
  expect(await registrationOf(world, userId)).toBe('NONE')
})

test.each(['pin', 'pin\nof the bank'])('the provider does not hear of an attribute %j that is no text', async (name) => {
  const asked = provider.questions.length
  provider.answerWith(() => ({ body: { userId: world.newUser() } }))
  expectError(await sendFrom(world.newPhone('3.3'), direct({ identityAttributes: { [name]: 7 } })), 400, 'ERR_VALIDATION')
  expect(provider.questions).toHaveLength(asked)
})

test('leaves history and audit rows like an activation by code', async () => {
  provider.answerWith(() => ({ body: { userId: world.newUser() } }))
  const pending = await (async (phone) => phone.exchange(await prepare(phone)))(world.newPhone('3.2'))
  const created = { to: 'CREATED', timestamp: expect.any(Number) }
  expect(await detailOf(pending.activationId)).toMatchObject({
    state: 'PENDING_COMMIT',
    history: [{ from: 'CREATED', to: 'PENDING_COMMIT', timestamp: expect.any(Number) }, created],
  })
  expect(await auditOf(pending.activationId)).toEqual(['registration_created', 'registration_keys_exchanged'])
  provider.answerWith(() => ({ body: { userId: world.newUser(), commit: true } }))
  const active = await (async (phone) => phone.exchange(await prepare(phone)))(world.newPhone('3.2'))
  expect(await detailOf(active.activationId)).toMatchObject({
    state: 'ACTIVE',
    history: [{ from: 'CREATED', to: 'ACTIVE', timestamp: expect.any(Number) }, created],
  })
  expect(await auditOf(active.activationId)).toEqual([
    'registration_created',
    'registration_keys_exchanged',
    'registration_committed',
  ])
})

test('runs out like any other when nobody commits it', async () => {
  const userId = world.newUser()
  provider.answerWith(() => ({ body: { userId } }))
  const phone = world.newPhone('3.1')
  await phone.exchange(await prepare(phone))
  await world.advance(5 * MINUTE + SECOND)
  expect(await registrationOf(world, userId)).toBe('NONE')
  const next = world.newPhone('3.1')
  await next.exchange(await prepare(next))
  expect(await registrationOf(world, userId)).toBe('PENDING_COMMIT')
  expect((await readCounters(phone)).state).toBe(STATE.REMOVED)
})

describe('a provider that answers', () => {
  test.each(BROKEN_ANSWERS)('%s activates nobody', async (_, answer) => {
    provider.answerWith(() => answer)
    const own = answer === undefined ? impatient : world
    expectRefused(await sendFrom(own.newPhone('3.1')), 'activation')
    expect(await registrationOf(own, 'x')).toBe('NONE')
  })

  const named = (more: Readonly<Record<string, unknown>>): ProviderAnswer => ({ body: { userId: 'misnamed', ...more } })
  test.each<[string, ProviderAnswer]>([
    ['no user', { body: {} }],
    ['null', named({ userId: null })],
    ['a number', named({ userId: 7 })],
    ['an empty name', named({ userId: '' })],
    ['a blank name', named({ userId: ' \u00a0' })],
    ['a name of 256 characters', named({ userId: 'x'.repeat(256) })],
    ['a name with a zero character', named({ userId: 'a\u0000b' })],
    ['a name with a line break', named({ userId: 'a\n' })],
    ['half a surrogate pair', { body: '{"userId":"a\\ud800"}' }],
    ['a commit that is not a boolean', named({ commit: 'true' })],
    ['attributes that are a list', named({ customAttributes: [] })],
    ['attributes that are a text', named({ customAttributes: 'x' })],
    ['flags that are a text', named({ flags: 'TRUSTED' })],
    ['a flag in small letters', named({ flags: ['trusted'] })],
    ['a flag with a comma', named({ flags: ['A,B'] })],
    ['a flag that is a number', named({ flags: [1] })],
    ['a flag twice', named({ flags: ['TRUSTED', 'TRUSTED'] })],
    ['65 flags', named({ flags: Array.from({ length: 65 }, (_, i) => `F${i}`) })],
    ...['maxFailedAttempts', 'expiresInSeconds'].flatMap((member) =>
      [0, -1, 1.5, '3', true, member === 'maxFailedAttempts' ? 65 : 2_592_001].map((count): [string, ProviderAnswer] => [
        `${member} of ${JSON.stringify(count)}`,
        named({ [member]: count }),
      ]),
    ),
  ])('%s activates nobody', async (_, answer) => {
    provider.answerWith(() => answer)
    expectRefused(await sendFrom(world.newPhone('3.1')), 'activation')
    expect(await registrationOf(world, 'misnamed')).toBe('NONE')
  })

  test('a user twice activates neither of them', async () => {
    provider.answerWith(() => ({ body: '{"userId":"p6","userId":"p7","commit":true}' }))
    expectRefused(await sendFrom(world.newPhone('3.1')), 'activation')
    expect(await Promise.all(['p6', 'p7'].map((user) => registrationOf(world, user)))).toEqual(['NONE', 'NONE'])
    expect(server.log()).toContain('answered with an object that has the member \\"userId\\" twice')
  })

  test.each(UNCARRIED)('attributes with %s activate nobody, and are told by their name', async (text, path, problem) => {
    provider.answerWith(() => ({ body: `{"userId":"misnamed","commit":true,"customAttributes":{${text}}}` }))
    expectRefused(await sendFrom(world.newPhone('3.1')), 'activation')
    expect(await registrationOf(world, 'misnamed')).toBe('NONE')
    expect(server.log()).toContain(inLog(`the activation provider: ${JSON.stringify(`customAttributes.${path}`)} ${problem}`))
  })

  test('a byte order mark, and such members beside what is used, are understood', async () => {
    const userId = world.newUser()
    provider.answerWith(() => ({ body: `\uFEFF{"userId":"${userId}","took":1e999,"at":1767225600000000000}` }))
    expectOk(await sendFrom(world.newPhone('3.1')))
    expect(await registrationOf(world, userId)).toBe('PENDING_COMMIT')
  })

  test('null for what is optional and members nobody knows is understood', async () => {
    const userId = world.newUser()
    provider.answerWith(() => ({ body: { userId, commit: null, customAttributes: null, unknown: [1] } }))
    expectOk(await sendFrom(world.newPhone('3.1')))
    expect(await registrationOf(world, userId)).toBe('PENDING_COMMIT')
  })
})

test('no transaction is open while the keys are agreed on, which may have to wait for its turn', async () => {
  const { context } = server
  // The embedded database has one connection: within a transaction, nothing else could read.
  const agree = async () => {
    await context.db.selectFrom('application').select('application_id').execute()
    return 'UNUSABLE' as const
  }
  const owner = { applicationId: world.applicationId, userId: world.newUser() }
  const device = { name: null, platform: null, deviceInfo: null, extras: null, externalId: null }
  const agreement = { version: '3.3', activationVersion: 3, ctrDataLength: 16, isConfirmedByPhone: false, agree }
  await expect(activateDirectly(context, agreement, owner, { isCommitted: true }, device)).rejects.toMatchObject({
    code: 'ACTIVATION_FAILED',
  })
})

describe('nothing is created', () => {
  test.each(['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED'])('for a user whose registration is %s', async (state) => {
    const userId = world.newUser()
    provider.answerWith(() => ({ body: { userId, commit: true } }))
    const phone = world.newPhone('3.1')
    const { code } = await world.register(userId)
    if (state !== 'CREATED') await phone.activate(code)
    if (state === 'ACTIVE' || state === 'BLOCKED') expectOk(await world.bank.commit(userId))
    if (state === 'BLOCKED') expectOk(await world.bank.change(userId, 'BLOCK'))
    const before = (await world.bank.view(userId)).json
    expectRefused(await sendFrom(world.newPhone('3.1')), 'activation')
    expect((await world.bank.view(userId)).json).toEqual(before)
  })

  // One of 256 random texts of 33 bytes is a point.
  test.each([b64(random(33).with(0, 5)), 'AAAA', 'no Base64'])('for the device key %j', async (devicePublicKey) => {
    const userId = world.newUser()
    provider.answerWith(() => ({ body: { userId } }))
    expectRefused(await sendFrom(world.newPhone('3.1'), direct({}, { devicePublicKey })), 'activation')
    const rows = server.context.db.selectFrom('activation').select('state').where('user_id', '=', userId)
    expect(await rows.execute()).toEqual([])
  })

  test.each(['RECOVERY', 'direct', 'OTHER', undefined])(
    'for the type %j, which the provider is not asked about',
    async (type) => {
      const asked = provider.questions.length
      expectError(await sendFrom(world.newPhone('3.1'), direct({ type })), 400, 'ERR_VALIDATION')
      expectError(await sendFrom(world.newPhone('3.1'), direct({ identityAttributes: {} })), 400, 'ERR_VALIDATION')
      expectError(await sendFrom(world.newPhone('3.1'), direct({ identityAttributes: { a: 1 } })), 400, 'ERR_VALIDATION')
      expect(provider.questions).toHaveLength(asked)
    },
  )

  test('a second time by the same request', async () => {
    const userId = world.newUser()
    provider.answerWith(() => ({ body: { userId, commit: true } }))
    const phone = world.newPhone('3.3')
    const request = await prepare(phone)
    await phone.exchange(request)
    const asked = provider.questions.length
    expectRefused(await phone.send(request), 'encryption')
    expect(provider.questions).toHaveLength(asked)
  })
})

describe('what the provider says of an activation', () => {
  test('are its flags, which stand in the row of its creation', async () => {
    provider.answerWith(() => ({ body: { userId: world.newUser(), commit: true, flags: ['TRUSTED', 'BRANCH_7'] } }))
    const { activationId } = await (async (phone) => phone.exchange(await prepare(phone)))(world.newPhone('3.3'))
    expect(await detailOf(activationId)).toMatchObject({ state: 'ACTIVE', flags: ['TRUSTED', 'BRANCH_7'] })
    const created = server.context.db.selectFrom('audit_trail').select('event_data').where('activation_id', '=', activationId)
    expect(await created.where('event_type', '=', 'registration_created').execute()).toEqual([
      { event_data: '{"flags":"TRUSTED,BRANCH_7"}' },
    ])
  })

  test('is how many wrong codes it takes, each of them counted against this limit alone', async () => {
    const userId = world.newUser()
    provider.answerWith(() => ({ body: { userId, commit: true, maxFailedAttempts: 2 } }))
    const phone = world.newPhone('3.2')
    const { activationId } = await phone.exchange(await prepare(phone))
    expect(await detailOf(activationId)).toMatchObject({ failedAttempts: 0, maxFailedAttempts: 2 })
    expectRefused(await phone.send(phone.prepareValidation({ wrongKeys: { knowledge: random(16) } })), 'signature')
    expect(await detailOf(activationId)).toMatchObject({ state: 'ACTIVE', failedAttempts: 1 })
    expectOk(await phone.send(phone.prepareValidation()))
    expectRefused(await phone.send(phone.prepareValidation({ wrongKeys: { knowledge: random(16) } })), 'signature')
    expectRefused(await phone.send(phone.prepareValidation({ wrongKeys: { knowledge: random(16) } })), 'signature')
    expect(await registrationOf(world, userId)).toBe('BLOCKED')
    expectRefused(await phone.send(phone.prepareValidation()), 'signature')
  })

  test('is how long it waits for its commit, shorter or longer than others', async () => {
    for (const [expiresInSeconds, before, after] of [
      [60, 59 * SECOND, 2 * SECOND],
      [3600, 59 * MINUTE, 2 * MINUTE],
    ] as const) {
      const userId = world.newUser()
      provider.answerWith(() => ({ body: { userId, expiresInSeconds } }))
      expectOk(await sendFrom(world.newPhone('3.1')))
      await world.advance(before)
      expect(await registrationOf(world, userId)).toBe('PENDING_COMMIT')
      await world.advance(after)
      expect(await registrationOf(world, userId)).toBe('NONE')
    }
  })

  test('is nothing where it says null', async () => {
    const userId = world.newUser()
    provider.answerWith(() => ({ body: { userId, flags: null, maxFailedAttempts: null, expiresInSeconds: null } }))
    const { activationId } = await (async (phone) => phone.exchange(await prepare(phone)))(world.newPhone('3.2'))
    expect(await detailOf(activationId)).toMatchObject({ flags: [], maxFailedAttempts: 5 })
  })

  test('is asked without what the phone does not say of itself', async () => {
    provider.answerWith(() => ({ body: { userId: world.newUser() } }))
    expectOk(await sendFrom(world.newPhone('3.1'), direct({}, { platform: null, deviceInfo: null })))
    const json = provider.questions.at(-1)?.json
    expect(json).toMatchObject({ protocolVersion: '3.1' })
    expect(Object.keys(json as object)).toEqual([
      'applicationId',
      'type',
      'identityAttributes',
      'customAttributes',
      'protocolVersion',
    ])
  })
})

test('of phones that are recognised as one user at the same time one wins', async () => {
  for (let round = 0; round < 3; round += 1) {
    const userId = world.newUser()
    provider.answerWith(() => ({ body: { userId, commit: true } }))
    const phones = Array.from({ length: 4 }, () => world.newPhone('3.2'))
    const requests = await Promise.all(phones.map((phone) => prepare(phone)))
    const replies = await Promise.all(requests.map((request, i) => (phones[i] as VirtualPhone).send(request)))
    expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 400, 400, 400])
    for (const reply of replies.filter(({ status }) => status === 400)) expectRefused(reply, 'activation')
    const winner = replies.findIndex(({ status }) => status === 200)
    requests[winner]?.open(replies[winner] as HttpReply)
    const phone = phones[winner] as VirtualPhone
    expectOk(await phone.send(phone.prepareValidation()))
  }
})

test('an OTP that a phone sends with it changes nothing', async () => {
  const userId = world.newUser()
  provider.answerWith(() => ({ body: { userId } }))
  expectOk(await sendFrom(world.newPhone('3.1'), direct({}, { activationOtp: '12345' })))
  expect(member((await world.bank.view(userId)).json, 'registration')).toBe('PENDING_COMMIT')
})

test('what the phone proves its identity with is not logged', () => {
  expect(server.log()).toContain('the activation provider gave no user')
  expect(server.log()).toMatch(
    /PAWL_ACTIVATION_PROVIDER_URL: http:\/\/127\.0\.0\.1:\d+ answered with status 302: redirects are not followed/,
  )
  expect(server.log()).not.toContain('p-1"')
  expect(server.log()).not.toContain('of-the-activation-server')
})
