// Header values of 4.0 (v4 §6): what was written is read back, whatever else arrives is refused or read without a fault.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toBase64 } from '../../src/lib/base64.ts'
import { FACTOR_COMBINATIONS } from '../../src/protocol/protocol.ts'
import { parseAuthorizationHeader, parseEncryptionHeader, parseTokenHeader } from '../../src/protocol/v4/header.ts'

// Lone surrogates included. The unit 'binary' of fast-check says the same and takes seconds to set up.
const codeUnits = fc.array(fc.nat({ max: 0xffff })).map((units) => String.fromCharCode(...units))

const SCHEMES = ['Svc', 'PowerAuth']
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })
const separator = fc.constantFrom(',', ', ', ' ', '\n  ', ',\t', ' , ,')
const authorization = fc.record({
  activationId: fc.uuid({ version: [1, 2, 3, 4, 5] }),
  applicationKey: bytes(16).map(toBase64),
  nonce: bytes(16),
  factors: fc.constantFrom(...FACTOR_COMBINATIONS),
  code: fc.constantFrom(32, 64, 96).chain(bytes).map(toBase64),
})

const write = (scheme: string, pairs: Readonly<Record<string, string>>, between = ', '): string =>
  `${scheme} ${Object.entries(pairs)
    .map(([key, value]) => `${key}="${value}"`)
    .join(between)}`

const valid = {
  pa_activation_id: 'a5a49895-c0cf-4d5b-bcd3-943413d2c688',
  pa_application_key: 'oTITEVuQSyH0RqsMD0Gulg==',
  pa_nonce: 'nHLMxrOzq0JxANqYPDO5xQ==',
  pa_auth_code_type: 'possession_knowledge',
  pa_auth_code: toBase64(Buffer.alloc(64, 1)),
  pa_version: '4.0',
}

