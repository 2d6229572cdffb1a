// Header values (v3 §5.2): what was written is read back, whatever else arrives is refused or read without a fault.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toBase64 } from '../../src/lib/base64.ts'
import { FACTOR_COMBINATIONS } from '../../src/protocol/protocol.ts'
import { parseAuthorizationHeader, parseEncryptionHeader, parseTokenHeader } from '../../src/protocol/v3/header.ts'
import { VERSIONS } from '../../src/protocol/v3/versions.ts'

// Lone surrogates included. The unit 'binary' of fast-check says the same and takes seconds to set up.
const codeUnits = fc.array(fc.nat({ max: 0xffff })).map((units) => String.fromCharCode(...units))

const SCHEMES = ['Svc', 'PowerAuth']
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })
const version = fc.constantFrom(...VERSIONS)
const separator = fc.constantFrom(',', ', ', ' ', '\n  ', ',\t', ' , ,')
const code = fc.oneof(
  fc.constantFrom(16, 32, 48).chain(bytes).map(toBase64),
  fc.array(fc.stringMatching(/^\d{8}$/), { minLength: 1, maxLength: 3 }).map((groups) => groups.join('-')),
)
const authorization = fc.record({
  version,
  activationId: fc.uuid({ version: [1, 2, 3, 4, 5] }),
  applicationKey: bytes(16).map(toBase64),
  nonce: bytes(16),
  factors: fc.constantFrom(...FACTOR_COMBINATIONS),
  code,
})

const write = (scheme: string, pairs: Readonly<Record<string, string>>, between: string): string =>
  `${scheme} ${Object.entries(pairs)
    .map(([key, value]) => `${key}="${value}"`)
    .join(between)}`

describe('header values', () => {
  test('an authorization header reads back as it was written, in any order and with unknown members', () => {
    fc.assert(
      fc.property(authorization, separator, fc.constantFrom(...SCHEMES), fc.boolean(), (header, between, scheme, isReversed) => {
        const pairs = {
          pa_version: header.version,
          pa_activation_id: header.activationId,
          unknown: 'x,y = z',
          pa_application_key: header.applicationKey,
          pa_nonce: toBase64(header.nonce),
          pa_signature_type: header.factors.toLowerCase(),
          pa_signature: header.code,
        }
        const ordered = isReversed ? Object.fromEntries(Object.entries(pairs).toReversed()) : pairs
        const parsed = parseAuthorizationHeader(` ${write(scheme, ordered, between)}\t`, SCHEMES)
        expect({ ...parsed, nonce: [...(parsed?.nonce ?? [])] }).toEqual({ ...header, nonce: [...header.nonce] })
      }),
    )
  })

  test('a token header reads back as it was written', () => {
    const token = fc.record({
      version,
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
          version: header.version,
        }
        const parsed = parseTokenHeader(write('PowerAuth', pairs, between), SCHEMES)
        expect(parsed && { ...parsed, digest: toBase64(parsed.digest), nonce: toBase64(parsed.nonce) }).toEqual({
          ...header,
          digest: toBase64(header.digest),
          nonce: toBase64(header.nonce),
        })
      }),
    )
  })

  test('an encryption header reads back with and without an activation', () => {
    const header = fc.record({
      version,
      applicationKey: bytes(16).map(toBase64),
      activationId: fc.option(fc.uuid({ version: 4 }), { nil: undefined }),
    })
    fc.assert(
      fc.property(header, ({ version: text, applicationKey, activationId }) => {
        const pairs = { version: text, application_key: applicationKey, ...(activationId && { activation_id: activationId }) }
        const parsed = parseEncryptionHeader(write('PowerAuth', pairs, ', '), SCHEMES)
        expect(parsed).toEqual({ version: text, applicationKey, activationId })
      }),
    )
  })

  const key = 'oTITEVuQSyH0RqsMD0Gulg=='
  const id = '5bd4ff1e-3c9b-4b6e-9a51-0b6f6f4f2f3a'
  test.each([
    [
      'authorization',
      parseAuthorizationHeader,
      {
        pa_version: '3.3',
        pa_activation_id: id,
        pa_application_key: key,
        pa_nonce: key,
        pa_signature_type: 'possession',
        pa_signature: key,
      },
    ],
    [
      'token',
      parseTokenHeader,
      { version: '3.3', token_id: id, token_digest: toBase64(new Uint8Array(32)), nonce: key, timestamp: '1735689600000' },
    ],
    ['encryption', parseEncryptionHeader, { version: '3.3', application_key: key }],
  ])('the %s header without one of its members is refused, whichever it is', (_, parse, pairs) => {
    expect(parse(write('PowerAuth', pairs, ', '), SCHEMES)).toBeDefined()
    const without = (missing: string) => Object.fromEntries(Object.entries(pairs).filter(([name]) => name !== missing))
    const taken = Object.keys(pairs).filter((name) => parse(write('PowerAuth', without(name), ', '), SCHEMES) !== undefined)
    expect(taken).toEqual([])
  })

  test('a repeated member counts with its last value', () => {
    const value = 'PowerAuth version="9.9", application_key="oTITEVuQSyH0RqsMD0Gulg==", version="3.3"'
    expect(parseEncryptionHeader(value, SCHEMES)?.version).toBe('3.3')
  })

  test.each([
    ['a scheme that is not accepted', 'Bearer version="3.3", application_key="oTITEVuQSyH0RqsMD0Gulg=="'],
    ['no blank behind the scheme', 'PowerAuthversion="3.3", application_key="oTITEVuQSyH0RqsMD0Gulg=="'],
    ['an unquoted value', 'PowerAuth version=3.3, application_key="oTITEVuQSyH0RqsMD0Gulg=="'],
    ['blanks around the equals sign', 'PowerAuth version = "3.3", application_key="oTITEVuQSyH0RqsMD0Gulg=="'],
    ['a value that does not end', 'PowerAuth version="3.3", application_key="oTITEVuQSyH0RqsMD0Gulg=='],
    ['nothing between two members', 'PowerAuth version="3.3"application_key="oTITEVuQSyH0RqsMD0Gulg=="'],
    ['an activation that is not a UUID', 'PowerAuth version="3.3", application_key="oTITEVuQSyH0RqsMD0Gulg==", activation_id=""'],
    ['a name of Object.prototype as version', 'PowerAuth version="constructor", application_key="oTITEVuQSyH0RqsMD0Gulg=="'],
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
