// Access tokens of an authorization server on the cloud API (cloud §2.1): keys and signatures are node:crypto's.
import { createHmac, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { member, sendJson, type HttpReply } from '../../../phone/http.ts'
import { openTestDatabase, startTestServer, type TestServer } from '../../helpers/app.ts'
import { sealForBank } from '../../helpers/door-envelope.ts'
import { expectError } from '../../helpers/expectations.ts'
import { expectOk, startServerWithWorld, type World } from '../../helpers/world.ts'

const ISSUER = 'https://login.bank.example/realm'
const AUDIENCE = 'pawl-cloud'
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const foreign = generateKeyPairSync('rsa', { modulusLength: 2048 })
const jwk = (key: KeyObject, kid: string) => ({ ...key.export({ format: 'jwk' }), kid, use: 'sig' })

let keyServer: Server
let keyRequests = 0
let keySet: { readonly status: number; readonly body: string | Uint8Array }
const usual = { status: 200, body: JSON.stringify({ keys: [jwk(rsa.publicKey, 'rsa'), jwk(ec.publicKey, 'ec')] }) }
let server: TestServer
let world: World

beforeAll(async () => {
  keySet = usual
  keyServer = createServer((_request, response) => {
    keyRequests += 1
    response.writeHead(keySet.status).end(keySet.body)
  })
  await new Promise<void>((resolve) => keyServer.listen(0, '127.0.0.1', resolve))
  ;({ server, world } = await startServerWithWorld({ env: settings('jwks') }))
  await world.activePhone('3.3')
})
afterAll(async () => {
  await world.close()
  keyServer.close()
})
beforeEach(() => {
  keySet = usual
})

const settings = (path: string) => ({
  PAWL_JWT_JWKS_URL: `http://127.0.0.1:${(keyServer.address() as AddressInfo).port}/${path}`,
  PAWL_JWT_ISSUER: ISSUER,
  PAWL_JWT_AUDIENCE: AUDIENCE,
})

const part = (json: unknown): string => Buffer.from(JSON.stringify(json)).toString('base64url')
const inSeconds = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds
const claims = (more: Readonly<Record<string, unknown>> = {}) => ({
  iss: ISSUER,
  aud: AUDIENCE,
  sub: 'back-end',
  iat: inSeconds(0),
  exp: inSeconds(120),
  scope: 'openid pawl:integration',
  pawl_application: world.applicationId,
  ...more,
})

function token(
  payload: Readonly<Record<string, unknown>>,
  header: Readonly<Record<string, unknown>> = {},
  key = rsa.privateKey,
): string {
  const input = `${part({ alg: 'RS256', kid: 'rsa', typ: 'at+jwt', ...header })}.${part(payload)}`
  return `${input}.${sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

/** The same with a text for each part, which need not be what JSON.stringify writes. */
function tokenOf(payload: string, header = JSON.stringify({ alg: 'RS256', kid: 'rsa', typ: 'at+jwt' })): string {
  const input = `${Buffer.from(header).toString('base64url')}.${Buffer.from(payload).toString('base64url')}`
  return `${input}.${sign('sha256', Buffer.from(input), rsa.privateKey).toString('base64url')}`
}
const withMore = (text: string): string => JSON.stringify(claims()).replace(/\}$/, `,${text}}`)

const call = (bearer: string, path = '/registration?userId=nobody', url = world.url): Promise<HttpReply> =>
  sendJson(url, 'GET', path, undefined, { Authorization: `Bearer ${bearer}` })

const UNAUTHORIZED = { status: 'ERROR', responseObject: { code: 'HTTP_401', message: 'Unauthorized' } }

test.each([
  ['RSA', () => token(claims())],
  ['an elliptic curve', () => token(claims(), { alg: 'ES256', kid: 'ec' }, ec.privateKey)],
  ['several audiences', () => token(claims({ aud: ['other', AUDIENCE] }))],
  ['roles as a list', () => token(claims({ scope: ['other', 'pawl:integration'] }))],
  ['a clock that is a little ahead', () => token(claims({ nbf: inSeconds(20), iat: inSeconds(20), exp: inSeconds(-20) }))],
  ['the type JWT', () => token(claims(), { typ: 'JWT' })],
  ['a type in another case', () => token(claims(), { typ: 'AT+JWT' })],
  ['a type that is a whole media type', () => token(claims(), { typ: 'application/at+jwt' })],
  ['no type', () => token(claims(), { typ: undefined })],
  ['what others have in it', () => token(claims({ azp: 'x', client_id: 'x', jti: 'x', nbf: inSeconds(-1), nonce: 5 }))],
  ['no time of issue', () => token(claims({ iat: undefined }))],
  ['an end in a month', () => token(claims({ exp: inSeconds(30 * 86_400) }))],
  ['a time with a fraction', () => token(claims({ exp: inSeconds(60) + 0.5 }))],
  ['one name in two objects', () => tokenOf(withMore('"a":{"sub":1},"b":[{"sub":1},{"sub":1}]'))],
])('a token with %s is taken', async (_, make) => {
  expect(expectOk(await call(make())).json).toEqual({ registration: 'NONE' })
})

test('a name that a stranger writes into the header of a token is not in the log', async () => {
  expect((await call(token(claims(), { crit: ['typed-by-a-stranger'], 'typed-by-a-stranger': 1 }))).status).toBe(401)
  expect(server.log()).toContain('access token: ERR_JOSE_NOT_SUPPORTED')
  expect(server.log()).not.toContain('typed-by-a-stranger')
})

test('the role of a token is the role of a credential, and its application the only one', async () => {
  const admin = token(claims({ scope: 'pawl:admin', pawl_application: undefined }))
  expectOk(await call(admin, '/admin/users'))
  expect((await call(token(claims()), '/admin/users')).status).toBe(403)
  const reader = token(claims({ scope: 'pawl:read-only', pawl_application: undefined }))
  expectOk(await call(reader, '/admin/applications'))
  expect(
    (await sendJson(world.url, 'POST', '/registration', { userId: 'x' }, { Authorization: `Bearer ${reader}` })).status,
  ).toBe(403)
  const verifier = token(claims({ scope: 'pawl:verification' }))
  expect((await call(verifier)).status).toBe(403)
  const asked = { token: 'x', client: { address: '203.0.113.7' } }
  const verified = await sendJson(world.url, 'POST', '/verification/token', asked, { Authorization: `Bearer ${verifier}` })
  expect(expectOk(verified).json).toEqual({ isValid: false, reason: 'HEADER_MALFORMED' })
  const elsewhere = await call(
    token(claims({ pawl_application: 'another-app' })),
    '/operations?operationId=00000000-0000-4000-8000-000000000000',
  )
  expect(elsewhere.status).toBe(400)
})

test('a token has no right, whatever it claims; the credential of its subject keeps its own', async () => {
  const rights = ['envelopes:application', 'keys:derive']
  const user = { username: 'first-tier', role: 'verification', application: world.applicationId }
  const { password } = expectOk(await world.bank.call('POST', '/admin/users', user)).json as { password: string }
  expectOk(await world.bank.call('PATCH', '/admin/users/first-tier', { rights }))
  const sent = await sealForBank(world.newPhone('3.3'), '{}', { scope: 'application' })
  const openWith = (authorization: string) =>
    sendJson(world.url, 'POST', '/encryption/open', sent.body, { Authorization: authorization })
  for (const role of ['pawl:verification', 'pawl:integration', 'pawl:admin']) {
    const named = { sub: 'first-tier', client_id: 'first-tier', rights, pawl_rights: rights }
    const bearer = token(claims({ ...named, scope: `${role} ${rights.join(' ')}` }))
    expectError(await openWith(`Bearer ${bearer}`), 403, 'HTTP_403')
    const verify = server.context.verifyAccessToken
    expect(await verify?.(bearer, '203.0.113.7')).toMatchObject({ username: 'oauth:first-tier', rights: [] })
  }
  const basic = `Basic ${Buffer.from(`first-tier:${password}`).toString('base64')}`
  expect(expectOk(await openWith(basic)).json).toMatchObject({ isOpened: true })
})

test('changes of an administrator with a token are recorded under its subject', async () => {
  const authorization = {
    Authorization: `Bearer ${token(claims({ sub: 'deployer', scope: 'pawl:admin', pawl_application: undefined }))}`,
  }
  expectOk(
    await sendJson(world.url, 'POST', '/admin/applications', { id: 'by-token' }, authorization).then((reply) =>
      reply.status === 404 ? sendJson(world.url, 'POST', '/admin/application', { id: 'by-token' }, authorization) : reply,
    ),
  )
  const { rows } = {
    rows: await server.context.db.selectFrom('admin_event').select('username').where('username', 'like', 'oauth:%').execute(),
  }
  expect(rows.map(({ username }) => username)).toContain('oauth:deployer')
})

describe('a token is refused, each in the same words', () => {
  const hmacToken = (): string => {
    // With the public key as the secret, as the known attack has it.
    const input = `${part({ alg: 'HS256', kid: 'rsa' })}.${part(claims())}`
    const secret = rsa.publicKey.export({ format: 'pem', type: 'spki' })
    return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
  }
  test.each<[string, () => string]>([
    ['of another issuer', () => token(claims({ iss: 'https://other.example' }))],
    ['without issuer', () => token(claims({ iss: undefined }))],
    ['for another audience', () => token(claims({ aud: 'other' }))],
    ['that has ended', () => token(claims({ exp: inSeconds(-40) }))],
    ['without end', () => token(claims({ exp: undefined }))],
    ['that begins later', () => token(claims({ nbf: inSeconds(60) }))],
    ['without subject', () => token(claims({ sub: undefined }))],
    ['with a subject of control characters', () => token(claims({ sub: 'a\nb' }))],
    ['without a role', () => token(claims({ scope: 'openid admin' }))],
    ['with two roles', () => token(claims({ scope: 'pawl:admin pawl:integration' }))],
    ['with a role that nobody knows', () => token(claims({ scope: 'pawl:root' }))],
    ['with an application that is no text', () => token(claims({ pawl_application: 7 }))],
    ['signed by somebody else', () => token(claims(), {}, foreign.privateKey)],
    ['of an unknown key', () => token(claims(), { kid: 'unknown' })],
    ['with the algorithm of another key', () => token(claims(), { alg: 'ES256' })],
    ['with an algorithm that is not allowed', () => token(claims(), { alg: 'RS512' })],
    ['with a shared secret', hmacToken],
    ['without signature', () => `${part({ alg: 'none' })}.${part(claims())}.`],
    ['that was altered', () => token(claims()).replace(/\.[^.]+\./, `.${part(claims({ scope: 'pawl:admin' }))}.`)],
    ['with a critical extension', () => token(claims(), { crit: ['x'], x: 1 })],
    ...[
      'logout+jwt',
      'secevent+jwt',
      'application/logout+jwt',
      'application/',
      'text/at+jwt',
      'dpop+jwt',
      'at+jwt; x=1',
      'at jwt',
      '',
      5,
      null,
      ['JWT'],
      { JWT: 1 },
    ].map((typ): [string, () => string] => [`of the type ${JSON.stringify(typ)}`, () => token(claims(), { typ })]),
    ...[
      { sub: 5 },
      { sub: ['root'] },
      { sub: { a: 1 } },
      { sub: null },
      { sub: true },
      { sub: 'a\ud800' },
      { sub: '' },
      { iss: [ISSUER] },
      { aud: [AUDIENCE, 5] },
      { aud: { [AUDIENCE]: 1 } },
      { azp: 5 },
      { azp: ['x'] },
      { client_id: 5 },
      { client_id: { id: 'x' } },
      { jti: 5 },
      { jti: ['x'] },
      { scope: ['pawl:integration', 5] },
      { scope: [['pawl:integration']] },
      { scope: { 'pawl:integration': true } },
      { scope: 5 },
      { pawl_application: '' },
      { pawl_application: null },
      { pawl_application: ['x'] },
      { pawl_application: ' ' },
      { pawl_application: 'a\udc00' },
      { pawl_application: 'x'.repeat(300) },
      { exp: 1e308 },
      { exp: 253_402_300_799 },
      { exp: 9_007_199_254_740_992 },
      { exp: Date.now() + 60_000 },
      { exp: inSeconds(32 * 86_400) },
      { exp: String(inSeconds(60)) },
      { exp: [inSeconds(60)] },
      { exp: null },
      { nbf: '0' },
      { nbf: -1 },
      { nbf: -1e308 },
      { nbf: null },
      { iat: inSeconds(120) },
      { iat: 1e308 },
      { iat: '0' },
      { iat: -5 },
      { iat: [0] },
    ].map((more): [string, () => string] => [`with ${JSON.stringify(more)}`, () => token(claims(more))]),
    ['with a subject twice', () => tokenOf(withMore('"sub":"another"'))],
    ['with an application twice', () => tokenOf(withMore('"pawl\\u005fapplication":"other"'))],
    ['with a role twice, deep down', () => tokenOf(withMore('"realm":[{"roles":[],"roles":["pawl:admin"]}]'))],
    [
      'with a type twice',
      () => tokenOf(JSON.stringify(claims()), '{"alg":"RS256","kid":"rsa","typ":"logout+jwt","typ":"at+jwt"}'),
    ],
    ['that is no JWT', () => 'abc'],
    ['of three empty parts', () => '..'],
  ])('%s', async (_, make) => {
    const reply = await call(make())
    expect({ status: reply.status, json: reply.json }).toEqual({ status: 401, json: UNAUTHORIZED })
    expect(reply.headers['www-authenticate']).toContain('Basic')
  })

  test('and neither tokens nor claims are in the log', () => {
    expect(server.log()).toContain('access token: ')
    expect(server.log()).not.toMatch(/eyJ|login\.bank\.example|back-end/)
  })
})

test('passwords go on beside tokens, and bad words behind Bearer are no password', async () => {
  expectOk(await world.bank.view('nobody'))
  for (const value of ['Bearer', 'Bearer ', 'Bearer a b', 'Bearer é'])
    expect(
      (
        await sendJson(world.url, 'GET', '/admin/users', undefined, {
          Authorization: Buffer.from(value, 'utf8').toString('latin1'),
        })
      ).status,
    ).toBe(401)
})

test('a flood of wrong tokens is counted, and has one line in the log', async () => {
  const lines = () => server.log().split('access token: \\"nbf\\" claim timestamp').length - 1
  const refused = async () =>
    /pawl_refusals_total\{of="credential"\} (\d+)/.exec((await world.bank.call('GET', '/metrics')).text)?.[1]
  const before = Number(await refused())
  for (let i = 0; i < 20; i += 1) await call(token(claims({ nbf: inSeconds(600) })))
  expect(lines()).toBe(1)
  expect(Number(await refused()) - before).toBe(20)
})

test('keys are asked for once, and unknown ones do not make pawl ask more often', async () => {
  const before = keyRequests
  for (let i = 0; i < 20; i += 1) await call(token(claims(), { kid: `unknown-${i}` }))
  await Promise.all(Array.from({ length: 20 }, () => call(token(claims()))))
  expect(keyRequests - before).toBeLessThanOrEqual(1)
})

describe('keys of the authorization server', () => {
  const next = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const replaced = { status: 200, body: JSON.stringify({ keys: [jwk(next.publicKey, 'next')] }) }

  test.each([
    ['goes on evenly', 0],
    ['is set back an hour', -3_600_000],
    ['is set back a day', -86_400_000],
    ['is set on a day', 86_400_000],
  ])(
    'that come new are known within half a minute, and those that go are gone after ten, while the clock %s',
    async (_, step) => {
      const other = await startServerWithWorld({ env: settings('turning') })
      const statusOf = async (kid: string, { privateKey }: { privateKey: KeyObject }): Promise<number> => {
        const iat = Math.floor(other.server.context.platform.now() / 1000)
        return (
          await call(token(claims({ iat, exp: iat + 120 }), { kid }, privateKey), '/registration?userId=x', other.world.url)
        ).status
      }
      const old = () => statusOf('rsa', rsa)
      const later = () => statusOf('next', next)
      other.server.clock.stop()
      try {
        expect([await old(), await later()]).toEqual([200, 401])
        keySet = replaced
        // What the libraries of the process take for the time.
        vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + step })
        other.server.clock.step(step)
        other.server.clock.advance(29_000)
        expect([await later(), await old()]).toEqual([401, 200])
        other.server.clock.advance(2_000)
        expect([await later(), await old()]).toEqual([200, 401])
        keySet = usual
        other.server.clock.advance(599_000)
        expect(await later()).toBe(200)
        other.server.clock.advance(2_000)
        expect([await later(), await old()]).toEqual([401, 200])
      } finally {
        vi.useRealTimers()
        await other.world.close()
      }
    },
  )
})

test('a setting narrows the types to that of RFC 9068', async () => {
  const other = await startServerWithWorld({ env: { ...settings('narrow'), PAWL_JWT_TYPES: 'at+jwt' } })
  try {
    const statusOf = async (typ: unknown) =>
      (await call(token(claims(), { typ }), '/registration?userId=x', other.world.url)).status
    expect(await statusOf('application/AT+JWT')).toBe(200)
    for (const typ of ['JWT', undefined, 'at+jw', 'jwt']) expect(await statusOf(typ)).toBe(401)
  } finally {
    await other.world.close()
  }
})

describe('a server that has asked for no keys yet', () => {
  // What a server knows of keys is in its memory, so one database does for all.
  const masterKeys = [randomBytes(32)] as const
  let opened: Awaited<ReturnType<typeof openTestDatabase>>
  beforeAll(async () => {
    opened = await openTestDatabase()
  })
  afterAll(async () => {
    await opened.database.close()
    await opened.drop()
  })
  const startBeside = (env: Record<string, string>) => startTestServer({ env, database: opened.database, masterKeys })

  test.each([
    ['an error', { status: 500, body: '' }],
    ['something else', { status: 200, body: '<html>marked</html>' }],
    ['no set of keys', { status: 200, body: '{"marked":[]}' }],
    ['a redirect', { status: 302, body: '' }],
    ['a set of what are no keys', { status: 200, body: '{"keys":[5,"marked"]}' }],
    ['more than a key set has', { status: 200, body: JSON.stringify({ marked: 'x'.repeat(262_144), keys: [] }) }],
    ['its keys twice', { status: 200, body: `{"keys":[],${usual.body.slice(1)}` }],
    ['a member of a key twice', { status: 200, body: usual.body.replace('{"kty"', '{"kid":"rsa","kty"') }],
    ['what is not UTF-8', { status: 200, body: Buffer.from('{"keys":[],"\xff":1}', 'latin1') }],
    ['what is compressed', { status: 200, body: gzipSync(usual.body) }],
  ])('a key server that answers with %s lets nobody in, and is not asked by every request', async (_, body) => {
    keySet = body
    const other = await startBeside(settings('other'))
    try {
      const before = keyRequests
      const replies = await Promise.all(Array.from({ length: 8 }, () => call(token(claims()), undefined, other.url)))
      replies.push(await call(token(claims()), undefined, other.url))
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([503]))
      expect(member(replies[0]?.json, 'responseObject', 'code')).toBe('HTTP_503')
      expect(replies[0]?.headers['retry-after']).toBe('1')
      expect(keyRequests - before).toBe(1)
      expect(other.log()).not.toContain('marked')
    } finally {
      await other.close()
    }
  })

  test('a key set behind a byte order mark, with a time in nanoseconds, is understood', async () => {
    keySet = { status: 200, body: `\uFEFF{"made":1767225600000000000,${usual.body.slice(1)}` }
    const other = await startBeside(settings('marked'))
    try {
      // It has no registration: who called is known, and that is the question.
      expect((await call(token(claims({ scope: 'pawl:admin' })), '/admin/users', other.url)).status).toBe(200)
    } finally {
      await other.close()
    }
  })

  test.each<[string, string, string]>([
    ['a key set', 'HTTP/1.1 200 OK\r\n\r\n{"keys":[', '{},'],
    ['a compressed one', 'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n', gzipSync('x'.repeat(1_000_000)).toString('latin1')],
    ['interim answers', '', 'HTTP/1.1 103 x\r\n\r\n'],
    ['headers', 'HTTP/1.1 200 OK\r\n', 'x: y\r\n'],
  ])('a key server that sends %s without end is left at once', async (_, head, again) => {
    const block = Buffer.from(again.repeat(Math.ceil(65_536 / again.length)), 'latin1')
    let sent = 0
    const endless = createTcpServer((socket) => {
      const go = (): void => {
        while (!socket.destroyed && socket.write(block)) sent += block.length
      }
      socket.on('error', () => undefined).on('drain', go)
      socket.once('data', () => {
        socket.write(head)
        go()
      })
    })
    await new Promise<void>((resolve) => endless.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(endless.address() as AddressInfo).port}/jwks`
    const other = await startBeside({ ...settings(''), PAWL_JWT_JWKS_URL: url })
    try {
      expect((await call(token(claims()), undefined, other.url)).status).toBe(503)
      // At once, and not at a time limit, is what it has sent, and the reason.
      expect(other.log()).not.toMatch(/within [\d.]+ s/)
      expect(sent).toBeLessThan(32 * 1024 * 1024)
      expect(other.log()).toMatch(/PAWL_JWT_JWKS_URL: http:\/\/127\.0\.0\.1:\d+ \w+/)
    } finally {
      await other.close()
      endless.close()
    }
  })
})
