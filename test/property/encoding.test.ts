// Base64 and the request JWT of temporary keys (v3 §1.2, §7.1).
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseBase64, toBase64, toBase64Url } from '../../src/lib/base64.ts'
import { utf8 } from '../../src/lib/bytes.ts'
import { kdfInternal } from '../../src/protocol/v3/key-schedule.ts'
import { parseTemporaryKeyRequest } from '../../src/protocol/v3/temporary-key.ts'

// Lone surrogates included. The unit 'binary' of fast-check says the same and takes seconds to set up.
const codeUnits = fc.array(fc.nat({ max: 0xffff })).map((units) => String.fromCharCode(...units))

describe('Base64', () => {
  test('every byte string comes back, with and without padding', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const text = toBase64(bytes)
        expect([...(parseBase64(text) ?? [])]).toEqual([...bytes])
        expect([...(parseBase64(text.replaceAll('=', '')) ?? [])]).toEqual([...bytes])
        expect(parseBase64(text, bytes.length)).toBeDefined()
        expect(parseBase64(text, bytes.length + 1)).toBeUndefined()
      }),
    )
  })

  test.each(['A', 'AAAAA', 'AA=', 'AAA==', '=', 'AAAA=', 'AA=A', 'AA A', 'AA-_', 'AAAA\n', 'Aé=='])('%j is refused', (text) => {
    expect(parseBase64(text)).toBeUndefined()
  })

  test('arbitrary text never throws', () => {
    fc.assert(fc.property(codeUnits, (text) => parseBase64(text) !== null))
  })
})

describe('the request of a temporary key', () => {
  const secret = Buffer.alloc(16, 5)
  const keyTransport = Buffer.alloc(16, 6)
  const applicationKey = toBase64(Buffer.alloc(16, 7))
  const claims = { applicationKey, challenge: 'challenge' }
  const encode = (value: unknown): string => toBase64Url(utf8(JSON.stringify(value)))

  function makeJwt(
    payload: unknown,
    { header = { alg: 'HS256' }, key = secret }: { header?: unknown; key?: Uint8Array } = {},
  ): string {
    const covered = `${encode(header)}.${encode(payload)}`
    return `${covered}.${toBase64Url(createHmac('sha256', key).update(covered).digest())}`
  }

  test('a request reads back and its MAC is right', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string(),
        fc.record({ iat: fc.nat(), exp: fc.nat() }, { requiredKeys: [] }),
        async (challenge, others) => {
          const request = parseTemporaryKeyRequest(makeJwt({ applicationKey, challenge, ...others }))
          expect(request).toMatchObject({ applicationKey, challenge, activationId: undefined })
          expect(request?.verify(toBase64(secret), undefined)).toBe(true)
          expect(request?.verify(toBase64(secret), { keyTransport })).toBe(false)
          expect(request?.verify(toBase64(keyTransport), undefined)).toBe(false)
        },
      ),
    )
  })

  test('the activation claim decides the scope of the key', async () => {
    const inActivationScope = { ...claims, activationId: 'a5a49895-c0cf-4d5b-bcd3-943413d2c688' }
    const request = parseTemporaryKeyRequest(makeJwt(inActivationScope, { key: Buffer.from(kdfInternal(keyTransport, secret)) }))
    expect(request?.verify(toBase64(secret), { keyTransport })).toBe(true)
    expect(request?.verify(toBase64(secret), { keyTransport: Buffer.alloc(16) })).toBe(false)
    const madeForApplication = parseTemporaryKeyRequest(makeJwt(inActivationScope))
    expect(madeForApplication?.verify(toBase64(secret), { keyTransport })).toBe(false)
    expect(madeForApplication?.verify(toBase64(secret), undefined)).toBe(false)
  })

  test('one flipped bit anywhere is refused', async () => {
    const jwt = makeJwt(claims)
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: 2 }), fc.nat(), async (which, where) => {
        const parts = jwt.split('.')
        const bytes = Buffer.from(parts[which] ?? '', 'base64url')
        const index = where % bytes.length
        bytes.writeUInt8(bytes.readUInt8(index) ^ (1 << (where % 8)), index)
        parts[which] = toBase64Url(bytes)
        expect(parseTemporaryKeyRequest(parts.join('.'))?.verify(toBase64(secret), undefined) ?? false).toBe(false)
      }),
    )
  })

  test.each([
    ['no algorithm', makeJwt(claims, { header: { typ: 'JWT' } })],
    ['algorithm none', makeJwt(claims, { header: { alg: 'none' } })],
    ['another MAC', makeJwt(claims, { header: { alg: 'HS512' } })],
    ['a critical extension', makeJwt(claims, { header: { alg: 'HS256', crit: ['x'] } })],
    ['no application key', makeJwt({ challenge: 'c' })],
    ['no challenge', makeJwt({ applicationKey })],
    ['an application key that is not Base64', makeJwt({ ...claims, applicationKey: '!' })],
    ['an activation that is not a UUID', makeJwt({ ...claims, activationId: 'x' })],
    ['claims that are not an object', makeJwt('text')],
    ['two parts', makeJwt(claims).split('.').slice(0, 2).join('.')],
    ['four parts', `${makeJwt(claims)}.AAAA`],
    ['padding', `${makeJwt(claims)}=`],
    ['nothing', ''],
  ])('a request with %s is refused', (_, jwt) => {
    expect(parseTemporaryKeyRequest(jwt)).toBeUndefined()
  })

  test('arbitrary text never throws', () => {
    const part = fc.oneof(fc.string(), fc.jsonValue().map(encode))
    fc.assert(fc.property(fc.tuple(part, part, part), (parts) => parseTemporaryKeyRequest(parts.join('.')) === undefined))
    fc.assert(
      fc.property(fc.jsonValue(), (payload) => {
        parseTemporaryKeyRequest(makeJwt(payload))
      }),
    )
  })
})
