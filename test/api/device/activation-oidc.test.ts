// Activations by a login at an OpenID provider, in 3.x and 4.0, against `oidc-provider` (v3 §8.8, v4 §8.8).
import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { withHeader } from '../../../phone/header.ts'
import type { HttpReply } from '../../../phone/http.ts'
import { beginLogin, identityOf, type OidcConfig } from '../../../phone/oidc.ts'
import type { Prepared } from '../../../phone/v3/state.ts'
import type { ActivationOptions, VirtualPhone } from '../../../phone/v3/virtual-phone.ts'
import { v3 } from '../../../src/protocol/v3/index.ts'
import type { TestServer } from '../../helpers/app.ts'
import { expectError, expectRefused } from '../../helpers/expectations.ts'
import {
  browse,
  CLIENT_SECRET,
  type OpenIdServer,
  REDIRECT_URI,
  startOpenIdServer,
  type TestLogin,
} from '../../helpers/openid.ts'
import { PHONE_VERSIONS } from '../../helpers/phone-versions.ts'
import { expectOk, registrationOf } from '../../helpers/world.ts'
import { type PhoneV4, startWorldV4, type WorldV4 } from '../../helpers/world-v4.ts'

const key = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const privateKey = key.privateKey.export({ format: 'pem', type: 'pkcs8' })

let provider: OpenIdServer
let v4: WorldV4
let server: TestServer
beforeAll(async () => {
  provider = await startOpenIdServer({ ...key.publicKey.export({ format: 'jwk' }), kid: 'k1', alg: 'ES256', use: 'sig' })
  v4 = await startWorldV4({
    env: {
      PAWL_WEBHOOK_ALLOW_HTTP: 'true',
      PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
      PAWL_TRUSTED_PROXIES: '127.0.0.1',
    },
  })
  ;({ server } = v4)
  await store('web', { clientSecret: CLIENT_SECRET })
})
afterAll(async () => {
  await v4.close()
  provider.close()
})

const store = async (providerId: string, members: Readonly<Record<string, unknown>>) =>
  expectOk(
    await v4.world.bank.call('PUT', `/admin/applications/${v4.world.applicationId}/oidc-providers/${providerId}`, {
      issuer: provider.issuer,
      clientId: 'app',
      redirectUri: REDIRECT_URI,
      ...members,
    }),
  )
const oidc = (login: Partial<TestLogin>, providerId = 'web') => ({
  layer1: { type: 'DIRECT', identityAttributes: { method: 'oidc', providerId, ...login } as Readonly<Record<string, unknown>> },
})
let sources = 0
/** Each request from a source of its own: one may bring ten codes in a minute. */
const elsewhere = <T>(request: Prepared<T>): Prepared<T> =>
  withHeader(request, 'X-Forwarded-For', `198.51.100.${++sources % 250}`)
type Options = ReturnType<typeof oidc> & Pick<ActivationOptions, 'layer2' | 'alterInner'>
const send = async (phone: VirtualPhone | PhoneV4, options: Options): Promise<HttpReply> =>
  phone.send(elsewhere((await phone.prepareActivation('', options as never)) as Prepared<unknown>))
const bind = async (phone: VirtualPhone | PhoneV4, options: Options) =>
  (phone as VirtualPhone).exchange(elsewhere(await (phone as VirtualPhone).prepareActivation('', options)))
const tokenRequests = () => provider.paths.filter((path) => path === '/token').length

