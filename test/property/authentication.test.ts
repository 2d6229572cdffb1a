// Authentication codes, canonical queries, token digests and offline passwords (v3 §10, §11.2, §15).
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { composeOfflineSignedData, parseOfflineOtp } from '../../src/protocol/wire/offline.ts'
import { computeTotpCandidates } from '../../src/domain/operation/proximity.ts'
import { toBase64 } from '../../src/lib/base64.ts'
import { utf8 } from '../../src/lib/bytes.ts'
import { toDecimalCode } from '../../src/protocol/wire/decimal.ts'
import { FACTOR_COMBINATIONS, type Factors } from '../../src/protocol/protocol.ts'
import {
  computeComponents,
  selectFactorKeys,
  toBinaryCode,
  verifyAuthenticationCode,
} from '../../src/protocol/v3/authentication-code.ts'
import { canonicalizeQuery, canonicalQueryReadings } from '../../src/protocol/wire/request-data.ts'
import { advanceCounter, deriveActivationKeys } from '../../src/protocol/v3/key-schedule.ts'
import { verifyOfflineOtp } from '../../src/protocol/v3/offline.ts'
import { computeTokenDigest, verifyTokenDigest } from '../../src/protocol/v3/header.ts'
import { VERSIONS } from '../../src/protocol/v3/versions.ts'
import { canonicalQuery as phoneCanonicalQuery } from '../../phone/v3/crypto.ts'

// Lone surrogates included. The unit 'binary' of fast-check says the same and takes seconds to set up.
const codeUnits = fc.array(fc.nat({ max: 0xffff })).map((units) => String.fromCharCode(...units))

const LOOK_AHEAD = 20
const NO_MATCH = { move: undefined, isPossessionRight: false }
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })
const keys = deriveActivationKeys(new Uint8Array(16).fill(3))
const version = fc.constantFrom(...VERSIONS)
const factors = fc.constantFrom(...FACTOR_COMBINATIONS)

function advance(ctrData: Uint8Array, steps: number): Uint8Array {
  let counter = ctrData
  for (let i = 0; i < steps; i += 1) counter = advanceCounter(counter)
  return counter
}

function sign(form: string, combination: Factors, counter: Uint8Array, signedData: Uint8Array, own = keys): string {
  const components = computeComponents(selectFactorKeys(own, combination), counter, signedData)
  return form === '3.0' ? toDecimalCode(components, 8) : toBase64(toBinaryCode(components))
}

describe('authentication codes', () => {
  test('a code of a counter inside the look-ahead matches and moves the counter behind it', () => {
    fc.assert(
      fc.property(
        version,
        factors,
        bytes(16),
        fc.uint8Array(),
        fc.nat({ max: 24 }),
        (text, combination, ctrData, data, ahead) => {
          const code = sign(text, combination, advance(ctrData, ahead), data)
          const { move } = verifyAuthenticationCode(
            keys,
            ctrData,
            data,
            { version: text, factors: combination, code },
            LOOK_AHEAD,
          )
          const expected = ahead < LOOK_AHEAD ? { steps: ahead + 1, ctrData: advance(ctrData, ahead + 1) } : undefined
          expect(move).toEqual(expected)
        },
      ),
      { numRuns: 60 },
    )
  })

  test('one flipped bit in the data, or another combination, is refused', () => {
    fc.assert(
      fc.property(version, bytes(16), fc.uint8Array({ minLength: 1 }), fc.nat(), (text, ctrData, data, where) => {
        const code = sign(text, 'POSSESSION_KNOWLEDGE', ctrData, data)
        const changed = data.map((byte, i) => (i === where % data.length ? byte ^ (1 << (where % 8)) : byte))
        const verify = (combination: Factors, signedData: Uint8Array) =>
          verifyAuthenticationCode(keys, ctrData, signedData, { version: text, factors: combination, code }, 1).move
        expect(verify('POSSESSION_KNOWLEDGE', data)?.steps).toBe(1)
        expect(verify('POSSESSION_KNOWLEDGE', changed)).toBeUndefined()
        expect(verify('POSSESSION_BIOMETRY', data)).toBeUndefined()
        expect(verify('POSSESSION', data)).toBeUndefined()
      }),
      { numRuns: 60 },
    )
  })

  test('a wrong code is told to be of the phone only when its first component is right at a counter value that is tried', () => {
    const twoFactors = fc.constantFrom('POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY')
    fc.assert(
      fc.property(
        version,
        twoFactors,
        bytes(16),
        fc.nat({ max: 24 }),
        fc.boolean(),
        (text, combination, ctrData, ahead, isThief) => {
          const data = utf8('data')
          const wrong = new Uint8Array(16).fill(9)
          const own = { ...keys, knowledge: wrong, biometry: wrong, ...(!isThief && { possession: wrong }) }
          const code = sign(text, combination, advance(ctrData, ahead), data, own)
          const given = { version: text, factors: combination, code } as const
          expect(verifyAuthenticationCode(keys, ctrData, data, given, LOOK_AHEAD)).toEqual({
            move: undefined,
            isPossessionRight: isThief && ahead < LOOK_AHEAD,
          })
          // The same code with one more character has the form of no code.
          const longer = verifyAuthenticationCode(keys, ctrData, data, { ...given, code: `${code}1` }, LOOK_AHEAD)
          expect(longer).toEqual(NO_MATCH)
        },
      ),
      { numRuns: 60 },
    )
  })

  test('a code in the form of another version, or in no form at all, does not match', () => {
    const ctrData = new Uint8Array(16)
    const data = utf8('data')
    const decimal = sign('3.0', 'POSSESSION_KNOWLEDGE', ctrData, data)
    const base64 = sign('3.1', 'POSSESSION_KNOWLEDGE', ctrData, data)
    const verify = (text: string, code: string) =>
      verifyAuthenticationCode(keys, ctrData, data, { version: text, factors: 'POSSESSION_KNOWLEDGE', code }, LOOK_AHEAD)
    expect(verify('3.0', decimal).move).toBeDefined()
    expect(verify('3.3', base64).move).toBeDefined()
    expect(verify('3.1', decimal)).toEqual(NO_MATCH)
    expect(verify('3.0', base64)).toEqual(NO_MATCH)
    fc.assert(
      fc.property(version, fc.oneof(fc.string(), fc.base64String()), (text, code) => !verify(text, code).isPossessionRight),
      {
        numRuns: 40,
      },
    )
  })

  test('nothing matches when no counter value may be tried', () => {
    const ctrData = new Uint8Array(16)
    const code = { version: '3.0', factors: 'POSSESSION', code: sign('3.0', 'POSSESSION', ctrData, utf8('x')) } as const
    expect(verifyAuthenticationCode(keys, ctrData, utf8('x'), code, 1).move).toBeDefined()
    expect(verifyAuthenticationCode(keys, ctrData, utf8('x'), code, 0)).toEqual(NO_MATCH)
  })
})

