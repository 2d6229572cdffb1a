// Key agreement, device keys and requests of temporary keys in 4.0 (v4 §2, §4, §8): what is refused, and that nothing throws.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toBase64, toBase64Url } from '../../src/lib/base64.ts'
import { utf8 } from '../../src/lib/bytes.ts'
import { exchangeKeys } from '../../src/protocol/v4/key-exchange.ts'
import { exportPrivateKey } from '../../src/crypto/key.ts'
import {
  exportSigningKeys,
  generateSigningKeyPairs,
  importSigningKeys,
  joinPublicKeys,
  parsePublicKeys,
} from '../../src/protocol/v4/key-pairs.ts'
import { createInitialActivationSecret, deriveActivationKeys } from '../../src/protocol/v4/key-schedule.ts'
import { encapsulateSharedSecret, parseSharedSecretRequest } from '../../src/protocol/v4/shared-secret.ts'
import { parseTemporaryKeyRequest } from '../../src/protocol/v4/temporary-key.ts'
import {
  agree,
  applicationMacKey,
  deriveV4Keys,
  hs384Jwt,
  newKemPair,
  newSigningPair,
  openGeneralJws,
  PHONE_ALGORITHMS,
  sharedSecretRequest,
  v4Fingerprint,
} from '../../phone/v4/crypto.ts'

const ACTIVATION_ID = 'a5a49895-c0cf-4d5b-bcd3-943413d2c688'
const salt = Buffer.alloc(32, 6)

describe.each(PHONE_ALGORITHMS)('key agreement with %s', (algorithm) => {
  const pair = newKemPair(algorithm)
  const device = newSigningPair(algorithm)
  const deviceKeys = { ecdsa: toBase64(device.ecCompressed), ...(device.spki && { mldsa: toBase64(device.spki) }) }

  test('both sides have one secret, with either form of the point, and another one each time', async () => {
    const secrets = new Set<string>()
    for (const compressed of [true, false]) {
      const request = parseSharedSecretRequest(sharedSecretRequest(algorithm, pair, compressed))
      const shared = request && (await encapsulateSharedSecret(request, salt))
      if (!shared) throw new Error('a valid request was refused')
      expect(toBase64(agree(algorithm, pair, shared.response))).toBe(toBase64(shared.secret))
      secrets.add(toBase64(shared.secret))
    }
    expect(secrets.size).toBe(2)
  })

  test('an exchange gives keys that both sides derive, and digits that both sides show', async () => {
    const request = parseSharedSecretRequest(sharedSecretRequest(algorithm, pair))
    const publicKeys = parsePublicKeys(algorithm, deviceKeys)
    const exchanged = request && publicKeys && (await exchangeKeys(request, publicKeys, ACTIVATION_ID, salt))
    if (!exchanged) throw new Error('a valid exchange was refused')
    const secret = agree(algorithm, pair, exchanged.answer.sharedSecretResponse)
    expect(toBase64(exchanged.activationSecret)).toBe(toBase64(createInitialActivationSecret(secret)))
    const mac = deriveActivationKeys(exchanged.activationSecret).keyMacGetActTempKey().export()
    expect(toBase64(mac)).toBe(toBase64(deriveV4Keys(secret).macTemporaryKey))
    const server = exchanged.serverKeys.publicKeys
    const shown = v4Fingerprint(algorithm, { ecdsa: device.ecPublic, mldsa: device.spki }, ACTIVATION_ID, server)
    expect(exchanged.activationFingerprint).toBe(shown)
    expect(exchanged.answer.serverPublicKeys).toEqual({
      ecdsa: toBase64(server.ecdsa),
      ...(server.mldsa && { mldsa: toBase64(server.mldsa) }),
    })
  })

  test('server keys survive being stored', async () => {
    const pairs = await generateSigningKeyPairs(algorithm)
    const { privateKeys, publicKeys } = pairs
    const stored = exportSigningKeys(pairs)
    const again = importSigningKeys(algorithm, stored)
    expect(exportSigningKeys({ privateKeys: again, publicKeys })).toEqual(stored)
    // What OpenSSL's encoder writes of the P-384 key stands at the end.
    expect(Buffer.from(stored).subarray(privateKeys.mldsa ? 32 : 0)).toEqual(exportPrivateKey(again.ecdsa))
    expect(Object.keys(again)).toEqual(Object.keys(privateKeys))
    expect(joinPublicKeys(publicKeys)).toEqual(Buffer.concat([publicKeys.ecdsa, publicKeys.mldsa ?? Buffer.alloc(0)]))
  })

  test('another number of keys, or keys that are not valid, are refused', async () => {
    const good = sharedSecretRequest(algorithm, pair)
    const [point = '', spki = ''] = good.encapsulationKeys
    const encapsulate = async (encapsulationKeys: readonly unknown[]) => {
      const request = parseSharedSecretRequest({ algorithm, encapsulationKeys })
      return request && (await encapsulateSharedSecret(request, salt))
    }
    const isHybrid = algorithm !== 'EC_P384'
    const offCurve = Buffer.from(pair.ecPublic)
    offCurve.writeUInt8(offCurve.readUInt8(96) ^ 1, 96)
    const others = isHybrid ? [spki] : []
    for (const first of ['', 'x', null, toBase64(offCurve), toBase64(Buffer.of(0)), toBase64(offCurve.subarray(1)), spki]) {
      expect(await encapsulate([first, ...others])).toBeUndefined()
    }
    expect(await encapsulate(isHybrid ? [point] : [point, point])).toBeUndefined()
    expect(await encapsulate([])).toBeUndefined()
    if (!pair.spki) return
    const unreduced = toBase64(Buffer.from(pair.spki).fill(0xff, 22, 25))
    for (const second of ['', 7, point, unreduced, toBase64(pair.spki.subarray(22)), toBase64(pair.spki.subarray(0, -1))]) {
      expect(await encapsulate([point, second])).toBeUndefined()
    }
    expect(await encapsulate([spki, point])).toBeUndefined()
  })

  test('device keys that are missing or not valid are refused', () => {
    expect(parsePublicKeys(algorithm, deviceKeys)?.ecdsa).toHaveLength(97)
    const refused: unknown[] = [
      null,
      [],
      {},
      'x',
      { ...deviceKeys, ecdsa: undefined },
      { ...deviceKeys, ecdsa: deviceKeys.ecdsa.slice(4) },
    ]
    if (device.spki) {
      refused.push(
        { ecdsa: deviceKeys.ecdsa },
        { ...deviceKeys, mldsa: toBase64(device.spki.subarray(22)) },
        { ...deviceKeys, mldsa: 1 },
      )
    }
    for (const value of refused) expect(parsePublicKeys(algorithm, value)).toBeUndefined()
  })
})

