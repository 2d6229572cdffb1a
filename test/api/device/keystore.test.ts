// POST /pa/v3/keystore/create: temporary keys of 3.3 (v3 §7).
import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readApplication } from '../../helpers/bank.ts'
import { expectError, expectRefused, expectUntouched, HOUR, MINUTE, SECOND } from '../../helpers/expectations.ts'
import type { HttpReply } from '../../../phone/http.ts'
import { member, sendJson } from '../../../phone/http.ts'
import { b64, hs256Jwt, newKeyPair, openEs256Jwt, random, unb64 } from '../../../phone/v3/crypto.ts'
import type { World } from '../../helpers/world.ts'
import { expectOk, startWorld } from '../../helpers/world.ts'

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

const create = (json: unknown): Promise<HttpReply> => sendJson(world.url, 'POST', '/pa/v3/keystore/create', json)
const claimsOf = (applicationKey: string): string => JSON.stringify({ applicationKey, challenge: 'c' })

/** A JWT of texts as they are, which no JSON library writes. */
function rawJwt(header: string, claims: string, secret: Uint8Array): string {
  const covered = [header, claims].map((text) => Buffer.from(text).toString('base64url')).join('.')
  return `${covered}.${createHmac('sha256', secret).update(covered).digest('base64url')}`
}

const createWith = (jwt: unknown): Promise<HttpReply> => create({ requestObject: { jwt } })

