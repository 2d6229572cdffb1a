// Authentication codes, factor keys, queries, token digests and offline passwords of 4.0 (v4 §7, §9.9, §11).
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toBase64 } from '../../src/lib/base64.ts'
import { utf8 } from '../../src/lib/bytes.ts'
import { composeOfflineSignedData } from '../../src/protocol/wire/offline.ts'
import type { CounterMove, Factors } from '../../src/protocol/protocol.ts'
import { coveredBodies, verifyAuthenticationCode } from '../../src/protocol/v4/authentication-code.ts'
import {
  addBiometryKey,
  createActivationSecret,
  parseActivationSecret,
  removeBiometryKeys,
  replaceKnowledgeKey,
  settleFactorKeys,
} from '../../src/protocol/v4/factor-keys.ts'
import {
  advanceCounter,
  createDecoyKeys,
  createInitialActivationSecret,
  deriveActivationKeys,
} from '../../src/protocol/v4/key-schedule.ts'
import { verifyOfflineOtp } from '../../src/protocol/v4/offline.ts'
import { computeTokenDigest, verifyTokenDigest } from '../../src/protocol/v4/header.ts'
import { canonicalQuery as phoneCanonicalQuery } from '../../phone/v3/crypto.ts'
import { deriveV4Keys, offlineCode, onlineCode, tokenV4Digest } from '../../phone/v4/crypto.ts'

const LOOK_AHEAD = 20
const NO_MATCH = { move: undefined, isPossessionRight: false }
const root = Buffer.alloc(32, 3)
const phone = deriveV4Keys(root)
const stored = createInitialActivationSecret(root)
const keys = deriveActivationKeys(stored)
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })

const FACTORS = ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'] as const
const keysFor = (factors: Factors, own = phone): readonly Uint8Array[] =>
  factors.split('_').map((name) => own[name.toLowerCase() as 'possession' | 'knowledge' | 'biometry'])

function advance(ctrData: Uint8Array, steps: number): Uint8Array {
  let counter = ctrData
  for (let i = 0; i < steps; i += 1) counter = advanceCounter(counter)
  return counter
}

describe('authentication codes of 4.0', () => {
  test('a code of a counter inside the look-ahead matches and moves the counter behind it', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...FACTORS),
        bytes(32),
        fc.uint8Array(),
        fc.nat({ max: 24 }),
        (factors, ctrData, data, ahead) => {
          const code = onlineCode(keysFor(factors), advance(ctrData, ahead), data)
          const { move } = verifyAuthenticationCode(keys, ctrData, data, { factors, code }, LOOK_AHEAD)
          const expected = ahead < LOOK_AHEAD ? { steps: ahead + 1, ctrData: advance(ctrData, ahead + 1) } : undefined
          expect(move).toEqual(expected)
        },
      ),
      { numRuns: 30 },
    )
  })

  test('one flipped bit in the data or the code, or another combination, is refused', () => {
    fc.assert(
      fc.property(bytes(32), fc.uint8Array({ minLength: 1 }), fc.nat(), (ctrData, data, where) => {
        const flip = (from: Uint8Array) => from.map((byte, i) => (i === where % from.length ? byte ^ (1 << (where % 8)) : byte))
        const code = onlineCode(keysFor('POSSESSION_KNOWLEDGE'), ctrData, data)
        const verify = (factors: Factors, signedData: Uint8Array, text = code) =>
          verifyAuthenticationCode(keys, ctrData, signedData, { factors, code: text }, 1).move
        expect(verify('POSSESSION_KNOWLEDGE', data)?.steps).toBe(1)
        expect(verify('POSSESSION_KNOWLEDGE', flip(data))).toBeUndefined()
        expect(verify('POSSESSION_KNOWLEDGE', data, toBase64(flip(Buffer.from(code, 'base64'))))).toBeUndefined()
        expect(verify('POSSESSION_BIOMETRY', data)).toBeUndefined()
        expect(verify('POSSESSION', data)).toBeUndefined()
      }),
      { numRuns: 40 },
    )
  })

  test('a wrong code is told to be of the phone only when its first component is right at a counter value that is tried', () => {
    const twoFactors = fc.constantFrom('POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY')
    fc.assert(
      fc.property(twoFactors, bytes(32), fc.nat({ max: 24 }), fc.boolean(), (factors, ctrData, ahead, isThief) => {
        const data = utf8('data')
        const wrong = Buffer.alloc(32, 9)
        const own = { ...phone, knowledge: wrong, biometry: wrong, ...(!isThief && { possession: wrong }) }
        const code = onlineCode(keysFor(factors, own), advance(ctrData, ahead), data)
        expect(verifyAuthenticationCode(keys, ctrData, data, { factors, code }, LOOK_AHEAD)).toEqual({
          move: undefined,
          isPossessionRight: isThief && ahead < LOOK_AHEAD,
        })
        const longer = toBase64(Buffer.concat([Buffer.from(code, 'base64'), Buffer.alloc(1)]))
        expect(verifyAuthenticationCode(keys, ctrData, data, { factors, code: longer }, LOOK_AHEAD)).toEqual(NO_MATCH)
      }),
      { numRuns: 30 },
    )
  })

  test('combinations that no endpoint allows never match, nor does a text that is not a code', () => {
    const [ctrData, data] = [new Uint8Array(32), utf8('data')]
    for (const factors of ['KNOWLEDGE', 'BIOMETRY', 'POSSESSION_KNOWLEDGE_BIOMETRY'] as const) {
      const code = onlineCode(keysFor(factors), ctrData, data)
      expect(verifyAuthenticationCode(keys, ctrData, data, { factors, code }, LOOK_AHEAD)).toEqual(NO_MATCH)
    }
    // A longer code that begins as the right one does.
    const code = onlineCode(keysFor('POSSESSION_KNOWLEDGE'), ctrData, data)
    expect(verifyAuthenticationCode(keys, ctrData, data, { factors: 'POSSESSION', code }, 1)).toEqual(NO_MATCH)
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String()), fc.constantFrom(...FACTORS), (text, factors) => {
        expect(verifyAuthenticationCode(keys, ctrData, data, { factors, code: text }, 1)).toEqual(NO_MATCH)
      }),
      { numRuns: 40 },
    )
  })

  test('nothing matches when no counter value may be tried, and decoy keys match nothing', () => {
    const [ctrData, data] = [new Uint8Array(32), utf8('x')]
    const code = { factors: 'POSSESSION', code: onlineCode(keysFor('POSSESSION'), ctrData, data) } as const
    expect(verifyAuthenticationCode(keys, ctrData, data, code, 1).move).toBeDefined()
    expect(verifyAuthenticationCode(keys, ctrData, data, code, 0)).toEqual(NO_MATCH)
    const decoy = createDecoyKeys((length) => Buffer.alloc(length, 77)).activationKeys
    expect(verifyAuthenticationCode(decoy, ctrData, data, code, 1)).toEqual(NO_MATCH)
  })
})