describe('algorithms', () => {
  const keys = sharedSecretRequest('EC_P384', newKemPair('EC_P384')).encapsulationKeys

  test.each(['EC_P256', 'ML_L3', 'ML_L5', 'ec_p384', 'EC_P384 ', '', 'constructor', null, undefined, 0, ['EC_P384']])(
    '%j is none of 4.0',
    (algorithm) => {
      for (const encapsulationKeys of [keys, [...keys, ...keys]]) {
        expect(parseSharedSecretRequest({ algorithm, encapsulationKeys })).toBeUndefined()
      }
    },
  )

  test('arbitrary JSON never throws', () => {
    const json = fc.record({
      algorithm: fc.oneof(fc.constantFrom(...PHONE_ALGORITHMS), fc.jsonValue()),
      encapsulationKeys: fc.oneof(fc.jsonValue(), fc.array(fc.oneof(fc.base64String(), fc.jsonValue()), { maxLength: 3 })),
    })
    fc.assert(
      fc.property(fc.oneof(json, fc.jsonValue()), fc.constantFrom(...PHONE_ALGORITHMS), (value, algorithm) => {
        parseSharedSecretRequest(value)
        expect(parsePublicKeys(algorithm, value)).toBeUndefined()
      }),
    )
  })
})

describe('the request of a temporary key in 4.0', () => {
  const applicationSecret = toBase64(Buffer.alloc(16, 5))
  const applicationKey = toBase64(Buffer.alloc(16, 7))
  const key = applicationMacKey(applicationSecret)
  const root = Buffer.alloc(32, 8)
  const phone = deriveV4Keys(root)
  const activationKeys = deriveActivationKeys(createInitialActivationSecret(root))
  const pair = newKemPair('EC_P384')
  const claims = { applicationKey, challenge: 'challenge', sharedSecretRequest: sharedSecretRequest('EC_P384', pair) }
  const bound = { ...claims, activationId: ACTIVATION_ID }
  const encode = (value: unknown): string => toBase64Url(utf8(JSON.stringify(value)))

  test('a request reads back and its MAC is right, with any other claim and header', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string(),
        fc.record({ iat: fc.nat(), exp: fc.nat() }, { requiredKeys: [] }),
        async (challenge, others) => {
          const request = parseTemporaryKeyRequest(
            hs384Jwt({ ...claims, challenge, ...others }, key, { typ: 'JWT', alg: 'HS384' }),
          )
          expect(request).toMatchObject({ applicationKey, challenge, activationId: undefined, algorithm: 'EC_P384' })
          expect(request?.verify(applicationSecret, undefined)).toBe(true)
          expect(request?.verify(applicationSecret, activationKeys)).toBe(false)
          expect(request?.verify(toBase64(Buffer.alloc(16)), undefined)).toBe(false)
          expect(request?.verify('!', undefined)).toBe(false)
        },
      ),
      { numRuns: 30 },
    )
  })

  test('the activation claim decides the scope of the key', async () => {
    const request = parseTemporaryKeyRequest(hs384Jwt(bound, phone.macTemporaryKey))
    expect(request?.verify(applicationSecret, activationKeys)).toBe(true)
    expect(request?.verify(applicationSecret, undefined)).toBe(false)
    const foreign = deriveActivationKeys(createInitialActivationSecret(Buffer.alloc(32)))
    expect(request?.verify(applicationSecret, foreign)).toBe(false)
    const madeForApplication = parseTemporaryKeyRequest(hs384Jwt(bound, key))
    expect(madeForApplication?.verify(applicationSecret, activationKeys)).toBe(false)
    expect(madeForApplication?.verify(applicationSecret, undefined)).toBe(false)
    expect(parseTemporaryKeyRequest(hs384Jwt({ ...claims, activationId: null }, key))?.activationId).toBeUndefined()
  })

  test.each(PHONE_ALGORITHMS)('the answer with %s carries a key for the client, signed in every way', async (algorithm) => {
    const client = newKemPair(algorithm)
    const { privateKeys, publicKeys } = await generateSigningKeyPairs(algorithm)
    const jwt = hs384Jwt({ ...bound, sharedSecretRequest: sharedSecretRequest(algorithm, client) }, phone.macTemporaryKey)
    const terms = { temporaryKeyId: ACTIVATION_ID, issuedAt: 1_735_689_600_123, expiresAt: 1_735_689_900_123, salt }
    const issued = await parseTemporaryKeyRequest(jwt)?.issue(terms, privateKeys)
    if (!issued) throw new Error('a valid request was refused')
    const { sharedSecretResponse, ...rest } = openGeneralJws(algorithm, issued.jwt, publicKeys)
    const response = sharedSecretResponse as { salt: string; encapsulatedKeys: string[] }
    expect(toBase64(agree(algorithm, client, response))).toBe(toBase64(issued.envelopeKey))
    expect(rest).toEqual({
      sub: ACTIVATION_ID,
      applicationKey,
      activationId: ACTIVATION_ID,
      challenge: 'challenge',
      iat: 1_735_689_600,
      exp: 1_735_689_900,
      iat_ms: 1_735_689_600_123,
      exp_ms: 1_735_689_900_123,
    })
  })

  test('a genuine request whose key is not on the curve gets no key', async () => {
    const offCurve = Buffer.from(pair.ecPublic)
    offCurve.writeUInt8(offCurve.readUInt8(96) ^ 1, 96)
    const sharedSecretOf = { algorithm: 'EC_P384', encapsulationKeys: [toBase64(offCurve)] }
    const request = parseTemporaryKeyRequest(hs384Jwt({ ...claims, sharedSecretRequest: sharedSecretOf }, key))
    const { privateKeys } = await generateSigningKeyPairs('EC_P384')
    const terms = { temporaryKeyId: ACTIVATION_ID, issuedAt: 0, expiresAt: 1, salt }
    expect(await request?.issue(terms, privateKeys)).toBeUndefined()
  })

  test('one flipped bit anywhere is refused', async () => {
    const jwt = hs384Jwt(claims, key)
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: 2 }), fc.nat(), async (which, where) => {
        const parts = jwt.split('.')
        const bytes = Buffer.from(parts[which] ?? '', 'base64url')
        const index = where % bytes.length
        bytes.writeUInt8(bytes.readUInt8(index) ^ (1 << (where % 8)), index)
        parts[which] = toBase64Url(bytes)
        expect(parseTemporaryKeyRequest(parts.join('.'))?.verify(applicationSecret, undefined) ?? false).toBe(false)
      }),
    )
  })

  test.each([
    ['no algorithm', hs384Jwt(claims, key, { typ: 'JWT' })],
    ['algorithm none', hs384Jwt(claims, key, { alg: 'none' })],
    ['the MAC of version 3', hs384Jwt(claims, key, { alg: 'HS256' })],
    ['a critical extension', hs384Jwt(claims, key, { alg: 'HS384', crit: ['x'] })],
    ['no application key', hs384Jwt({ ...claims, applicationKey: undefined }, key)],
    ['no challenge', hs384Jwt({ ...claims, challenge: undefined }, key)],
    ['no shared secret request', hs384Jwt({ ...claims, sharedSecretRequest: undefined }, key)],
    [
      'a reserved algorithm',
      hs384Jwt({ ...claims, sharedSecretRequest: { ...claims.sharedSecretRequest, algorithm: 'ML_L3' } }, key),
    ],
    ['an application key that is not Base64', hs384Jwt({ ...claims, applicationKey: '!' }, key)],
    ['an activation that is not a UUID', hs384Jwt({ ...claims, activationId: 'x' }, key)],
    ['claims that are not an object', hs384Jwt('text', key)],
    ['two parts', hs384Jwt(claims, key).split('.').slice(0, 2).join('.')],
    ['four parts', `${hs384Jwt(claims, key)}.AAAA`],
    ['padding', `${hs384Jwt(claims, key)}=`],
    ['nothing', ''],
  ])('a request with %s is refused', (_, jwt) => {
    expect(parseTemporaryKeyRequest(jwt)).toBeUndefined()
  })

  test('arbitrary text never throws', () => {
    const part = fc.oneof(fc.string(), fc.jsonValue().map(encode))
    fc.assert(fc.property(fc.tuple(part, part, part), (parts) => parseTemporaryKeyRequest(parts.join('.')) === undefined))
  })
})
