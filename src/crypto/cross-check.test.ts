// Tests every primitive against a second implementation on random input, and against a published value.
import { randomBytes } from 'node:crypto'
import { p256 } from '@noble/curves/nist.js'
import { hmac as nobleHmac } from '@noble/hashes/hmac.js'
import { scrypt as nobleScrypt } from '@noble/hashes/scrypt.js'
import { sha256 as nobleSha256 } from '@noble/hashes/sha2.js'
import { describe, expect, test } from 'vitest'
import { u32 } from '../lib/bytes.ts'
import { aesCbcDecrypt, aesCbcEncrypt, aesCbcEncryptUnpadded, aesEncryptBlocks, aesGcmOpen, aesGcmSeal } from './aes.ts'
import { ecdh, publicKeyFromPoint } from './key.ts'
import { ecdsaSign, ecdsaVerify } from './ecdsa.ts'
import { crc16, hmac, importHmacKey, sha256 } from './hash.ts'
import { deriveX963, hashPassword } from './kdf.ts'
import { aesCbcDecryptUnpadded, privateKeyFromScalar } from '../../test/helpers/crypto.ts'

const hex = (text: string): Uint8Array => Buffer.from(text, 'hex')
const LENGTHS = [0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 200, 1000]

describe('hashes and MACs', () => {
  test.each(LENGTHS)('SHA-256 and HMAC of %i bytes are the same in both implementations', (length) => {
    const message = randomBytes(length)
    const key = randomBytes(length)
    expect(sha256(message)).toEqual(Buffer.from(nobleSha256(message)))
    expect(hmac(key, message)).toEqual(Buffer.from(nobleHmac(nobleSha256, key, message)))
    expect(hmac(importHmacKey(key), message)).toEqual(hmac(key, message))
  })

  test.each([0, 1, 16, 31, 32, 33, 48, 64, 100])('X9.63 derives %i bytes as the formula says', (length) => {
    const [z, info] = [randomBytes(32), randomBytes(80)]
    const blocks = [1, 2, 3, 4].map((counter) => nobleSha256(Buffer.concat([z, u32(counter), info])))
    expect(deriveX963(z, info, length)).toEqual(Buffer.concat(blocks).subarray(0, length))
  })

  test('CRC-16/ARC has its check value', () => {
    expect(crc16(Buffer.from('123456789'))).toBe(0xbb3d)
    expect(crc16(new Uint8Array(0))).toBe(0)
  })
})

describe('elliptic curves', () => {
  const randomPair = () => {
    const scalar = p256.utils.randomSecretKey()
    const point = p256.getPublicKey(scalar, false)
    const publicKey = publicKeyFromPoint('P-256', point)
    if (!publicKey) throw new Error('a valid point was refused')
    return { scalar, point, publicKey, privateKey: privateKeyFromScalar('P-256', scalar) }
  }

  test('ECDH gives the X coordinate in 32 bytes, as the other implementation does', () => {
    for (let i = 0; i < 30; i += 1) {
      const [ours, theirs] = [randomPair(), randomPair()]
      const shared = p256.getSharedSecret(ours.scalar, theirs.point, true)
      expect(ecdh(ours.privateKey, theirs.publicKey)).toEqual(Buffer.from(shared.subarray(1)))
    }
  })

  test('ECDH keeps leading zero bytes of X', () => {
    for (let scalarValue = 1; scalarValue < 2000; scalarValue += 1) {
      const scalar = Buffer.concat([Buffer.alloc(28), u32(scalarValue)])
      const point = p256.getPublicKey(scalar, false)
      if (point[1] !== 0) continue
      const one = privateKeyFromScalar('P-256', Buffer.concat([Buffer.alloc(31), Buffer.of(1)]))
      const publicKey = publicKeyFromPoint('P-256', point)
      expect(publicKey && ecdh(one, publicKey)).toEqual(Buffer.from(point.subarray(1, 33)))
      return
    }
    throw new Error('no X with a leading zero byte below 2000')
  })

  test('each implementation verifies what the other one signed', () => {
    const options = { lowS: false, format: 'der' } as const
    for (let i = 0; i < 20; i += 1) {
      const { scalar, point, publicKey, privateKey } = randomPair()
      const message = randomBytes(i * 7)
      expect(p256.verify(ecdsaSign(privateKey, message), message, point, options)).toBe(true)
      expect(ecdsaVerify(publicKey, message, p256.sign(message, scalar, options))).toBe(true)
    }
  })

  test('a signature of another message, another key, or no signature at all is refused', () => {
    const [ours, theirs] = [randomPair(), randomPair()]
    const message = randomBytes(40)
    const signature = ecdsaSign(ours.privateKey, message)
    expect(ecdsaVerify(ours.publicKey, randomBytes(40), signature)).toBe(false)
    expect(ecdsaVerify(theirs.publicKey, message, signature)).toBe(false)
    for (const bytes of [new Uint8Array(0), new Uint8Array(64), randomBytes(71)]) {
      expect(ecdsaVerify(ours.publicKey, message, bytes)).toBe(false)
    }
  })
})

