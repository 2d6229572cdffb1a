// EC keys and points: forms that are accepted, forms that are refused.
import { randomBytes } from 'node:crypto'
import { p256 } from '@noble/curves/nist.js'
import { describe, expect, test } from 'vitest'
import {
  decodePoint,
  exportPrivateKey,
  generateKeyPair,
  hasPointForm,
  importPrivateKey,
  privateKeyFromScalar,
  publicKeyFromPoint,
  publicKeyOf,
} from './key.ts'

describe('key pairs', () => {
  test('a generated public key is the uncompressed point of its private key', () => {
    const { privateKey, publicKey } = generateKeyPair('P-256')
    expect(publicKey).toHaveLength(65)
    expect(publicKey[0]).toBe(4)
    expect(publicKeyOf('P-256', privateKey)).toEqual(publicKey)
  })

  test('a private key survives export and import', () => {
    const { privateKey, publicKey } = generateKeyPair('P-256')
    expect(publicKeyOf('P-256', importPrivateKey(exportPrivateKey(privateKey)))).toEqual(publicKey)
  })

  test('a scalar has the public key that the other implementation computes', () => {
    for (let i = 0; i < 20; i += 1) {
      const scalar = p256.utils.randomSecretKey()
      expect(publicKeyOf('P-256', privateKeyFromScalar('P-256', scalar))).toEqual(Buffer.from(p256.getPublicKey(scalar, false)))
    }
  })

  test.each([
    ['zero', new Uint8Array(32)],
    ['the order of the group', Buffer.from('ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551', 'hex')],
    ['31 bytes', new Uint8Array(31).fill(1)],
    ['33 bytes', new Uint8Array(33).fill(1)],
  ])('a scalar of %s is refused', (_, scalar) => {
    expect(() => publicKeyOf('P-256', privateKeyFromScalar('P-256', scalar))).toThrow()
  })

  test('bytes that are no PKCS#8 throw', () => {
    expect(() => importPrivateKey(randomBytes(67))).toThrow()
  })
})

describe('points', () => {
  test('both encodings of a point decode to the uncompressed one', () => {
    for (let i = 0; i < 20; i += 1) {
      const scalar = p256.utils.randomSecretKey()
      const uncompressed = Buffer.from(p256.getPublicKey(scalar, false))
      for (const isCompressed of [true, false]) {
        const point = p256.getPublicKey(scalar, isCompressed)
        expect(decodePoint('P-256', point)).toEqual(uncompressed)
        expect(publicKeyFromPoint('P-256', point)).toBeDefined()
      }
    }
  })

  const { publicKey } = generateKeyPair('P-256')
  const changed = (index: number, value: number): Uint8Array => Buffer.from(publicKey).fill(value, index, index + 1)
  const hybrid = changed(0, 6 + ((publicKey[64] ?? 0) & 1))
  const prime = Buffer.from('ffffffff00000001000000000000000000000000ffffffffffffffffffffffff', 'hex')

  test.each([
    ['empty', new Uint8Array(0)],
    ['infinity', Buffer.of(0)],
    ['hybrid', hybrid],
    ['uncompressed with the first byte of a compressed one', changed(0, 2)],
    ['one byte short', publicKey.subarray(0, 64)],
    ['one byte long', Buffer.concat([publicKey, Buffer.of(0)])],
    ['not on the curve', changed(64, (publicKey[64] ?? 0) ^ 1)],
    ['of zero coordinates', Buffer.concat([Buffer.of(4), Buffer.alloc(64)])],
    ['compressed with X not below p', Buffer.concat([Buffer.of(2), prime])],
    ['uncompressed with X not below p', Buffer.concat([Buffer.of(4), prime, Buffer.alloc(32, 1)])],
    ['compressed with the first byte of an uncompressed one', Buffer.concat([Buffer.of(4), publicKey.subarray(1, 33)])],
  ])('a point that is %s is refused by both decoders', (_, point) => {
    expect(decodePoint('P-256', point)).toBeUndefined()
    expect(publicKeyFromPoint('P-256', point)).toBeUndefined()
  })

  test('the form of a point says nothing about the curve', () => {
    expect(hasPointForm('P-256', Buffer.concat([Buffer.of(4), Buffer.alloc(64)]))).toBe(true)
    expect(hasPointForm('P-256', hybrid)).toBe(false)
  })
})