describe('header values of 4.0', () => {
  test('an authorization header reads back as it was written, in any order and with unknown members', () => {
    fc.assert(
      fc.property(authorization, separator, fc.constantFrom(...SCHEMES), fc.boolean(), (header, between, scheme, isReversed) => {
        const pairs = {
          pa_version: '4.0',
          pa_activation_id: header.activationId,
          unknown: 'x,y = z',
          pa_application_key: header.applicationKey,
          pa_nonce: toBase64(header.nonce),
          pa_auth_code_type: header.factors.toLowerCase(),
          pa_auth_code: header.code,
        }
        const ordered = isReversed ? Object.fromEntries(Object.entries(pairs).toReversed()) : pairs
        const parsed = parseAuthorizationHeader(` ${write(scheme, ordered, between)}\t`, SCHEMES)
        expect({ ...parsed, nonce: [...(parsed?.nonce ?? [])] }).toEqual({ ...header, version: '4.0', nonce: [...header.nonce] })
      }),
    )
  })

  test('a token header reads back as it was written', () => {
    const token = fc.record({
      tokenId: fc.uuid({ version: 4 }),
      digest: bytes(32),
      nonce: bytes(16),
      timestamp: fc.integer({ min: 100_000_000, max: 999_999_999_999_999 }),
    })
    fc.assert(
      fc.property(token, separator, (header, between) => {
        const pairs = {
          token_id: header.tokenId,
          token_digest: toBase64(header.digest),
          nonce: toBase64(header.nonce),
          timestamp: String(header.timestamp),
          version: '4.0',
        }
        const parsed = parseTokenHeader(write('PowerAuth', pairs, between), SCHEMES)
        expect(parsed && { ...parsed, digest: toBase64(parsed.digest), nonce: toBase64(parsed.nonce) }).toEqual({
          ...header,
          version: '4.0',
          digest: toBase64(header.digest),
          nonce: toBase64(header.nonce),
        })
      }),
    )
  })

  test('an encryption header reads back with and without an activation', () => {
    const applicationKey = valid.pa_application_key
    for (const activationId of [undefined, valid.pa_activation_id, valid.pa_activation_id.toUpperCase()]) {
      const pairs = { version: '4.0', application_key: applicationKey, ...(activationId && { activation_id: activationId }) }
      expect(parseEncryptionHeader(write('PowerAuth', pairs), SCHEMES)).toEqual({ version: '4.0', applicationKey, activationId })
    }
  })

  test.each([
    ['the version of another generation', { pa_version: '3.3' }],
    ['a version that is written otherwise', { pa_version: '4' }],
    ['an activation that is not a UUID', { pa_activation_id: '1' }],
    ['an application key of 15 bytes', { pa_application_key: toBase64(Buffer.alloc(15)) }],
    ['an application key without padding', { pa_application_key: 'oTITEVuQSyH0RqsMD0Gulg' }],
    ['a nonce of 24 bytes', { pa_nonce: toBase64(Buffer.alloc(24)) }],
    ['a nonce without padding', { pa_nonce: 'nHLMxrOzq0JxANqYPDO5xQ' }],
    ['a nonce whose last character carries unused bits', { pa_nonce: 'nHLMxrOzq0JxANqYPDO5xR==' }],
    ['a nonce in the alphabet of URLs', { pa_nonce: '__LMxrOzq0JxANqYPDO5xQ==' }],
    ['an unknown type', { pa_auth_code_type: 'nonsense' }],
    ['the name of a member of Object.prototype as type', { pa_auth_code_type: 'constructor' }],
    ['a code of 16 bytes', { pa_auth_code: toBase64(Buffer.alloc(16)) }],
    ['a decimal code', { pa_auth_code: '12345678-12345678' }],
    ['an empty code', { pa_auth_code: '' }],
  ])('%s is refused', (_, change) => {
    expect(parseAuthorizationHeader(write('PowerAuth', valid), SCHEMES)).toBeDefined()
    expect(parseAuthorizationHeader(write('PowerAuth', { ...valid, ...change }), SCHEMES)).toBeUndefined()
  })

  test('a missing member, a repeated one, and the members of 3.x are refused', () => {
    for (const name of Object.keys(valid)) {
      const others = Object.fromEntries(Object.entries(valid).filter(([key]) => key !== name))
      expect(parseAuthorizationHeader(write('PowerAuth', others), SCHEMES), name).toBeUndefined()
    }
    expect(parseAuthorizationHeader(`${write('PowerAuth', valid)}, pa_version="4.0"`, SCHEMES)).toBeUndefined()
    const { pa_auth_code_type: type, pa_auth_code: code, ...rest } = valid
    const named = { ...rest, pa_signature_type: type, pa_signature: code }
    expect(parseAuthorizationHeader(write('PowerAuth', named), SCHEMES)).toBeUndefined()
  })

  test.each(['12345678', '1234567890123456', '0001735689600', '-1735689600', '1735689600.0', '1e12', ' 1735689600000', ''])(
    'the timestamp %j is refused',
    (timestamp) => {
      const pairs = {
        token_id: valid.pa_activation_id,
        token_digest: toBase64(Buffer.alloc(32)),
        nonce: valid.pa_nonce,
        version: '4.0',
      }
      expect(parseTokenHeader(write('PowerAuth', { ...pairs, timestamp: '1735689600000' }), SCHEMES)).toBeDefined()
      expect(parseTokenHeader(write('PowerAuth', { ...pairs, timestamp }), SCHEMES)).toBeUndefined()
    },
  )

  test.each([
    ['a scheme that is not accepted', 'Bearer version="4.0", application_key="oTITEVuQSyH0RqsMD0Gulg=="'],
    ['no blank behind the scheme', 'PowerAuthversion="4.0", application_key="oTITEVuQSyH0RqsMD0Gulg=="'],
    ['an unquoted value', 'PowerAuth version=4.0, application_key="oTITEVuQSyH0RqsMD0Gulg=="'],
    ['blanks around the equals sign', 'PowerAuth version = "4.0", application_key="oTITEVuQSyH0RqsMD0Gulg=="'],
    ['a value that does not end', 'PowerAuth version="4.0", application_key="oTITEVuQSyH0RqsMD0Gulg=='],
    ['nothing between two members', 'PowerAuth version="4.0"application_key="oTITEVuQSyH0RqsMD0Gulg=="'],
    ['names in capital letters', 'PowerAuth VERSION="4.0", application_key="oTITEVuQSyH0RqsMD0Gulg=="'],
    ['an empty activation', 'PowerAuth version="4.0", application_key="oTITEVuQSyH0RqsMD0Gulg==", activation_id=""'],
  ])('%s is refused', (_, value) => {
    expect(parseEncryptionHeader(value, SCHEMES)).toBeUndefined()
  })

  test('arbitrary text never throws', () => {
    const member = fc
      .tuple(fc.constantFrom('pa_nonce', 'nonce', 'version', 'timestamp', 'x'), fc.string())
      .map(([k, v]) => `${k}="${v}"`)
    const value = fc.oneof(
      fc.string(),
      codeUnits,
      fc.array(member).map((pairs) => `PowerAuth ${pairs.join(',')}`),
    )
    fc.assert(
      fc.property(value, (text) => {
        expect(parseAuthorizationHeader(text, SCHEMES)).toBeUndefined()
        parseTokenHeader(text, SCHEMES)
        parseEncryptionHeader(text, SCHEMES)
      }),
    )
  })

  test('the time to read a value grows with its length, not with its square', () => {
    // A quadratic scan of two million characters takes minutes, so the limit of the test is the assertion.
    for (const part of ['a', 'a="', ' ,', 'a="b",', 'a="b"', '\t', '="']) {
      parseAuthorizationHeader(`PowerAuth ${part.repeat(2_000_000 / part.length)}`, SCHEMES)
    }
  })
})