describe.each([...PHONE_VERSIONS, '4.0'] as const)('in %s', (version) => {
  const newPhone = () => (version === '4.0' ? v4.newPhone('EC_P384_ML_L3') : v4.world.newPhone(version))

  test('an app is told where its user logs in, and its phone is bound and active', async () => {
    const phone = newPhone()
    const { responseObject } = await (phone as VirtualPhone).exchange(await phone.prepareOidcConfig('web'))
    const config = responseObject as OidcConfig
    expect(config).toEqual({
      providerId: 'web',
      clientId: 'app',
      scopes: 'openid',
      authorizeUri: `${provider.issuer}/auth`,
      redirectUri: REDIRECT_URI,
      pkceEnabled: true,
    })
    const session = beginLogin(config)
    expect(new URL(session.url).searchParams.get('code_challenge_method')).toBe('S256')
    const userId = v4.world.newUser()
    const redirectedTo = await browse(session.url, userId)
    expect(redirectedTo).toContain(`iss=${encodeURIComponent(provider.issuer)}`)
    const identityAttributes = identityOf(session, redirectedTo)
    const { activationId } = await bind(phone, { layer1: { type: 'DIRECT', identityAttributes } })
    expect(await registrationOf(v4.world, userId)).toBe('ACTIVE')
    if (version === '4.0') await (phone as PhoneV4).exchange((phone as PhoneV4).prepareConfirm(true))
    expectOk(await (phone as VirtualPhone).send((phone as VirtualPhone).prepareValidation()))
    const events = server.context.db.selectFrom('audit_trail').select(['event_type', 'event_data'])
    const rows = await events.where('activation_id', '=', activationId).where('event_type', '=', 'oidc_activation').execute()
    expect(rows).toEqual([{ event_type: 'oidc_activation', event_data: '{"providerId":"web"}' }])
  })

  test('a broken inner envelope and device keys that are none cost no code', async () => {
    const userId = v4.world.newUser()
    const login = await provider.logIn(userId)
    const before = tokenRequests()
    const flip = (text: unknown) => `${String(text).startsWith('A') ? 'B' : 'A'}${String(text).slice(1)}`
    const alterInner: ActivationOptions['alterInner'] = (envelope) => ({
      ...envelope,
      mac: flip(envelope.mac),
      encryptedData: flip(envelope.encryptedData),
    })
    expect((await send(newPhone(), { ...oidc(login), alterInner })).status).toBe(400)
    const point = Buffer.from(
      generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'der', type: 'spki' }).subarray(-65),
    )
    point[64] = (point[64] ?? 0) ^ 1
    const layer2 =
      version === '4.0' ? { devicePublicKeys: { ecdsa: 'AAAA', mldsa: 'AAAA' } } : { devicePublicKey: point.toString('base64') }
    expectRefused(await send(newPhone(), { ...oidc(login), layer2 }), 'activation')
    expect(tokenRequests()).toBe(before)
    await bind(newPhone(), oidc(login))
    expect(await registrationOf(v4.world, userId)).toBe('ACTIVE')
  })

  test('a code is good once, with its own nonce and verifier', async () => {
    const userId = v4.world.newUser()
    const login = await provider.logIn(userId)
    const before = tokenRequests()
    for (const missing of ['code', 'nonce', 'codeVerifier'] as const)
      expectError(await send(newPhone(), oidc({ ...login, [missing]: undefined })), 400, 'ERR_VALIDATION')
    expectError(await send(newPhone(), oidc({ ...login, codeVerifier: 'too short' })), 400, 'ERR_VALIDATION')
    expect(tokenRequests()).toBe(before)
    await bind(newPhone(), oidc(login))
    expectRefused(await send(newPhone(), oidc(login)), 'activation')
    const [other, third] = [await provider.logIn(v4.world.newUser()), await provider.logIn(v4.world.newUser())]
    expectRefused(await send(newPhone(), oidc({ ...other, nonce: third.nonce })), 'activation')
    expectRefused(await send(newPhone(), oidc({ ...third, codeVerifier: other.codeVerifier })), 'activation')
    expect(server.log()).toContain('the nonce is not that of the request')
    expect(server.log()).toContain('invalid_grant')
    for (const secret of [login.code, login.codeVerifier, login.nonce, CLIENT_SECRET]) expect(server.log()).not.toContain(secret)
  })
})

test.each([
  ['client_secret_post', 'posting', { clientSecret: CLIENT_SECRET }],
  ['private_key_jwt', 'keyed', { privateKey, keyId: 'k1' }],
  ['none', 'open', {}],
])('a client shows itself by %s, though its endpoints are discovered', async (clientAuthentication, clientId, secret) => {
  await store('other', { clientAuthentication, clientId, ...secret })
  const userId = v4.world.newUser()
  await bind(v4.world.newPhone('3.3'), oidc(await provider.logIn(userId, clientId), 'other'))
  expect(await registrationOf(v4.world, userId)).toBe('ACTIVE')
  // Another algorithm holds from the next login on; this provider signs with RS256.
  await store('other', { clientAuthentication, clientId, algorithms: ['ES256'], ...secret })
  expectRefused(
    await send(v4.world.newPhone('3.3'), oidc(await provider.logIn(v4.world.newUser(), clientId), 'other')),
    'activation',
  )
})

