// Tests which forms of EC keys and points are accepted and refused.
import { randomBytes } from 'node:crypto'
import { p256, p384 } from '@noble/curves/nist.js'
import { describe, expect, test } from 'vitest'
import {
  exportPrivateKey,
  type Curve,
  generateKeyPair,
  hasPointForm,
  importPrivateKey,
  publicKeyFromPoint,
  publicKeyOf,
  readPoint,
} from './key.ts'
import { inThread } from './threads.ts'
import { privateKeyFromScalar } from '../../test/helpers/crypto.ts'

interface CurveCase {
  readonly curve: Curve
  readonly noble: typeof p256
  readonly length: number
  /** Field prime and order of the group. */
  readonly prime: Buffer
}

const hex = (text: string): Buffer => Buffer.from(text, 'hex')
const cases: readonly CurveCase[] = [
  {
    curve: 'P-256',
    noble: p256,
    length: 32,
    prime: hex('ffffffff00000001000000000000000000000000ffffffffffffffffffffffff'),
  },
  {
    curve: 'P-384',
    noble: p384,
    length: 48,
    prime: hex('fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffeffffffff0000000000000000ffffffff'),
  },
]

describe.each(cases)('key pairs on $curve', ({ curve, noble, length }) => {
  test.each([
    ['here', () => generateKeyPair(curve)],
    ['in a thread', () => inThread('generateKeyPair', curve)],
  ])('the public key of a pair that is made %s is the uncompressed point of its private key', async (_, generate) => {
    const { privateKey, publicKey } = await generate()
    expect(publicKey).toHaveLength(2 * length + 1)
    expect(publicKey[0]).toBe(4)
    expect(Buffer.from(publicKey)).toEqual(publicKeyOf(privateKey))
  })

  test('a private key survives export and import', () => {
    const { privateKey, publicKey } = generateKeyPair(curve)
    expect(publicKeyOf(importPrivateKey(exportPrivateKey(privateKey)))).toEqual(publicKey)
  })

  test('a scalar has the public key that the other implementation computes', () => {
    for (let i = 0; i < 10; i += 1) {
      const scalar = noble.utils.randomSecretKey()
      expect(publicKeyOf(privateKeyFromScalar(curve, scalar))).toEqual(Buffer.from(noble.getPublicKey(scalar, false)))
    }
  })

  test('bytes that are no PKCS#8 throw', () => {
    expect(() => importPrivateKey(randomBytes(67))).toThrow()
  })
})

describe.each(cases)('points on $curve', ({ curve, noble, length, prime }) => {
  test('both encodings of a point decode to the uncompressed one', () => {
    for (let i = 0; i < 10; i += 1) {
      const scalar = noble.utils.randomSecretKey()
      const uncompressed = Buffer.from(noble.getPublicKey(scalar, false))
      for (const isCompressed of [true, false]) {
        const point = noble.getPublicKey(scalar, isCompressed)
        expect(readPoint(curve, point)?.bytes).toEqual(uncompressed)
        expect(publicKeyFromPoint(curve, point)).toBeDefined()
      }
    }
  })

  const { publicKey } = generateKeyPair(curve)
  const last = 2 * length
  const changed = (index: number, value: number): Uint8Array => Buffer.from(publicKey).fill(value, index, index + 1)
  const hybrid = changed(0, 6 + ((publicKey[last] ?? 0) & 1))

  test.each([
    ['empty', new Uint8Array(0)],
    ['infinity', Buffer.of(0)],
    ['hybrid', hybrid],
    ['uncompressed with the first byte of a compressed one', changed(0, 2)],
    ['one byte short', publicKey.subarray(0, last)],
    ['one byte long', Buffer.concat([publicKey, Buffer.of(0)])],
    ['not on the curve', changed(last, (publicKey[last] ?? 0) ^ 1)],
    ['of zero coordinates', Buffer.concat([Buffer.of(4), Buffer.alloc(last)])],
    ['compressed with X not below p', Buffer.concat([Buffer.of(2), prime])],
    ['uncompressed with X not below p', Buffer.concat([Buffer.of(4), prime, Buffer.alloc(length, 1)])],
    ['compressed with the first byte of an uncompressed one', Buffer.concat([Buffer.of(4), publicKey.subarray(1, length + 1)])],
  ])('a point that is %s is refused by both decoders', (_, point) => {
    expect(readPoint(curve, point)).toBeUndefined()
    expect(publicKeyFromPoint(curve, point)).toBeUndefined()
  })

  test('a point of the other curve is refused', () => {
    const other = generateKeyPair(curve === 'P-256' ? 'P-384' : 'P-256').publicKey
    expect(readPoint(curve, other)).toBeUndefined()
    expect(publicKeyFromPoint(curve, other)).toBeUndefined()
  })

  test('the form of a point says nothing about the curve', () => {
    expect(hasPointForm(curve, Buffer.concat([Buffer.of(4), Buffer.alloc(last)]))).toBe(true)
    expect(hasPointForm(curve, hybrid)).toBe(false)
  })
})