describe('factor keys', () => {
  const [ctrData, data, next] = [new Uint8Array(32), utf8('data'), Buffer.alloc(32, 9)]
  const tryKey = (secret: Uint8Array, factors: Factors, own: Partial<typeof phone>, ahead = 0): CounterMove | undefined => {
    const code = onlineCode(keysFor(factors, { ...phone, ...own }), advance(ctrData, ahead), data)
    return verifyAuthenticationCode(deriveActivationKeys(secret), ctrData, data, { factors, code }, LOOK_AHEAD).move
  }

  test('both knowledge keys are good until one of them is used; then the other one is not', () => {
    const changed = replaceKnowledgeKey(stored, next)
    const withCurrent = tryKey(changed, 'POSSESSION_KNOWLEDGE', {}, 3)
    const withNext = tryKey(changed, 'POSSESSION_KNOWLEDGE', { knowledge: next }, 3)
    expect([withCurrent?.steps, withNext?.steps]).toEqual([4, 4])
    const [kept = stored, moved = stored] = [withCurrent?.activationSecret, withNext?.activationSecret]
    expect(Buffer.from(kept)).toEqual(Buffer.from(stored))
    expect(tryKey(kept, 'POSSESSION_KNOWLEDGE', { knowledge: next })).toBeUndefined()
    expect(tryKey(moved, 'POSSESSION_KNOWLEDGE', {})).toBeUndefined()
    expect(tryKey(moved, 'POSSESSION_KNOWLEDGE', { knowledge: next })).toEqual({ steps: 1, ctrData: advance(ctrData, 1) })
  })

  test('a later password change replaces the next key, not the current one', () => {
    const twice = replaceKnowledgeKey(replaceKnowledgeKey(stored, Buffer.alloc(32, 8)), next)
    expect(tryKey(twice, 'POSSESSION_KNOWLEDGE', { knowledge: Buffer.alloc(32, 8) })).toBeUndefined()
    expect(tryKey(twice, 'POSSESSION_KNOWLEDGE', { knowledge: next })).toBeDefined()
    expect(tryKey(twice, 'POSSESSION_KNOWLEDGE', {})).toBeDefined()
  })

  test('a possession code, and a code of the other factor, settle nothing', () => {
    const changed = replaceKnowledgeKey(stored, next)
    expect(tryKey(changed, 'POSSESSION', {})?.activationSecret).toBeUndefined()
    expect(tryKey(changed, 'POSSESSION_BIOMETRY', {})?.activationSecret).toBeUndefined()
  })

  test('biometry is added beside an existing key, or as the current key where there is none', () => {
    const beside = addBiometryKey(stored, next)
    expect(tryKey(beside, 'POSSESSION_BIOMETRY', {})).toBeDefined()
    expect(tryKey(beside, 'POSSESSION_BIOMETRY', { biometry: next })?.activationSecret).toBeDefined()
    const removed = removeBiometryKeys(beside)
    expect(tryKey(removed, 'POSSESSION_BIOMETRY', {})).toBeUndefined()
    expect(tryKey(removed, 'POSSESSION_BIOMETRY', { biometry: next })).toBeUndefined()
    const alone = tryKey(addBiometryKey(removed, next), 'POSSESSION_BIOMETRY', { biometry: next })
    expect(alone).toEqual({ steps: 1, ctrData: advance(ctrData, 1) })
    expect(tryKey(removed, 'POSSESSION_KNOWLEDGE', {})).toBeDefined()
  })

  test('any combination of keys comes back from what is stored, and other bytes throw', () => {
    const factor = fc.record({ current: bytes(32), next: bytes(32) }, { requiredKeys: [] })
    const plain = (value: unknown) =>
      JSON.stringify(value, (_, part: unknown) => (part instanceof Uint8Array ? toBase64(part) : part))
    fc.assert(
      fc.property(bytes(32), factor, factor, (keyActivationSecret, knowledge, biometry) => {
        const secret = createActivationSecret({ keyActivationSecret, knowledge, biometry })
        const parsed = parseActivationSecret(Uint8Array.from(secret))
        expect(toBase64(parsed.keyActivationSecret)).toBe(toBase64(keyActivationSecret))
        for (const [got, given] of [
          [parsed.knowledge, knowledge],
          [parsed.biometry, biometry],
        ] as const) {
          expect(plain([got.current, got.next])).toBe(plain([given.current, given.next]))
        }
        expect(() => parseActivationSecret(secret.subarray(1))).toThrow()
        expect(() => parseActivationSecret(Buffer.concat([secret, Buffer.of(0)]))).toThrow()
        if (knowledge.next === undefined) expect(settleFactorKeys(secret, 'knowledge', 0)).toBeUndefined()
      }),
    )
    expect(() => parseActivationSecret(new Uint8Array(0))).toThrow()
    expect(() => deriveActivationKeys(new Uint8Array(32))).toThrow()
  })
})

