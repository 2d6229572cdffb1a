// Tests logins at providers that misbehave.
import { generateKeyPairSync } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { OutboundError, type TargetRules } from '../../lib/outbound.ts'
import { systemPlatform } from '../../lib/platform.ts'
import { createOidcLogins } from './logins.ts'
import type { OidcProvider, OidcSettings } from './provider.ts'

type Answer = (response: ServerResponse, body: string, request: IncomingMessage) => unknown

let issuer: string
let answerToken: Answer
let answerKeys: Answer
let answerDiscovery: Answer
const asked = { '/token': [] as string[], '/jwks': [] as string[], '/.well-known/openid-configuration': [] as string[] }
const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks).toString()
    const path = (request.url ?? '') as keyof typeof asked
    asked[path]?.push(body)
    const answers = { '/token': answerToken, '/jwks': answerKeys, '/.well-known/openid-configuration': answerDiscovery }
    void (answers[path] ?? ((gone: ServerResponse) => gone.writeHead(404).end()))(response, body, request)
  })
})
const key = await generateKeyPair('RS256', { extractable: true })
const jwk = async (kid: string, { publicKey } = key) => ({ ...(await exportJWK(publicKey)), kid })
const json = (response: ServerResponse, value: unknown, status = 200) =>
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))

let elapsed = 0
const platform = { ...systemPlatform, monotonic: () => performance.now() + elapsed }
const parts = (rules: Partial<TargetRules> = {}): Parameters<typeof createOidcLogins>[0] => ({
  platform,
  settings: { webhookAllowHttp: true, webhookAllowPrivateAddresses: true, ...rules },
})