describe('AES', () => {
  const key = hex('2b7e151628aed2a6abf7158809cf4f3c')
  const block = hex('6bc1bee22e409f96e93d7e117393172a')

  test('blocks alone and CBC without padding have the values of SP 800-38A', () => {
    const blocks = Buffer.concat([block, hex('ae2d8a571e03ac9c9eb76fac45af8e51')])
    expect(aesEncryptBlocks(key, blocks)).toEqual(hex('3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf'))
    const iv = hex('000102030405060708090a0b0c0d0e0f')
    expect(aesCbcEncryptUnpadded(key, iv, block)).toEqual(hex('7649abac8119b246cee98e9b12e9197d'))
    expect(aesCbcDecryptUnpadded(key, iv, hex('7649abac8119b246cee98e9b12e9197d'))).toEqual(block)
  })

  test.each(LENGTHS)('CBC with padding brings %i bytes back', (length) => {
    const [iv, plaintext] = [randomBytes(16), randomBytes(length)]
    const ciphertext = aesCbcEncrypt(key, iv, plaintext)
    expect(ciphertext.length).toBe((Math.floor(length / 16) + 1) * 16)
    expect(aesCbcDecrypt(key, iv, ciphertext)).toEqual(plaintext)
  })

  test('a wrong padding or a broken block gives nothing', () => {
    const iv = new Uint8Array(16)
    expect(aesCbcDecrypt(key, iv, aesCbcEncryptUnpadded(key, iv, new Uint8Array(16)))).toBeUndefined()
    expect(aesCbcDecrypt(key, iv, new Uint8Array(15))).toBeUndefined()
    expect(aesCbcDecrypt(key, iv, new Uint8Array(0))).toBeUndefined()
  })

  test('GCM has the values of its published test cases 13 and 14', () => {
    const zeroKey = new Uint8Array(32)
    const [nonce, none] = [new Uint8Array(12), new Uint8Array(0)]
    expect(aesGcmSeal(zeroKey, nonce, none, none)).toEqual(hex('530f8afbc74536b9a963b4f1c4cb738b'))
    const sealed = hex('cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919')
    expect(aesGcmSeal(zeroKey, nonce, new Uint8Array(16), none)).toEqual(sealed)
    expect(aesGcmOpen(zeroKey, nonce, sealed, none)).toEqual(Buffer.alloc(16))
  })

  test('GCM opens nothing that was changed', () => {
    const gcmKey = randomBytes(32)
    const [nonce, plaintext, associatedData] = [randomBytes(12), randomBytes(40), randomBytes(20)]
    const sealed = aesGcmSeal(gcmKey, nonce, plaintext, associatedData)
    expect(aesGcmOpen(gcmKey, nonce, sealed, associatedData)).toEqual(plaintext)
    for (let i = 0; i < sealed.length; i += 1) {
      const changed = Buffer.from(sealed)
      changed.writeUInt8(changed.readUInt8(i) ^ 1, i)
      expect(aesGcmOpen(gcmKey, nonce, changed, associatedData)).toBeUndefined()
    }
    expect(aesGcmOpen(gcmKey, nonce, sealed, randomBytes(20))).toBeUndefined()
    expect(aesGcmOpen(gcmKey, randomBytes(12), sealed, associatedData)).toBeUndefined()
    expect(aesGcmOpen(randomBytes(32), nonce, sealed, associatedData)).toBeUndefined()
    expect(aesGcmOpen(gcmKey, nonce, sealed.subarray(0, 15), associatedData)).toBeUndefined()
  })
})

describe('passwords', () => {
  test('scrypt gives the same 32 bytes in both implementations', async () => {
    const [password, salt] = [Buffer.from('žluťoučký kůň'), randomBytes(16)]
    const expected = nobleScrypt(password, salt, { N: 2 ** 15, r: 8, p: 1, dkLen: 32 })
    expect(await hashPassword(password, salt)).toEqual(Buffer.from(expected))
  })
})