describe('what a code covers', () => {
  const part = fc.oneof(
    fc.tuple(fc.string(), fc.string()).map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`),
    fc.stringMatching(/^[a-c=+;]{0,6}$/),
  )
  const text = (readings: readonly Uint8Array[]) => readings.map((reading) => Buffer.from(reading).toString())

  test('is the body where there is one, else the canonical query, whatever the method', () => {
    fc.assert(
      fc.property(fc.constantFrom('GET', 'POST', 'PUT', 'DELETE'), fc.array(part, { maxLength: 5 }), (method, parts) => {
        const query = parts.join('&')
        const body = utf8('{}')
        expect(coveredBodies({ method, body, query })).toEqual([body])
        expect(text(coveredBodies({ method, body: new Uint8Array(0), query }))[0]).toBe(phoneCanonicalQuery(query))
        expect(text(coveredBodies({ method, body: new Uint8Array(0), query: undefined }))).toEqual([''])
      }),
    )
  })

  test('a query in which a percent sign is encoded in front of an encoded byte has a second reading', () => {
    const readings = (query: string) => text(coveredBodies({ method: 'GET', body: new Uint8Array(0), query }))
    expect(readings('q=a%2520b')).toEqual(['q=a%2520b', 'q=a+b'])
    expect(readings('q=100%25')).toEqual(['q=100%25'])
  })
})

describe('token digests of 4.0', () => {
  test('a digest belongs to its secret, nonce, timestamp and version, whatever generation the token is of', () => {
    fc.assert(
      fc.property(fc.constantFrom(16, 32).chain(bytes), bytes(16), fc.nat(), (secret, nonce, timestamp) => {
        const header = { version: '4.0', tokenId: '', nonce, timestamp, digest: new Uint8Array(0) }
        const digest = computeTokenDigest(secret, header)
        expect(toBase64(digest)).toBe(toBase64(tokenV4Digest(secret, nonce, String(timestamp))))
        const flip = (from: Uint8Array) => from.map((byte) => byte ^ 1)
        expect(verifyTokenDigest(secret, { ...header, digest })).toBe(true)
        expect(verifyTokenDigest(secret, { ...header, digest, timestamp: timestamp + 1 })).toBe(false)
        expect(verifyTokenDigest(flip(secret), { ...header, digest })).toBe(false)
        expect(verifyTokenDigest(secret, { ...header, digest, nonce: flip(nonce) })).toBe(false)
        expect(verifyTokenDigest(secret, { ...header, digest: flip(digest) })).toBe(false)
        expect(verifyTokenDigest(secret, { ...header, digest, version: '3.3' })).toBe(false)
      }),
      { numRuns: 40 },
    )
  })
})

describe('offline one-time passwords of 4.0', () => {
  const ctrData = new Uint8Array(32).fill(8)
  const request = {
    resourceId: '/operation/authorize/offline',
    body: Buffer.from('operation&A1*A100CZK'),
    nonceBase64: toBase64(new Uint8Array(16)),
    componentLength: 8,
    isBiometryAllowed: true,
    totps: undefined,
  }
  const makeOtp = (factors: Factors, ahead: number, totp?: string, own = phone): string =>
    offlineCode(keysFor(factors, own), advance(ctrData, ahead), composeOfflineSignedData(request, totp))
  const verify = (otp: string, change: object = {}, secret = stored) =>
    verifyOfflineOtp(deriveActivationKeys(secret), ctrData, { ...request, otp, ...change }, LOOK_AHEAD).move

  test('biometry counts only where it is allowed', () => {
    const otp = makeOtp('POSSESSION_BIOMETRY', 2)
    expect(verify(otp)).toMatchObject({ steps: 3, factors: 'POSSESSION_BIOMETRY' })
    expect(verify(otp, { isBiometryAllowed: false })).toBeUndefined()
    expect(verify(otp, {}, removeBiometryKeys(stored))).toBeUndefined()
  })

  test('a possession code alone is not accepted, nor is a password of another length or beyond the look-ahead', () => {
    expect(verify(makeOtp('POSSESSION', 0))).toBeUndefined()
    expect(verify(makeOtp('POSSESSION_KNOWLEDGE', 19))).toBeDefined()
    expect(verify(makeOtp('POSSESSION_KNOWLEDGE', 20))).toBeUndefined()
    expect(verify(makeOtp('POSSESSION_KNOWLEDGE', 0), { componentLength: 7 })).toBeUndefined()
  })

  test('a wrong password is told to be of the phone by its first group alone, whichever knowledge key is current', () => {
    const [first = '', second = ''] = makeOtp('POSSESSION_KNOWLEDGE', 3).split('-')
    const change = (digits: string): string => `${digits.slice(0, -1)}${(Number(digits.at(-1)) + 1) % 10}`
    for (const secret of [stored, replaceKnowledgeKey(stored, Buffer.alloc(32, 9))]) {
      const judge = (otp: string) => verifyOfflineOtp(deriveActivationKeys(secret), ctrData, { ...request, otp }, LOOK_AHEAD)
      expect(judge(`${first}-${change(second)}`)).toEqual({ move: undefined, isPossessionRight: true })
      expect(judge(`${change(first)}-${second}`)).toEqual(NO_MATCH)
      expect(judge(`${second}-${first}`)).toEqual(NO_MATCH)
    }
  })

  test('a candidate of the proximity check must be covered when there is one', () => {
    const otp = makeOtp('POSSESSION_KNOWLEDGE', 0, '12345678')
    expect(verify(otp, { totps: ['87654321', '12345678'] })).toMatchObject({ steps: 1 })
    expect(verify(otp, { totps: [] })).toBeUndefined()
    expect(verify(otp)).toBeUndefined()
    expect(verify(makeOtp('POSSESSION_KNOWLEDGE', 0), { totps: ['12345678'] })).toBeUndefined()
  })

  test('a new key is taken, and the match says what is to be stored', () => {
    const next = Buffer.alloc(32, 9)
    const changed = replaceKnowledgeKey(stored, next)
    const match = verify(makeOtp('POSSESSION_KNOWLEDGE', 0, undefined, { ...phone, knowledge: next }), {}, changed)
    expect(match?.activationSecret).toBeDefined()
    expect(parseActivationSecret(match?.activationSecret ?? stored).knowledge).toEqual({ current: next })
  })
})
