// Tests the primitives of protocol 4.0 against a second implementation on random input, and against published values.
import { createPrivateKey, createPublicKey, decapsulate, generateKeyPairSync, randomBytes } from 'node:crypto'
import { p384 } from '@noble/curves/nist.js'
import { expand, extract } from '@noble/hashes/hkdf.js'
import { hmac as nobleHmac } from '@noble/hashes/hmac.js'
import { sha384 } from '@noble/hashes/sha2.js'
import { sha3_256 } from '@noble/hashes/sha3.js'
import { kmac256 as nobleKmac256 } from '@noble/hashes/sha3-addons.js'
import { ml_dsa65, ml_dsa87 } from '@noble/post-quantum/ml-dsa.js'
import { ml_kem1024, ml_kem768 } from '@noble/post-quantum/ml-kem.js'
import { describe, expect, test } from 'vitest'
import { aesCtr } from './aes.ts'
import { ecdh, generateKeyPair, publicKeyFromPoint, readPoint } from './key.ts'
import { ecdsaSignP384 } from './ecdsa.ts'
import { hmacSha384, sha3 } from './hash.ts'
import { encapDhkem, exportSecret } from './hpke.ts'
import { hkdfExpand, hkdfExtract } from './kdf.ts'
import { encapsulate, importEncapsulationKey } from './kem.ts'
import { createKmac, createKmacOnce } from './kmac.ts'
import {
  exportMlDsaSeed,
  generateMlDsaKeyPair,
  importMlDsaPublicKey,
  importMlDsaSeed,
  mlDsaPublicKeyOf,
  mlDsaSign,
  mlDsaVerify,
} from './mldsa.ts'
import { ecdsaVerifyP384, privateKeyFromScalar } from '../../test/helpers/crypto.ts'

const hex = (text: string): Uint8Array => Buffer.from(text, 'hex')
const count = (from: number, to: number): Uint8Array => Uint8Array.from({ length: to - from }, (_, i) => from + i)
const LENGTHS = [0, 1, 31, 32, 33, 48, 64, 104, 135, 136, 137, 272, 1000]

describe('KMAC-256', () => {
  // Samples 4 to 6 of NIST for SP 800-185.
  test.each([
    [
      count(0, 4),
      'My Tagged Application',
      '20c570c31346f703c9ac36c61c03cb64c3970d0cfc787e9b79599d273a68d2f7f69d4cc3de9d104a351689f27cf6f5951f0103f33f4f24871024d9c27773a8dd',
    ],
    [
      count(0, 200),
      '',
      '75358cf39e41494e949707927cee0af20a3ff553904c86b08f21cc414bcfd691589d27cf5e15369cbbff8b9a4c2eb17800855d0235ff635da82533ec6b759b69',
    ],
    [
      count(0, 200),
      'My Tagged Application',
      'b58618f71f92e1d56c1b8c55ddd7cd188b97b4ca4d99831eb2699a837da2e4d970fbacfde50033aea585f1a2708510c32d07880801bd182898fe476876fc8965',
    ],
  ])('has its published values (%#)', (message, custom, expected) => {
    expect(Buffer.from(createKmacOnce(custom, 64)(count(0x40, 0x60), message)).toString('hex')).toBe(expected)
  })

  test.each(LENGTHS)('over %i bytes is the same in both implementations, whatever the lengths of key and output', (length) => {
    for (const [keyLength, outputLength] of [
      [16, 32],
      [32, 32],
      [32, 64],
      [137, 48],
    ] as const) {
      const [key, message] = [randomBytes(keyLength), randomBytes(length)]
      const expected = nobleKmac256(key, message, { dkLen: outputLength, personalization: Buffer.from('PA4CODE') })
      expect(createKmacOnce('PA4CODE', outputLength)(key, message)).toEqual(Buffer.from(expected))
    }
  })

  test('a key serves any number of messages, and keeps what it was made of', () => {
    const bytes = randomBytes(32)
    const key = createKmac('x')(bytes)
    const expected = createKmacOnce('x')(bytes, Buffer.from('a'))
    bytes.fill(0)
    key.compute(Buffer.from('b'))
    expect(key.compute(Buffer.from('a'))).toEqual(expected)
  })
})