test('the bank may commit what was bound, and flags are set', async () => {
  await store('waiting', { isCommitted: false, flags: ['BY_LOGIN'], clientSecret: CLIENT_SECRET })
  const userId = v4.world.newUser()
  const { activationId } = await bind(v4.world.newPhone('3.3'), oidc(await provider.logIn(userId), 'waiting'))
  expect(await registrationOf(v4.world, userId)).toBe('PENDING_COMMIT')
  const path = `/admin/applications/${v4.world.applicationId}/registrations/${activationId}`
  expect(expectOk(await v4.world.bank.call('GET', path)).json).toMatchObject({ flags: ['BY_LOGIN'] })
  // It is live: the user's next login is refused, and its code is spent.
  const login = await provider.logIn(userId)
  expectRefused(await send(v4.world.newPhone('3.3'), oidc(login, 'waiting')), 'activation')
  expectOk(await v4.world.bank.commit(userId))
  expect(await registrationOf(v4.world, userId)).toBe('ACTIVE')
})

test('an unknown provider, and one of another application, is none', async () => {
  const { bank } = v4.world
  await bank.createApplication('elsewhere')
  const settings = { issuer: provider.issuer, clientId: 'open', clientAuthentication: 'none', redirectUri: REDIRECT_URI }
  expectOk(await bank.call('PUT', '/admin/applications/elsewhere/oidc-providers/foreign', settings))
  for (const providerId of ['unknown', 'foreign', 'x'.repeat(255)]) {
    const login = await provider.logIn(v4.world.newUser(), 'open')
    expectRefused(await send(v4.world.newPhone('3.3'), oidc(login, providerId)), 'activation')
    for (const phone of [v4.world.newPhone('3.3'), v4.newPhone('EC_P384')])
      expectError(await phone.send((await phone.prepareOidcConfig(providerId)) as Prepared<never>), 400, 'ERR_CONFIG')
  }
  const wrapped = { plaintext: '{"requestObject":{"providerId":"web"}}' }
  expect((await v4.world.newPhone('3.3').send(await v4.world.newPhone('3.3').prepareOidcConfig('', wrapped))).status).toBe(400)
})

test.each(['', ' ', 'x'.repeat(256), 'a\nb'])('the user id %j is none', async (userId) => {
  expectRefused(await send(v4.world.newPhone('3.3'), oidc(await provider.logIn(userId))), 'activation')
})

test('one source brings ten codes a minute for one provider, and is told when it may go on', async () => {
  await store('counted', { clientId: 'open', clientAuthentication: 'none' })
  const attempt = async (ip: string): Promise<HttpReply> => {
    const phone = v4.world.newPhone('3.3')
    const login = { code: 'guess', nonce: 'n', codeVerifier: 'v'.repeat(43) }
    return phone.send(withHeader(await phone.prepareActivation('', oidc(login, 'counted')), 'X-Forwarded-For', ip))
  }
  for (let i = 0; i < 10; i++) expectRefused(await attempt('203.0.113.1'), 'activation')
  const before = tokenRequests()
  const agreed = vi.spyOn(v3, 'agreeMasterSecret')
  const refused = await attempt('203.0.113.1')
  // Such a request does not count as a failure of its source, so that it must not cost much.
  expect(agreed).not.toHaveBeenCalled()
  agreed.mockRestore()
  expectError(refused, 429, 'TOO_MANY_REQUESTS')
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
  expect(tokenRequests()).toBe(before)
  expectRefused(await attempt('203.0.113.2'), 'activation')
})

test('what the provider publishes of itself is asked for once, and again after each change of its settings', () => {
  const discoveries = provider.paths.filter((path) => path.startsWith('/.well-known')).length
  // web, other (three clients, and another algorithm of each), waiting, counted.
  expect(discoveries).toBe(9)
  expect(provider.paths.filter((path) => path === '/jwks').length).toBeLessThanOrEqual(9)
})
