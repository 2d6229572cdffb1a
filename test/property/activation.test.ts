// Activation codes, fingerprints and the status blob (v3 §4, §9).
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { generateKeyPair, publicKeyFromPoint } from '../../src/crypto/key.ts'
import {
  composeActivationQrText,
  createActivationCode,
  parseActivationCode,
  signActivationCode,
} from '../../src/domain/activation/code.ts'
import { minimalX } from '../../src/protocol/wire/decimal.ts'
import { activationFingerprint } from '../../src/protocol/v3/fingerprint.ts'
import { deriveActivationKeys } from '../../src/protocol/v3/key-schedule.ts'
import { encryptStatusBlob } from '../../src/protocol/v3/status-blob.ts'
import { ctrDataHash, openStatusBlob, fingerprint as phoneFingerprint } from '../../phone/v3/crypto.ts'
import { verifyActivationCode } from '../helpers/crypto.ts'

// Lone surrogates included. The unit 'binary' of fast-check says the same and takes seconds to set up.
const codeUnits = fc.array(fc.nat({ max: 0xffff })).map((units) => String.fromCharCode(...units))

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

describe('activation codes', () => {
  test('a code reads back as the bytes it was made of', () => {
    fc.assert(
      fc.property(bytes(10), (random) => {
        const code = createActivationCode(random)
        expect(code).toMatch(/^[A-Z2-7]{5}(-[A-Z2-7]{5}){3}$/)
        expect(['A', 'Q']).toContain(code.at(-1))
        expect([...(parseActivationCode(code) ?? [])]).toEqual([...random])
      }),
    )
  })

  test('one changed bit among the 96 of a code is refused', () => {
    fc.assert(
      fc.property(bytes(10), fc.nat({ max: 95 }), (random, bit) => {
        const characters = createActivationCode(random).replaceAll('-', '').split('')
        const at = Math.floor(bit / 5)
        characters[at] = ALPHABET.charAt(ALPHABET.indexOf(characters[at] ?? '') ^ (1 << (4 - (bit % 5))))
        expect(parseActivationCode(characters.join('').replace(/.{5}(?=.)/g, '$&-'))).toBeUndefined()
      }),
    )
  })

  test('the four filler bits of a code are not looked at', () => {
    expect(parseActivationCode('AAAAA-AAAAA-AAAAA-AAAAA')).toEqual(Buffer.alloc(10))
    expect(parseActivationCode('AAAAA-AAAAA-AAAAA-AAAAP')).toEqual(Buffer.alloc(10))
    expect(parseActivationCode('AAAAA-AAAAA-AAAAA-AAAAQ')).toBeUndefined()
  })

  test('arbitrary text never throws and is no code', () => {
    fc.assert(fc.property(fc.oneof(fc.string(), codeUnits), (text) => parseActivationCode(text) === undefined))
  })

  test('a signature belongs to one code and one key', () => {
    const { privateKey, publicKey } = generateKeyPair('P-256')
    const key = publicKeyFromPoint('P-256', publicKey)
    const otherKey = publicKeyFromPoint('P-256', generateKeyPair('P-256').publicKey)
    if (!key || !otherKey) throw new Error('a generated key was refused')
    const code = createActivationCode(new Uint8Array(10).fill(1))
    const signature = signActivationCode(code, privateKey)
    expect(composeActivationQrText(code, signature)).toBe(`${code}#${signature}`)
    expect(verifyActivationCode(code, signature, key)).toBe(true)
    expect(verifyActivationCode(code, signature, otherKey)).toBe(false)
    expect(verifyActivationCode(createActivationCode(new Uint8Array(10)), signature, key)).toBe(false)
    expect(verifyActivationCode(code, 'not Base64', key)).toBe(false)
  })
})

