// Tests which ID tokens are accepted, and that all others are refused (OpenID Connect Core 1.0, 3.1.3.7).
import { createHash } from 'node:crypto'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import { createLocalJWKSet } from 'jose/jwks/local'
import { describe, expect, test } from 'vitest'
import { IdTokenRefused, readIdToken } from './tokens.ts'

const ISSUER = 'https://login.bank.example'
const NOW = Date.UTC(2026, 0, 1)
const SECONDS = NOW / 1000
const ACCESS_TOKEN = 'an-access-token'

const [rsa, ec, stranger] = await Promise.all([
  generateKeyPair('RS256', { extractable: true }),
  generateKeyPair('ES384', { extractable: true }),
  generateKeyPair('RS256'),
])
const SHARED = new TextEncoder().encode('a secret that both sides have: 32 bytes and more')
const keys = createLocalJWKSet({
  keys: [
    { ...(await exportJWK(rsa.publicKey)), kid: 'rsa' },
    { ...(await exportJWK(ec.publicKey)), kid: 'ec' },
    { kty: 'oct', k: Buffer.from(SHARED).toString('base64url'), kid: 'oct' },
  ],
})

const CLAIMS: JWTPayload = { iss: ISSUER, aud: 'app', sub: 'alice', nonce: 'n-1', iat: SECONDS, exp: SECONDS + 300 }
const sign = (
  claims: Readonly<Record<string, unknown>>,
  header: { alg: string; kid?: string } = { alg: 'RS256', kid: 'rsa' },
  key = rsa.privateKey,
) => new SignJWT({ ...CLAIMS, ...claims }).setProtectedHeader(header).sign(key)
const settings = { issuer: ISSUER, clientId: 'app', algorithms: ['RS256'], userIdClaim: 'sub' } as const
const read = (token: string, more: Partial<typeof settings> | Readonly<Record<string, unknown>> = {}) =>
  readIdToken(token, { settings: { ...settings, ...more }, keys, nonce: 'n-1', accessToken: ACCESS_TOKEN, now: NOW })
const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const hashOf = (name: string): string => {
  const hash = createHash(name).update(ACCESS_TOKEN).digest()
  return hash.subarray(0, hash.length / 2).toString('base64url')
}

test('a genuine token names its user', async () => {
  expect(await read(await sign({}))).toBe('alice')
  expect(await read(await sign({ azp: 'app', aud: ['app', 'other'], at_hash: hashOf('sha256') }))).toBe('alice')
  expect(await read(await sign({ customer: 'c-7' }), { userIdClaim: 'customer' })).toBe('c-7')
  const ofEc = await sign({ at_hash: hashOf('sha384') }, { alg: 'ES384', kid: 'ec' }, ec.privateKey)
  expect(await read(ofEc, { algorithms: ['ES384'] })).toBe('alice')
})

test.each<[string, Readonly<Record<string, unknown>>]>([
  ['another issuer', { iss: 'https://login.other.example' }],
  ['a foreign audience', { aud: 'other' }],
  ['several audiences and nobody who asked', { aud: ['app', 'other'] }],
  ['several audiences, asked for by another', { aud: ['app', 'other'], azp: 'other' }],
  ['asked for by another', { azp: 'other' }],
  ['expired', { exp: SECONDS - 61 }],
  ['without an end', { exp: undefined }],
  ['without a beginning', { iat: undefined }],
  ['of the future', { iat: SECONDS + 61 }],
  ['not good yet', { nbf: SECONDS + 61 }],
  ['another nonce', { nonce: 'n-2' }],
  ['a longer nonce', { nonce: 'n-11' }],
  ['no nonce', { nonce: undefined }],
  ['a nonce that is no text', { nonce: ['n-1'] }],
  ['of another access token', { at_hash: hashOf('sha384') }],
  ['a hash that is no text', { at_hash: 7 }],
  ['without a subject', { sub: undefined }],
  ['an empty subject', { sub: '' }],
  ['a blank subject', { sub: ' ' }],
  ['a subject of 256 characters', { sub: 'x'.repeat(256) }],
  ['a subject with a line break', { sub: 'a\nb' }],
  ['a subject that is no Unicode', { sub: 'a\ud800' }],
])('a token is refused: %s', async (_, claims) => {
  await expect(read(await sign(claims))).rejects.toBeInstanceOf(IdTokenRefused)
})

test.each(['missing', 'constructor', '__proto__', 'iat'])('the claim %s is no user id', async (userIdClaim) => {
  await expect(read(await sign({}), { userIdClaim })).rejects.toThrow('is no user id')
})

test('a refusal repeats nothing of the header', async () => {
  const header = { alg: 'RS256', kid: 'rsa', crit: ['a-name'], 'a-name': 1 }
  const none = `${part(header)}.${part(CLAIMS)}.AAAA`
  await expect(read(none)).rejects.toThrow(/^ERR_JOSE_NOT_SUPPORTED$/)
})

describe('a signature is refused', () => {
  test('none at all', async () => {
    const none = `${part({ alg: 'none' })}.${part(CLAIMS)}.`
    await expect(read(none)).rejects.toBeInstanceOf(IdTokenRefused)
  })

  test('with a secret, whatever keys there are', async () => {
    const claims = new SignJWT(CLAIMS)
    const shared = await claims.setProtectedHeader({ alg: 'HS256', kid: 'oct' }).sign(SHARED)
    await expect(read(shared)).rejects.toBeInstanceOf(IdTokenRefused)
    const publicKey = Buffer.from(JSON.stringify(await exportJWK(rsa.publicKey)))
    const confused = await new SignJWT(CLAIMS).setProtectedHeader({ alg: 'HS256', kid: 'rsa' }).sign(publicKey)
    await expect(read(confused)).rejects.toBeInstanceOf(IdTokenRefused)
  })

  test('by another algorithm than those of the settings', async () => {
    const token = await sign({}, { alg: 'ES384', kid: 'ec' }, ec.privateKey)
    await expect(read(token)).rejects.toBeInstanceOf(IdTokenRefused)
  })

  test("by a stranger's key, and by one that nobody knows", async () => {
    await expect(read(await sign({}, { alg: 'RS256', kid: 'rsa' }, stranger.privateKey))).rejects.toBeInstanceOf(IdTokenRefused)
    await expect(read(await sign({}, { alg: 'RS256', kid: 'new' }, stranger.privateKey))).rejects.toBeInstanceOf(IdTokenRefused)
  })

  test('over other claims, and over a member that stands twice', async () => {
    const [header, , signature] = (await sign({})).split('.')
    await expect(read(`${header}.${part({ ...CLAIMS, sub: 'mallory' })}.${signature}`)).rejects.toBeInstanceOf(IdTokenRefused)
    const text = JSON.stringify(CLAIMS).replace('{', '{"sub":"mallory",')
    const { subtle } = globalThis.crypto
    const input = `${part({ alg: 'RS256', kid: 'rsa' })}.${Buffer.from(text).toString('base64url')}`
    const made = Buffer.from(await subtle.sign('RSASSA-PKCS1-v1_5', rsa.privateKey, Buffer.from(input))).toString('base64url')
    await expect(read(`${input}.${made}`)).rejects.toThrow('a member stands twice')
  })
})