describe('canonical queries', () => {
  const part = fc.oneof(
    fc.tuple(fc.string(), fc.string()).map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`),
    fc.stringMatching(/^[a-c=+;]{0,6}$/),
  )
  const query = fc.array(part, { maxLength: 6 }).map((parts) => parts.join('&'))

  test('the canonical form is canonical already and does not depend on the order of the parts', () => {
    fc.assert(
      fc.property(query, (text) => {
        const canonical = Buffer.from(canonicalizeQuery(text)).toString()
        expect(Buffer.from(canonicalizeQuery(canonical)).toString()).toBe(canonical)
        expect(Buffer.from(canonicalizeQuery(text.split('&').toReversed().join('&'))).toString()).toBe(canonical)
      }),
    )
  })

  test('is what the phone covers', () => {
    fc.assert(
      fc.property(query, (text) => {
        expect(Buffer.from(canonicalizeQuery(text)).toString()).toBe(phoneCanonicalQuery(text))
      }),
    )
  })

  test('a query has a second reading only where a percent sign is encoded in front of an encoded byte', () => {
    const readings = (text: string) => canonicalQueryReadings(text).map((reading) => Buffer.from(reading).toString())
    expect(readings('q=a%2520b')).toEqual(['q=a%2520b', 'q=a+b'])
    expect(readings('q=100%25')).toEqual(['q=100%25'])
    expect(readings('q=a%20b')).toEqual(['q=a+b'])
    expect(canonicalQueryReadings(undefined)).toHaveLength(1)
    fc.assert(fc.property(query, (text) => readings(text)[0] === Buffer.from(canonicalizeQuery(text)).toString()))
  })

  test('arbitrary text never throws', () => {
    fc.assert(fc.property(codeUnits, (text) => canonicalizeQuery(text).length >= 0))
    expect(Buffer.from(canonicalizeQuery('?a=1&%=%zz&b=%E0%A4')).toString()).toBe('%25=%25zz&%3Fa=1&b=%EF%BF%BD')
    expect(canonicalizeQuery(undefined)).toHaveLength(0)
  })
})

describe('token digests', () => {
  test('a digest belongs to its secret, nonce, timestamp and, where bound, its version', () => {
    fc.assert(
      fc.property(version, bytes(16), bytes(16), fc.nat(), (text, secret, nonce, timestamp) => {
        const header = { version: text, tokenId: '', nonce, timestamp, digest: new Uint8Array(0) }
        const digest = computeTokenDigest(secret, header)
        expect(verifyTokenDigest(secret, { ...header, digest })).toBe(true)
        expect(verifyTokenDigest(secret, { ...header, digest, timestamp: timestamp + 1 })).toBe(false)
        expect(
          verifyTokenDigest(
            nonce.map((byte) => byte ^ 1),
            { ...header, digest },
          ),
        ).toBe(false)
        expect(verifyTokenDigest(secret, { ...header, digest, nonce: nonce.map((byte) => byte ^ 1) })).toBe(false)
        expect(verifyTokenDigest(secret, { ...header, digest: digest.map((byte) => byte ^ 1) })).toBe(false)
      }),
    )
  })
})

describe('offline one-time passwords', () => {
  test.each([
    ['1234567890123456', '12345678-90123456'],
    ['12345678-90123456', '12345678-90123456'],
    ['1234-5678-9012-3456', '12345678-90123456'],
  ])('%s is two groups of eight digits', (typed, expected) => {
    expect(parseOfflineOtp(typed)).toBe(expected)
  })

  test('every other text is refused, and none throws', () => {
    const forms = /^(\d{16}|\d{8}-\d{8}|\d{4}-\d{4}-\d{4}-\d{4})$/
    const typed = fc.oneof(fc.string(), fc.stringMatching(/^[\d -]{14,21}$/), fc.constant('1234567890123456\n'))
    fc.assert(fc.property(typed, (text) => (parseOfflineOtp(text) !== undefined) === forms.test(text)))
    expect(parseOfflineOtp('１２３４５６７８９０１２３４５６')).toBeUndefined()
  })

  const ctrData = new Uint8Array(16).fill(8)
  const request = {
    resourceId: '/operation/authorize/offline',
    body: Buffer.from('operation&A1*A100CZK'),
    nonceBase64: toBase64(new Uint8Array(16)),
    componentLength: 8,
    isBiometryAllowed: true,
    totps: undefined,
  }
  const makeOtp = (combination: Factors, ahead: number, candidate?: string): string =>
    sign('3.0', combination, advance(ctrData, ahead), composeOfflineSignedData(request, candidate))

  test('biometry counts only where it is allowed', () => {
    const otp = makeOtp('POSSESSION_BIOMETRY', 2)
    expect(verifyOfflineOtp(keys, ctrData, { ...request, otp }, LOOK_AHEAD).move).toMatchObject({
      steps: 3,
      factors: 'POSSESSION_BIOMETRY',
    })
    expect(verifyOfflineOtp(keys, ctrData, { ...request, otp, isBiometryAllowed: false }, LOOK_AHEAD).move).toBeUndefined()
  })

  test('a wrong password is told to be of the phone by its first group alone', () => {
    const [first = '', second = ''] = makeOtp('POSSESSION_KNOWLEDGE', 3).split('-')
    const change = (digits: string): string => `${digits.slice(0, -1)}${(Number(digits.at(-1)) + 1) % 10}`
    const verify = (otp: string, more: object = {}) => verifyOfflineOtp(keys, ctrData, { ...request, otp, ...more }, LOOK_AHEAD)
    expect(verify(`${first}-${change(second)}`)).toEqual({ move: undefined, isPossessionRight: true })
    expect(verify(`${change(first)}-${second}`)).toEqual(NO_MATCH)
    expect(verify(`${second}-${first}`)).toEqual(NO_MATCH)
    expect(verify(`${first}-${second}`, { body: Buffer.from('operation&A1*A999CZK') })).toEqual(NO_MATCH)
    expect(verify(`${first}-${second}`, { totps: ['12345678'] })).toEqual(NO_MATCH)
  })

  test('the proximity check takes the current step and the earlier ones, no later one', () => {
    const check = { seed: new Uint8Array(16), stepSeconds: 30, digits: 8 }
    const now = 1_735_689_600
    const totps = computeTotpCandidates(check, now, 1)
    expect(totps).toHaveLength(2)
    for (const [seconds, isAccepted] of [
      [0, true],
      [-30, true],
      [-60, false],
      [30, false],
    ] as const) {
      const otp = makeOtp('POSSESSION_KNOWLEDGE', 0, computeTotpCandidates(check, now + seconds, 0)[0])
      expect(verifyOfflineOtp(keys, ctrData, { ...request, otp, totps }, LOOK_AHEAD).move !== undefined).toBe(isAccepted)
    }
    const otp = makeOtp('POSSESSION_KNOWLEDGE', 0)
    expect(verifyOfflineOtp(keys, ctrData, { ...request, otp, totps: [] }, LOOK_AHEAD).move).toBeUndefined()
    expect(computeTotpCandidates(check, 10, 3)).toHaveLength(1)
  })
})