describe('hashes, HKDF and AES', () => {
  test.each(LENGTHS)('SHA3-256, HMAC-SHA384 and HKDF of %i bytes are the same in both implementations', (length) => {
    const [message, key] = [randomBytes(length), randomBytes(length)]
    expect(sha3(message)).toEqual(Buffer.from(sha3_256(message)))
    expect(hmacSha384(key, message)).toEqual(Buffer.from(nobleHmac(sha384, key, message)))
    const prk = hkdfExtract(key, message)
    expect(prk).toEqual(Buffer.from(extract(sha384, message, key)))
    for (const wanted of [1, 48, 49, 200]) {
      expect(hkdfExpand(prk, message, wanted)).toEqual(Buffer.from(expand(sha384, prk, message, wanted)))
    }
  })

  test('CTR has the value of SP 800-38A, and the counter carries over all of its bytes', () => {
    const key = hex('603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4')
    const block = hex('6bc1bee22e409f96e93d7e117393172a')
    expect(aesCtr(key, hex('f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff'), block)).toEqual(hex('601ec313775789a5b7a7f504bbf3d228'))
    const twoBlocks = aesCtr(key, hex('000000000000000000000000ffffffff'), new Uint8Array(32))
    expect(twoBlocks.subarray(16)).toEqual(aesCtr(key, hex('00000000000000000000000100000000'), new Uint8Array(16)))
    expect(aesCtr(key, new Uint8Array(16), new Uint8Array(0))).toHaveLength(0)
  })
})