describe('POST /pa/v3/keystore/create, application scope', () => {
  test('answers with a key that the master key signed and that names the request', async () => {
    const phone = world.newPhone('3.3')
    const request = phone.newTemporaryKeyRequest('application')
    const reply = expectOk(await create(request.json))
    expect(reply.json).toEqual({ status: 'OK', responseObject: { jwt: expect.any(String) } })
    const { header, claims } = openEs256Jwt(String(member(reply.json, 'responseObject', 'jwt')), world.app.masterPublicKey)
    expect(header).toEqual({ alg: 'ES256', typ: 'JWT' })
    expect(Object.keys(claims).sort()).toEqual([
      'applicationKey',
      'challenge',
      'exp',
      'exp_ms',
      'iat',
      'iat_ms',
      'publicKey',
      'sub',
    ])
    expect(claims).toMatchObject({ applicationKey: world.app.applicationKey, challenge: request.challenge })
    expect(claims.sub).toMatch(UUID_V4)
    expect(unb64(String(claims.publicKey))).toHaveLength(65)
  })

  test('is valid for 300 seconds from the time of the server', async () => {
    const phone = world.newPhone('3.3')
    const request = phone.newTemporaryKeyRequest('application')
    const before = await phone.serverTime()
    const reply = expectOk(await create(request.json))
    const { claims } = openEs256Jwt(String(member(reply.json, 'responseObject', 'jwt')), world.app.masterPublicKey)
    const issued = Number(claims.iat_ms)
    expect(issued).toBeGreaterThanOrEqual(before)
    expect(claims.exp_ms).toBe(issued + 300_000)
    expect(claims.iat).toBe(Math.floor(issued / 1000))
    expect(claims.exp).toBe(Math.floor((issued + 300_000) / 1000))
  })

  test('gives every request a key of its own, the same request sent twice included', async () => {
    const phone = world.newPhone('3.3')
    const request = phone.newTemporaryKeyRequest('application')
    const replies = [await create(request.json), await create(request.json)]
    const keys = replies.map((reply) => phone.openTemporaryKey('application', request.challenge, reply))
    expect(keys[0]?.id).not.toBe(keys[1]?.id)
    expect(b64(keys[0]?.publicKey ?? random(1))).not.toBe(b64(keys[1]?.publicKey ?? random(1)))
  })

  test('returns the challenge unchanged, whatever text it is', async () => {
    const challenge = 'žluťoučký "kůň" \\ 🐎'
    const { applicationKey, applicationSecret } = world.app
    const reply = await createWith(hs256Jwt({ applicationKey, challenge }, unb64(applicationSecret)))
    expect(world.newPhone('3.3').openTemporaryKey('application', challenge, reply).id).toMatch(UUID_V4)
  })

  test('ignores other claims and has no freshness check', async () => {
    const { applicationKey, applicationSecret } = world.app
    const claims = { applicationKey, challenge: 'c', iat: 1, exp: 2, iat_ms: 1000, exp_ms: 2000, unknown: [] }
    expectOk(await createWith(hs256Jwt(claims, unb64(applicationSecret), { alg: 'HS256' })))
  })

  test.each<[string, unknown]>([
    ['no request object', {}],
    ['a request object without jwt', { requestObject: {} }],
    ['a null jwt', { requestObject: { jwt: null } }],
    ['an empty jwt', { requestObject: { jwt: '' } }],
    ['a blank jwt', { requestObject: { jwt: '   ' } }],
    ['a jwt that is not text', { requestObject: { jwt: 7 } }],
    ['a request object that is not an object', { requestObject: 'jwt' }],
    ['an array', []],
  ])('refuses %s as a structural error', async (_, json) => {
    expectError(await create(json), 400, 'ERR_VALIDATION')
  })

  test.each<[string, (secret: Uint8Array, applicationKey: string) => string]>([
    ['text that is not a JWT', () => 'no jwt'],
    ['three parts that are not JSON', () => 'a.b.c'],
    ['a JWT under another secret', (_, applicationKey) => hs256Jwt({ applicationKey, challenge: 'c' }, random(16))],
    ['a JWT without application key', (secret) => hs256Jwt({ challenge: 'c' }, secret)],
    ['an unknown application key', (secret) => hs256Jwt({ applicationKey: b64(random(16)), challenge: 'c' }, secret)],
    ['an application key that is not text', (secret) => hs256Jwt({ applicationKey: 7, challenge: 'c' }, secret)],
    ['alg none', (secret, applicationKey) => hs256Jwt({ applicationKey, challenge: 'c' }, secret, { alg: 'none' })],
    ['alg HS512', (secret, applicationKey) => hs256Jwt({ applicationKey, challenge: 'c' }, secret, { alg: 'HS512' })],
    ['no alg', (secret, applicationKey) => hs256Jwt({ applicationKey, challenge: 'c' }, secret, {})],
    ['a second alg', (secret, applicationKey) => rawJwt('{"alg":"HS256","alg":"HS256"}', claimsOf(applicationKey), secret)],
    [
      'a second alg in another spelling',
      (secret, applicationKey) => rawJwt('{"alg":"none","\\u0061lg":"HS256"}', claimsOf(applicationKey), secret),
    ],
    [
      'a second challenge',
      (secret, applicationKey) => rawJwt('{"alg":"HS256"}', `{"challenge":"d",${claimsOf(applicationKey).slice(1)}`, secret),
    ],
    ['claims that are not an object', (secret) => hs256Jwt(7, secret)],
    ['a fourth part', (secret, applicationKey) => `${hs256Jwt({ applicationKey, challenge: 'c' }, secret)}.x`],
    ['no signature', (secret, applicationKey) => hs256Jwt({ applicationKey, challenge: 'c' }, secret).replace(/[^.]*$/, '')],
  ])('refuses %s', async (_, jwt) => {
    expectRefused(await createWith(jwt(unb64(world.app.applicationSecret), world.app.applicationKey)), 'temporaryKey')
  })

  test('refuses an application version that was switched off', async () => {
    const path = `/admin/applications/${world.applicationId}/versions`
    expectOk(await world.bank.call('POST', path, { name: 'old' }))
    const app = readApplication(await world.bank.call('GET', `/admin/application?id=${world.applicationId}&version=old`))
    const phone = world.newPhone('3.3', { app })
    await phone.fetchTemporaryKey('application')
    expectOk(await world.bank.call('PATCH', `${path}/old`, { isSupported: false }))
    expectRefused(await create(phone.newTemporaryKeyRequest('application').json), 'temporaryKey')
  })
})

