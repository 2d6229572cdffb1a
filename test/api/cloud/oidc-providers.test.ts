// /admin/applications/{id}/oidc-providers: OpenID providers of an application (cloud §10.1).
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { member } from '../../../phone/http.ts'
import { places } from '../../../src/domain/secrets/secrets.ts'
import type { TestServer } from '../../helpers/app.ts'
import { expectError } from '../../helpers/expectations.ts'
import { expectOk, startServerWithWorld, type World } from '../../helpers/world.ts'

let server: TestServer
let world: World
beforeAll(async () => {
  ;({ server, world } = await startServerWithWorld({}))
})
afterAll(() => world.close())

const path = (providerId = '') =>
  `/admin/applications/${world.applicationId}/oidc-providers${providerId === '' ? '' : `/${providerId}`}`
const SECRET = 'not-to-be-seen-again'
const OPEN_SETTINGS = {
  issuer: 'https://login.bank.example',
  clientId: 'mobile-app',
  redirectUri: 'com.bank.app:/oidc',
}
const SETTINGS = { ...OPEN_SETTINGS, clientSecret: SECRET }
const put = (providerId: string, members: Readonly<Record<string, unknown>>) => world.bank.call('PUT', path(providerId), members)
const pemOf = ({ privateKey }: { readonly privateKey: KeyObject }): string => privateKey.export({ format: 'pem', type: 'pkcs8' })
async function stored(providerId: string) {
  const { rows } = await sql<{ settings: string; credentials: Buffer | null }>`
    select settings, credentials from oidc_provider where provider_id = ${providerId}`.execute(server.context.db)
  const [row] = rows
  if (row === undefined) throw new Error(`no provider ${providerId}`)
  return row
}
/** The secret that a provider has now. */
async function openStored(providerId: string): Promise<string> {
  const { settings, credentials } = await stored(providerId)
  const place = places.oidcCredentials(world.applicationId, providerId, settings)
  return Buffer.from(server.context.recordKeys.open(place, credentials ?? Buffer.alloc(0))).toString()
}

test('a provider is stored, read, listed, replaced and removed; its secret is sealed and never told', async () => {
  const answer = {
    providerId: 'web-bank',
    issuer: SETTINGS.issuer,
    clientId: 'mobile-app',
    clientAuthentication: 'client_secret_basic',
    scopes: ['openid'],
    redirectUri: SETTINGS.redirectUri,
    algorithms: ['RS256'],
    userIdClaim: 'sub',
    isCommitted: true,
    flags: [],
    pkceEnabled: true,
    hasCredentials: true,
  }
  const made = expectOk(await put('web-bank', SETTINGS))
  expect(made.json).toEqual(answer)
  expect(expectOk(await world.bank.call('GET', path('web-bank'))).json).toEqual(answer)
  expect(expectOk(await world.bank.call('GET', path())).json).toEqual({ providers: [answer] })
  const { settings, credentials } = await stored('web-bank')
  expect(settings + Buffer.from(credentials ?? []).toString('latin1')).not.toContain(SECRET)
  // Without a secret the one that is there stays, and is the same for another claim.
  expect(await openStored('web-bank')).toBe(SECRET)
  expectOk(await put('web-bank', { ...OPEN_SETTINGS, userIdClaim: 'customer', flags: ['BY_LOGIN'] }))
  expect(await openStored('web-bank')).toBe(SECRET)
  const audit = expectOk(await world.bank.call('GET', '/admin/audit'))
  expect(audit.text).toContain('OpenID provider web-bank of')
  for (const text of [made.text, audit.text, server.log()]) expect(text).not.toContain(SECRET)
  expectOk(await world.bank.call('DELETE', path('web-bank')))
  expectError(await world.bank.call('DELETE', path('web-bank')), 400, 'ERROR_ADMIN')
  expectError(await world.bank.call('GET', path('web-bank')), 400, 'ERROR_ADMIN')
})