describe('P-384', () => {
  const randomPair = () => {
    const scalar = p384.utils.randomSecretKey()
    const point = p384.getPublicKey(scalar, false)
    const publicKey = publicKeyFromPoint('P-384', point)
    if (!publicKey) throw new Error('a valid point was refused')
    return { scalar, point, publicKey, privateKey: privateKeyFromScalar('P-384', scalar) }
  }

  test('ECDH gives the X coordinate in 48 bytes, as the other implementation does', async () => {
    for (let i = 0; i < 5; i += 1) {
      const [ours, theirs] = [randomPair(), randomPair()]
      const shared = p384.getSharedSecret(ours.scalar, theirs.point, true)
      expect(ecdh(ours.privateKey, theirs.publicKey)).toEqual(Buffer.from(shared.subarray(1)))
    }
  })

  test.each([
    ['der', 'der'],
    ['ieee-p1363', 'compact'],
  ] as const)('each implementation verifies what the other one signed, in %s', async (encoding, format) => {
    for (let i = 0; i < 3; i += 1) {
      const { scalar, point, publicKey, privateKey } = randomPair()
      const message = randomBytes(i * 70)
      const signature = ecdsaSignP384(privateKey, message, encoding)
      if (encoding === 'ieee-p1363') expect(signature).toHaveLength(96)
      expect(p384.verify(signature, message, point, { lowS: false, format })).toBe(true)
      const theirs = p384.sign(message, scalar, { lowS: false, format })
      expect(ecdsaVerifyP384(publicKey, message, theirs, encoding)).toBe(true)
      expect(ecdsaVerifyP384(publicKey, randomBytes(9), theirs, encoding)).toBe(false)
      expect(ecdsaVerifyP384(randomPair().publicKey, message, theirs, encoding)).toBe(false)
    }
  })

  test('bytes that are no signature are refused', () => {
    const { publicKey } = randomPair()
    for (const bytes of [new Uint8Array(0), new Uint8Array(96), randomBytes(103)]) {
      expect(ecdsaVerifyP384(publicKey, randomBytes(4), bytes)).toBe(false)
      expect(ecdsaVerifyP384(publicKey, randomBytes(4), bytes, 'ieee-p1363')).toBe(false)
    }
  })

  test('DHKEM and its export are those of RFC 9180, written a second time', async () => {
    const [recipient, ephemeral] = [randomPair(), generateKeyPair('P-384')]
    const point = readPoint('P-384', recipient.point)
    if (point === undefined) throw new Error('a valid point was refused')
    const encapsulated = encapDhkem(point, ephemeral)
    expect(encapsulated.enc).toEqual(ephemeral.publicKey)
    const dh = p384.getSharedSecret(recipient.scalar, ephemeral.publicKey, true).subarray(1)
    const kem = Buffer.concat([Buffer.from('HPKE-v1KEM'), hex('0011')])
    const hpke = Buffer.concat([Buffer.from('HPKE-v1HPKE'), hex('00110002ffff')])
    const join = (...parts: readonly (Uint8Array | string)[]) => Buffer.concat(parts.map((part) => Buffer.from(part)))
    const eae = extract(sha384, join(kem, 'eae_prk', dh), new Uint8Array(0))
    const context = join(ephemeral.publicKey, recipient.point)
    const shared = expand(sha384, eae, join(hex('0030'), kem, 'shared_secret', context), 48)
    expect(encapsulated?.sharedSecret).toEqual(Buffer.from(shared))
    const hashes = join(
      hex('00'),
      extract(sha384, join(hpke, 'psk_id_hash'), new Uint8Array(0)),
      extract(sha384, join(hpke, 'info_hash', 'info'), new Uint8Array(0)),
    )
    const secret = extract(sha384, join(hpke, 'secret'), shared)
    const exporter = expand(sha384, secret, join(hex('0030'), hpke, 'exp', hashes), 48)
    const expected = expand(sha384, exporter, join(hex('0030'), hpke, 'sec', 'context'), 48)
    expect(exportSecret(shared, Buffer.from('info'), Buffer.from('context'))).toEqual(Buffer.from(expected))
  })

  test('a recipient of DHKEM is read from either form of its point, and refused when it is not on the curve', () => {
    const { point } = randomPair()
    const compressed = p384.Point.fromBytes(point).toBytes(true)
    for (const form of [point, compressed]) expect(readPoint('P-384', form)?.bytes).toEqual(Buffer.from(point))
    const wrong = Buffer.from(point)
    wrong.writeUInt8(wrong.readUInt8(96) ^ 1, 96)
    expect(readPoint('P-384', wrong)).toBeUndefined()
  })
})

describe.each([
  { parameterSet: 'ML-KEM-768', noble: ml_kem768, opensslName: 'ml-kem-768', spkiLength: 1206, ciphertextLength: 1088 },
  { parameterSet: 'ML-KEM-1024', noble: ml_kem1024, opensslName: 'ml-kem-1024', spkiLength: 1590, ciphertextLength: 1568 },
] as const)('$parameterSet', ({ parameterSet, noble, opensslName, spkiLength, ciphertextLength }) => {
  const seed = randomBytes(64)
  const key = createPrivateKey({ key: seed, format: 'raw-seed', asymmetricKeyType: opensslName })
  const spki = createPublicKey(key).export({ format: 'der', type: 'spki' })
  const { publicKey, secretKey } = noble.keygen(seed)

  test('the other implementation has the same key of a seed, and decapsulates what was encapsulated for it', () => {
    expect(spki).toHaveLength(spkiLength)
    expect(spki.subarray(22)).toEqual(Buffer.from(publicKey))
    const imported = importEncapsulationKey(parameterSet, spki)
    if (!imported) throw new Error('a valid key was refused')
    const { ciphertext, sharedSecret } = encapsulate(imported)
    expect([ciphertext.length, sharedSecret.length]).toEqual([ciphertextLength, 32])
    expect(Buffer.from(noble.decapsulate(ciphertext, secretKey))).toEqual(sharedSecret)
    const theirs = noble.encapsulate(publicKey)
    expect(decapsulate(key, theirs.cipherText)).toEqual(Buffer.from(theirs.sharedSecret))
    expect(encapsulate(imported).sharedSecret).not.toEqual(sharedSecret)
  })

  test('another header, another length, another parameter set or a coefficient that is not reduced is refused', () => {
    const other = generateKeyPairSync(opensslName === 'ml-kem-768' ? 'ml-kem-1024' : 'ml-kem-768').publicKey
    const changed = (index: number, value: number): Uint8Array => Buffer.from(spki).fill(value, index, index + 1)
    const refused = [
      new Uint8Array(0),
      publicKey,
      spki.subarray(0, -1),
      Buffer.concat([spki, Buffer.of(0)]),
      other.export({ format: 'der', type: 'spki' }),
      // The first two coefficients become 4095, which is not below 3329.
      Buffer.from(spki).fill(0xff, 22, 25),
      ...Array.from({ length: 22 }, (_, i) => changed(i, (spki[i] ?? 0) ^ 1)),
    ]
    for (const bytes of refused) expect(importEncapsulationKey(parameterSet, bytes)).toBeUndefined()
  })
})