describe('POST /pa/v3/keystore/create, activation scope', () => {
  test('answers with a key that the server key of the activation signed', async () => {
    const { phone } = await world.activePhone('3.3')
    const request = phone.newTemporaryKeyRequest('activation')
    const reply = expectOk(await create(request.json))
    const { claims } = openEs256Jwt(String(member(reply.json, 'responseObject', 'jwt')), phone.state.serverPublicKey)
    expect(claims).toMatchObject({ activationId: phone.state.activationId, challenge: request.challenge })
    expect(() => openEs256Jwt(String(member(reply.json, 'responseObject', 'jwt')), world.app.masterPublicKey)).toThrow()
  })

  test('still answers while the activation is blocked, and not before its commit nor after its removal', async () => {
    const { phone, userId } = await world.pendingPhone('3.3')
    const request = () => create(phone.newTemporaryKeyRequest('activation').json)
    expectRefused(await request(), 'temporaryKey')
    expectOk(await world.bank.commit(userId))
    expectOk(await request())
    expectOk(await world.bank.change(userId, 'BLOCK'))
    expectOk(await request())
    expectOk(await world.bank.remove(userId))
    expectRefused(await request(), 'temporaryKey')
  })

  test('refuses the application secret, an unknown activation and one of another application', async () => {
    const { phone } = await world.activePhone('3.3')
    const { claims, secret } = phone.newTemporaryKeyRequest('activation')
    await expectUntouched(phone, async () => {
      expectRefused(await createWith(hs256Jwt(claims, unb64(world.app.applicationSecret))), 'temporaryKey')
      const unknown = { ...claims, activationId: '00000000-0000-4000-8000-000000000000' }
      expectRefused(await createWith(hs256Jwt(unknown, secret)), 'temporaryKey')
      const foreign = readApplication(await world.bank.createApplication(world.newUser()))
      const moved = phone.speaking({ app: foreign }).newTemporaryKeyRequest('activation')
      expectRefused(await create(moved.json), 'temporaryKey')
    })
    expectOk(await createWith(hs256Jwt(claims, secret)))
  })

  test('gives keys that open the requests of this activation until they expire', async () => {
    const { phone } = await world.activePhone('3.3')
    const temporaryKey = await phone.fetchTemporaryKey('activation')
    for (let i = 0; i < 3; i++) await phone.exchange(await phone.prepareUserInfo({ temporaryKey }))
    await world.advance(5 * MINUTE - 10 * SECOND)
    await phone.exchange(await phone.prepareUserInfo({ temporaryKey }))
    await world.advance(20 * SECOND)
    expectRefused(await phone.send(await phone.prepareUserInfo({ temporaryKey })), 'encryption')
    await phone.exchange(await phone.prepareUserInfo())
  })

  test('does not open a request with the key of another activation or scope, or with an unknown key', async () => {
    const { phone } = await world.activePhone('3.3')
    const other = await world.activePhone('3.3')
    const keys = [
      await other.phone.fetchTemporaryKey('activation'),
      await phone.fetchTemporaryKey('application'),
      { id: '00000000-0000-4000-8000-000000000000', publicKey: newKeyPair().uncompressed, expiresAt: 0 },
      { id: 'no uuid', publicKey: newKeyPair().uncompressed, expiresAt: 0 },
    ]
    for (const temporaryKey of keys) {
      expectRefused(await phone.send(await phone.prepareUserInfo({ temporaryKey })), 'encryption')
    }
  })

  test('does not let a key outlive a long absence', async () => {
    const { phone } = await world.activePhone('3.3')
    const temporaryKey = await phone.fetchTemporaryKey('activation')
    await world.advance(48 * HOUR)
    expectRefused(await phone.send(await phone.prepareUserInfo({ temporaryKey })), 'encryption')
  })
})