test.each<[string, Readonly<Record<string, unknown>>]>([
  ['issuer', { issuer: 'http://login.bank.example' }],
  ['issuer', { issuer: 'https://login.bank.example/?a=b' }],
  ['issuer', { issuer: 'https://127.0.0.1' }],
  ['issuer', { issuer: 'https://user:password@login.bank.example' }],
  ['tokenEndpoint', { tokenEndpoint: 'http://login.bank.example/token' }],
  ['jwksUri', { jwksUri: 'https://[::1]/jwks' }],
  ['authorizationEndpoint', { authorizationEndpoint: 'javascript:alert(1)' }],
  ['redirectUri', { redirectUri: 'nowhere' }],
  ['redirectUri', { redirectUri: 'https://app.bank.example/#a' }],
  ['scopes', { scopes: ['profile'] }],
  ['clientSecret', { clientSecret: undefined }],
  ['clientSecret', { clientAuthentication: 'none' }],
  ['privateKey', { privateKey: 'x' }],
  ['privateKey', { clientAuthentication: 'private_key_jwt', clientSecret: undefined }],
  ['privateKey', { clientAuthentication: 'private_key_jwt', clientSecret: undefined, privateKey: 'no key' }],
  [
    'privateKey',
    {
      clientAuthentication: 'private_key_jwt',
      clientSecret: undefined,
      privateKey: pemOf(generateKeyPairSync('rsa', { modulusLength: 1024 })),
    },
  ],
  ['algorithms', { algorithms: ['none'] }],
  ['algorithms', { algorithms: ['HS256'] }],
  ['algorithms', { algorithms: [] }],
  ['pkceEnabled', { pkceEnabled: false }],
  ['userIdClaim', { userIdClaim: '' }],
  ['flags', { flags: ['lower'] }],
])('%s is refused: %j', async (fieldName, members) => {
  const refused = await put('refused', { ...SETTINGS, ...members })
  expectError(refused, 400, 'ERROR_REQUEST')
  expect(JSON.stringify(member(refused.json, 'responseObject', 'violations'))).toContain(fieldName)
  expect(refused.text).not.toContain(SECRET)
  expectError(await world.bank.call('GET', path('refused')), 400, 'ERROR_ADMIN')
})

test.each<[string, { readonly privateKey: KeyObject }]>([
  ['RSA', generateKeyPairSync('rsa', { modulusLength: 2048 })],
  ['P-256', generateKeyPairSync('ec', { namedCurve: 'P-256' })],
  ['P-384', generateKeyPairSync('ec', { namedCurve: 'P-384' })],
  ['Ed25519', generateKeyPairSync('ed25519')],
])('a client may show itself by a key of %s', async (_, given) => {
  const keyed = { ...OPEN_SETTINGS, clientAuthentication: 'private_key_jwt', keyId: 'k1', privateKey: pemOf(given) }
  expect(expectOk(await put('keyed', keyed)).json).toMatchObject({ keyId: 'k1', hasCredentials: true })
})

test('a secret is kept for no other server, client or use', async () => {
  expectOk(await put('kept', SETTINGS))
  for (const change of [
    { issuer: 'https://login.other.example' },
    { tokenEndpoint: 'https://login.other.example/token' },
    { clientId: 'other' },
    { clientAuthentication: 'private_key_jwt' },
  ])
    expectError(await put('kept', { ...OPEN_SETTINGS, ...change }), 400, 'ERROR_REQUEST')
  expect(expectOk(await put('kept', { ...OPEN_SETTINGS, clientAuthentication: 'client_secret_post' })).json).toMatchObject({
    hasCredentials: true,
  })
  // One that shows nothing has nothing.
  expect(expectOk(await put('kept', { ...OPEN_SETTINGS, clientAuthentication: 'none' })).json).toMatchObject({
    hasCredentials: false,
  })
})

test('an application that is not there has no providers, and one that is has at most sixteen', async () => {
  expectError(await world.bank.call('GET', '/admin/applications/nowhere/oidc-providers'), 400, 'ERROR_ADMIN')
  expectError(await world.bank.call('PUT', '/admin/applications/nowhere/oidc-providers/a', SETTINGS), 400, 'ERROR_ADMIN')
  await world.bank.createApplication('full')
  const at = (name: string) => `/admin/applications/full/oidc-providers/${name}`
  for (let i = 0; i < 16; i++) expectOk(await world.bank.call('PUT', at(`p${i}`), SETTINGS))
  expectError(await world.bank.call('PUT', at('p16'), SETTINGS), 400, 'ERROR_REQUEST')
  expectOk(await world.bank.call('PUT', at('p0'), SETTINGS))
  // Lists show neither one whose master key is not given nor an altered one. Both count.
  for (const [name, byte] of [
    ['p0', 1],
    ['p1', 20],
  ] as const)
    await sql`update oidc_provider set credentials = set_byte(credentials, ${byte}::int, 255 - get_byte(credentials, ${byte}::int))
      where application_id = 'full' and provider_id = ${name}`.execute(server.context.db)
  expectError(await world.bank.call('PUT', at('p16'), SETTINGS), 400, 'ERROR_REQUEST')
  expectOk(await world.bank.call('PUT', at('p1'), SETTINGS))
})