describe.each([
  { parameterSet: 'ML-DSA-65', noble: ml_dsa65, spkiLength: 1974, signatureLength: 3309 },
  { parameterSet: 'ML-DSA-87', noble: ml_dsa87, spkiLength: 2614, signatureLength: 4627 },
] as const)('$parameterSet', ({ parameterSet, noble, spkiLength, signatureLength }) => {
  test('a key of a seed is the same in both implementations, and the seed survives', async () => {
    const pair = generateMlDsaKeyPair(parameterSet)
    const seed = exportMlDsaSeed(pair.privateKey)
    expect(seed).toHaveLength(32)
    expect(pair.publicKey).toHaveLength(spkiLength)
    expect(mlDsaPublicKeyOf(importMlDsaSeed(parameterSet, seed))).toEqual(pair.publicKey)
    expect(pair.publicKey.subarray(22)).toEqual(Buffer.from(noble.keygen(seed).publicKey))
  })

  test('each implementation verifies what the other one signed', async () => {
    const { privateKey, publicKey } = generateMlDsaKeyPair(parameterSet)
    const imported = importMlDsaPublicKey(parameterSet, publicKey)
    if (!imported) throw new Error('a valid key was refused')
    const message = randomBytes(100)
    const signature = mlDsaSign(privateKey, message)
    expect(signature).toHaveLength(signatureLength)
    expect(noble.verify(signature, message, publicKey.subarray(22))).toBe(true)
    const theirs = noble.sign(message, noble.keygen(exportMlDsaSeed(privateKey)).secretKey)
    expect(mlDsaVerify(imported, message, theirs)).toBe(true)
    expect(mlDsaVerify(imported, randomBytes(100), theirs)).toBe(false)
    for (const bytes of [new Uint8Array(0), randomBytes(signatureLength), theirs.subarray(1)])
      expect(mlDsaVerify(imported, message, bytes)).toBe(false)
  })

  test('another header, another length or another parameter set is refused; a stored seed of another length throws', async () => {
    const { publicKey } = generateMlDsaKeyPair(parameterSet)
    const other = generateMlDsaKeyPair(parameterSet === 'ML-DSA-65' ? 'ML-DSA-87' : 'ML-DSA-65')
    const changed = (index: number): Uint8Array => Buffer.from(publicKey).fill((publicKey[index] ?? 0) ^ 1, index, index + 1)
    const refused = [
      new Uint8Array(0),
      publicKey.subarray(22),
      publicKey.subarray(0, -1),
      Buffer.concat([publicKey, Buffer.of(0)]),
      other.publicKey,
      ...Array.from({ length: 22 }, (_, i) => changed(i)),
    ]
    for (const bytes of refused) expect(importMlDsaPublicKey(parameterSet, bytes)).toBeUndefined()
    expect(() => importMlDsaSeed(parameterSet, new Uint8Array(31))).toThrow()
  })
})