describe('fingerprints', () => {
  const point = fc.tuple(fc.constantFrom(2, 3), bytes(32)).map(([first, x]) => Buffer.from([first, ...x]))

  test('a fingerprint has eight digits and is the one the phone shows', () => {
    fc.assert(
      fc.property(point, fc.uuid(), point, (device, activationId, server) => {
        const digits = activationFingerprint(device, activationId, server)
        expect(digits).toMatch(/^\d{8}$/)
        expect(phoneFingerprint(device, activationId, server)).toBe(digits)
      }),
    )
  })

  test('an X coordinate of 31 bytes enters a fingerprint without its leading zero byte', () => {
    const short = Buffer.concat([Buffer.of(2, 0), Buffer.alloc(31, 0xab)])
    const uncompressed = Buffer.concat([Buffer.of(4, 0), Buffer.alloc(31, 0xab), Buffer.alloc(32, 1)])
    expect(minimalX(short, 32)).toEqual(Buffer.alloc(31, 0xab))
    expect(minimalX(uncompressed, 32)).toEqual(Buffer.alloc(31, 0xab))
    const full = Buffer.concat([Buffer.of(2), Buffer.alloc(32, 0xcd)])
    const activationId = '2fb93e68-8622-4b8f-9014-80e561cc556d'
    for (const [device, server] of [
      [short, full],
      [full, short],
      [uncompressed, uncompressed],
    ] as const) {
      expect(activationFingerprint(device, activationId, server)).toBe(phoneFingerprint(device, activationId, server))
    }
    expect(minimalX(Buffer.concat([Buffer.of(2), Buffer.alloc(31), Buffer.of(5)]), 32)).toEqual(Buffer.of(5))
    expect(minimalX(Buffer.concat([Buffer.of(2), Buffer.alloc(32)]), 32)).toEqual(Buffer.alloc(0))
  })
})

describe('the status blob', () => {
  const keys = deriveActivationKeys(new Uint8Array(16).fill(1))
  const status = {
    state: 'ACTIVE',
    counter: 7,
    ctrData: new Uint8Array(16),
    failedAttempts: 0,
    maxFailedAttempts: 5,
    lookAhead: 20,
    upgradeVersion: 3,
  } as const

  test('is 32 bytes in both forms, and new filler makes a new blob', () => {
    fc.assert(
      fc.property(bytes(32), bytes(16), bytes(16), (filler, challenge, nonce) => {
        const other = filler.map((byte) => byte ^ 1)
        for (const iv of [undefined, { challenge, nonce }]) {
          const blob = encryptStatusBlob(keys, status, iv, filler)
          expect(blob).toHaveLength(32)
          expect(encryptStatusBlob(keys, status, iv, other)).not.toEqual(blob)
        }
      }),
    )
  })

  test('is what the phone reads back, the members of the counter in the 3.1 form only', () => {
    const given = fc.record({
      state: fc.constantFrom('CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED'),
      counter: fc.nat(),
      ctrData: bytes(16),
      failedAttempts: fc.nat({ max: 255 }),
      maxFailedAttempts: fc.nat({ max: 255 }),
      lookAhead: fc.nat({ max: 255 }),
      upgradeVersion: fc.constantFrom(3, 4),
    })
    const transport = { transport: keys.keyTransport, transportIv: keys.keyTransportIv }
    fc.assert(
      fc.property(given, bytes(32), bytes(16), bytes(16), (fields, filler, challenge, nonce) => {
        const { state, counter, ctrData, lookAhead, failedAttempts, maxFailedAttempts, upgradeVersion } = fields
        const common = {
          state: ['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED'].indexOf(state) + 1,
          currentVersion: 3,
          upgradeVersion,
          failedAttempts,
          maxFailedAttempts,
        }
        const blob = encryptStatusBlob(keys, fields, { challenge, nonce }, filler)
        expect(openStatusBlob(transport, blob, challenge, nonce)).toEqual({
          ...common,
          ctrByte: counter % 256,
          lookAhead,
          ctrDataHash: Buffer.from(ctrDataHash({ transportCtr: keys.keyTransportCtr }, ctrData)),
        })
        expect(openStatusBlob(transport, encryptStatusBlob(keys, fields, undefined, filler))).toEqual({
          ...common,
          ctrByte: filler[12],
          lookAhead: filler[15],
          ctrDataHash: Buffer.from(filler.subarray(16)),
        })
      }),
    )
  })

  test('leaves the filler it is given as it was', () => {
    const filler = new Uint8Array(32).fill(9)
    encryptStatusBlob(keys, status, undefined, filler)
    expect(filler).toEqual(new Uint8Array(32).fill(9))
  })
})