beforeAll(async () => {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const SHORT_KEY = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' })
const PROOF = { code: 'a-code', nonce: 'a-nonce', codeVerifier: 'v'.repeat(43) }
function newProvider(providerId: string, more: Partial<OidcSettings> = {}, secret = `secret of ${providerId}`): OidcProvider {
  const settings: OidcSettings = {
    issuer,
    clientId: providerId,
    clientAuthentication: 'client_secret_basic',
    keyId: null,
    scopes: ['openid'],
    redirectUri: 'https://app.bank.example/oidc',
    authorizationEndpoint: null,
    tokenEndpoint: null,
    jwksUri: null,
    algorithms: ['RS256'],
    userIdClaim: 'sub',
    isCommitted: true,
    flags: [],
    ...more,
  }
  return { applicationId: 'app', providerId, settings, credentials: secret }
}
const idToken = (clientId: string, sub: string, { kid = 'k1', by = key } = {}) =>
  new SignJWT({ nonce: 'a-nonce' })
    .setProtectedHeader({ alg: 'RS256', kid })
    .setIssuer(issuer)
    .setAudience(clientId)
    .setSubject(sub)
    .setIssuedAt()
    .setExpirationTime('5m')
    .sign(by.privateKey)
const tokens = async (clientId: string, sub: string, more = {}) => ({
  access_token: 'at',
  token_type: 'Bearer',
  id_token: await idToken(clientId, sub, more),
})
function behave(): void {
  answerToken = async (response) => json(response, await tokens('good', 'alice'))
  answerKeys = async (response) => json(response, { keys: [await jwk('k1')] })
  answerDiscovery = (response) => json(response, published())
}
const published = () => ({
  issuer,
  authorization_endpoint: `${issuer}/auth`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/jwks`,
  token_endpoint_auth_methods_supported: ['none'],
  id_token_signing_alg_values_supported: ['none', 'HS256'],
})

test('of 200 logins at two providers at once, each shows its own credentials and names its own user', async () => {
  behave()
  answerToken = async (response, body, request) => {
    const [user = '', password = ''] = Buffer.from(String(request.headers.authorization).slice(6), 'base64').toString().split(':')
    const form = new URLSearchParams(body)
    const isOwn = form.get('client_id') === user && decodeURIComponent(password.replaceAll('+', ' ')) === `secret of ${user}`
    await new Promise((resolve) => setTimeout(resolve, 2))
    return isOwn ? json(response, await tokens(user, `user of ${user}`)) : json(response, { error: 'invalid_client' }, 401)
  }
  asked['/token'].length = 0
  asked['/.well-known/openid-configuration'].length = 0
  const logins = createOidcLogins(parts())
  const [one, other] = [newProvider('one'), newProvider('other')]
  const all = Array.from({ length: 200 }, (_, i) => (i % 2 === 0 ? one : other))
  const users = await Promise.all(all.map((provider) => logins.redeem(provider, PROOF)))
  expect(users).toEqual(all.map(({ providerId }) => `user of ${providerId}`))
  expect(asked['/token']).toHaveLength(200)
  expect(asked['/.well-known/openid-configuration']).toHaveLength(2)
})

test('what is discovered is kept for ten minutes, and overrides nothing that is configured', async () => {
  behave()
  const logins = createOidcLogins(parts())
  const provider = newProvider('good', { tokenEndpoint: `${issuer}/token` })
  answerDiscovery = (response) => json(response, { ...published(), token_endpoint: `${issuer}/elsewhere` })
  asked['/.well-known/openid-configuration'].length = 0
  expect(await logins.redeem(provider, PROOF)).toBe('alice')
  expect(await logins.redeem(provider, PROOF)).toBe('alice')
  expect(await logins.findAuthorizationEndpoint(provider)).toBe(`${issuer}/auth`)
  expect(asked['/.well-known/openid-configuration']).toHaveLength(1)
  elapsed += 600_001
  expect(await logins.redeem(provider, PROOF)).toBe('alice')
  expect(asked['/.well-known/openid-configuration']).toHaveLength(2)
})

test('keys are kept, and a new one is taken when its first token comes', async () => {
  behave()
  const logins = createOidcLogins(parts())
  const provider = newProvider('good')
  asked['/jwks'].length = 0
  await logins.redeem(provider, PROOF)
  await logins.redeem(provider, PROOF)
  expect(asked['/jwks']).toHaveLength(1)
  const next = await generateKeyPair('RS256', { extractable: true })
  answerKeys = async (response) => json(response, { keys: [await jwk('k2', next)] })
  answerToken = async (response) => json(response, await tokens('good', 'bob', { kid: 'k2', by: next }))
  elapsed += 30_001
  expect(await logins.redeem(provider, PROOF)).toBe('bob')
  expect(asked['/jwks']).toHaveLength(2)
  // For an unknown key the key set is fetched again only once in a while.
  answerToken = async (response) => json(response, await tokens('good', 'bob', { kid: 'k3', by: next }))
  await expect(logins.redeem(provider, PROOF)).rejects.toThrow('its ID token is refused')
  await expect(logins.redeem(provider, PROOF)).rejects.toThrow('its ID token is refused')
  expect(asked['/jwks']).toHaveLength(2)
})

describe('a provider names no user that', () => {
  test.each<[string, Answer, string]>([
    ['fails', (response) => json(response, { error: 'server_error' }, 500), 'status 500'],
    [
      'sends elsewhere',
      (response) => response.writeHead(307, { location: `${issuer}/token` }).end(),
      'redirects are not followed',
    ],
    ['answers nothing', (response) => response.writeHead(204).end(), 'status 204'],
    ['answers without end', (response) => json(response, { access_token: 'x'.repeat(100_000) }), 'more than 65536 bytes'],
    [
      'is no JSON',
      (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"id_token":'),
      'not to be used',
    ],
    ['is HTML', (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'), 'not to be used'],
    [
      'refuses the code',
      (response) => json(response, { error: 'invalid_grant', error_description: 'a-code' }, 400),
      'invalid_grant',
    ],
    ['refuses without a word', (response) => json(response, {}, 400), 'not to be used'],
    ['has no ID token', (response) => json(response, { access_token: 'at', token_type: 'Bearer' }), 'without an ID token'],
    ['has no tokens', (response) => json(response, {}), 'not to be used'],
    ['cuts the connection', (response) => response.destroy(), 'broke the connection'],
  ])('%s', async (_, answer, expected) => {
    behave()
    answerToken = answer
    const failure = await createOidcLogins(parts())
      .redeem(newProvider('good'), PROOF)
      .catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(OutboundError)
    const { message } = failure as OutboundError
    expect(message).toContain(expected)
    for (const secret of [PROOF.code, PROOF.nonce, PROOF.codeVerifier, 'secret of']) expect(message).not.toContain(secret)
  })

  test.each<[string, Answer]>([
    ['of another issuer', (response) => json(response, { ...published(), issuer: `${issuer}/` })],
    ['without endpoints', (response) => json(response, { issuer })],
    [
      'with an endpoint that may not be called',
      (response) => json(response, { ...published(), token_endpoint: 'file:///etc/passwd' }),
    ],
    ['of a server that is down', (response) => response.destroy()],
  ])('publishes settings %s, before it is sent a code', async (_, answer) => {
    behave()
    answerDiscovery = answer
    asked['/token'].length = 0
    await expect(createOidcLogins(parts()).redeem(newProvider('good'), PROOF)).rejects.toBeInstanceOf(OutboundError)
    expect(asked['/token']).toHaveLength(0)
  })

  test('has no keys, before it is sent a code', async () => {
    behave()
    answerKeys = (response) => response.writeHead(500).end()
    asked['/token'].length = 0
    await expect(createOidcLogins(parts()).redeem(newProvider('good'), PROOF)).rejects.toThrow('jwksUri')
    expect(asked['/token']).toHaveLength(0)
  })

  test.each<[string, (whole: object) => object]>([
    ['too short', () => SHORT_KEY],
    ['without its exponent', (whole) => ({ ...whole, e: undefined })],
    ['for other operations', (whole) => ({ ...whole, key_ops: ['verify', 'encrypt'] })],
  ])('publishes a key that is %s', async (_, alter) => {
    behave()
    answerKeys = async (response) => json(response, { keys: [{ ...alter(await jwk('k1')), kid: 'k1' }] })
    const failure = await createOidcLogins(parts())
      .redeem(newProvider('good'), PROOF)
      .catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(OutboundError)
    expect((failure as OutboundError).message).toContain('its key cannot be used')
  })

  test('lies at a private address, unless the operator allows it', async () => {
    behave()
    const refused = createOidcLogins(parts({ webhookAllowPrivateAddresses: false })).redeem(newProvider('good'), PROOF)
    await expect(refused).rejects.toThrow('not a public address')
  })

  test.each([
    ['in its discovery', {}],
    ['where all of it is configured', { authorizationEndpoint: '/auth', tokenEndpoint: '/token', jwksUri: '/jwks' }],
  ])('is called without TLS, unless the operator allows it still: %s', async (_, paths) => {
    behave()
    for (const path of Object.keys(asked) as (keyof typeof asked)[]) asked[path].length = 0
    const endpoints = Object.fromEntries(Object.entries(paths).map(([name, path]) => [name, `${issuer}${path}`]))
    const refused = createOidcLogins(parts({ webhookAllowHttp: false })).redeem(newProvider('good', endpoints), PROOF)
    await expect(refused).rejects.toThrow('http is not allowed')
    expect(Object.values(asked)).toEqual([[], [], []])
  })

  test('hangs: it is waited for five seconds, and no other provider with it', async () => {
    behave()
    const logins = createOidcLogins(parts())
    answerToken = async (response, body) =>
      new URLSearchParams(body).get('client_id') === 'good' && json(response, await tokens('good', 'alice'))
    const begun = performance.now()
    const hanging = Array.from({ length: 40 }, () =>
      logins.redeem(newProvider('hanging'), PROOF).catch((error: unknown) => error),
    )
    expect(await logins.redeem(newProvider('good'), PROOF)).toBe('alice')
    expect(performance.now() - begun).toBeLessThan(4_000)
    for (const failure of await Promise.all(hanging)) expect(failure).toBeInstanceOf(OutboundError)
    const took = performance.now() - begun
    expect(took).toBeGreaterThan(4_900)
    expect(took).toBeLessThan(9_000)
  })
})
