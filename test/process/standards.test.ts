// ML-KEM and ML-DSA against published values of the standards (FIPS 203, FIPS 204), most of them many at once: seeds come from one
// SHAKE128, results go into another, and its digest after 100 rounds is what is published (C2SP CCTV, and crypto/mlkem of Go for FIPS 203
// as it became). What the server never does, deterministic encapsulation and signing, is the other implementation's. RFC 9180 has no
// values for P-384; cross-check-v4.test.ts writes it a second time.
import { createPrivateKey, createPublicKey, decapsulate, type KeyObject } from 'node:crypto'
import { sha3_256, shake128 } from '@noble/hashes/sha3.js'
import { ml_dsa65, ml_dsa87 } from '@noble/post-quantum/ml-dsa.js'
import { ml_kem1024, ml_kem768 } from '@noble/post-quantum/ml-kem.js'
import { expect, test } from 'vitest'
import { importEncapsulationKey } from '../../src/crypto/kem.ts'
import { importMlDsaPublicKey, importMlDsaSeed, mlDsaPublicKeyOf, mlDsaVerify } from '../../src/crypto/mldsa.ts'

const ROUNDS = 100
/** Bytes in front of a public key in a SubjectPublicKeyInfo, in all four parameter sets. */
const HEADER_LENGTH = 22

const toHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
const spkiOf = (privateKey: KeyObject): Buffer => createPublicKey(privateKey).export({ format: 'der', type: 'spki' })

test('100 exchanges with ML-KEM-768, and as many ciphertexts that are none, give the published digest', () => {
  const source = shake128.create({})
  const results = shake128.create({ dkLen: 32 })
  for (let i = 0; i < ROUNDS; i++) {
    const privateKey = createPrivateKey({ key: Buffer.from(source.xof(64)), format: 'raw-seed', asymmetricKeyType: 'ml-kem-768' })
    const spki = spkiOf(privateKey)
    expect(importEncapsulationKey('ML-KEM-768', spki)).toBeDefined()
    const publicKey = spki.subarray(HEADER_LENGTH)
    const { cipherText, sharedSecret } = ml_kem768.encapsulate(publicKey, source.xof(32))
    results.update(publicKey).update(cipherText).update(sharedSecret)
    expect(toHex(decapsulate(privateKey, cipherText))).toBe(toHex(sharedSecret))
    results.update(decapsulate(privateKey, source.xof(cipherText.length)))
  }
  expect(toHex(results.digest())).toBe('1114b1b6699ed191734fa339376afa7e285c9e6acf6ff0177d346696ce564415')
})

// Cases 0 and 99 of the known answers of ML-KEM-1024 (post-quantum-cryptography/KAT): d, z and m, SHA3-256 of key and ciphertext, secret.
test.each([
  {
    d: '6dbbc4375136df3b07f7c70e639e223e177e7fd53b161b3f4d57791794f12624',
    z: 'f696484048ec21f96cf50a56d0759c448f3779752f0383d37449690694cf7a68',
    m: '20a7b7e10f70496cc38220b944def699bf14d14e55cf4c90a12c1b33fc80ffff',
    key: '2fd626053c941502e28d796cd655a3cd49df9f15ca02ad626e486f6a4921106b',
    ciphertext: '9857cbb196d2be78a98a6458212656009a18f1bb1350aa907e8dd68bcc36cccf',
    secret: '23f211b84a6ee20c8c29f6e5314c91b414e940513d380add17bd724ab3a13a52',
  },
  {
    d: '649bb13685ac0fb280f9cd0fa60690dc27870b035851d03ae8b81ee2a4c7a00d',
    z: '757249d617ffe21cb99c7af47efcd1909e40dc9a95010c2361f071f60a44ecec',
    m: 'fcbc1ba58b3bca30b77a0484783d9bd91ce0a8a8c7c5d3e497ac7613e8c06abc',
    key: 'cb63b9f85c02d942305a02f06846eca1ca9b862469ceb6ea91ebb2751427e0eb',
    ciphertext: '35dad84bf8ad84a43f857500a6586d320c4a6fa68689905643a5541fcdd463fe',
    secret: 'b9653da7b3f6d22aa25d3cfdfff3771698903f491d52b19d8861553ad212d995',
  },
])('ML-KEM-1024 has its known answers (%#)', ({ d, z, m, key, ciphertext, secret }) => {
  const seed = Buffer.from(d + z, 'hex')
  const privateKey = createPrivateKey({ key: seed, format: 'raw-seed', asymmetricKeyType: 'ml-kem-1024' })
  const spki = spkiOf(privateKey)
  expect(importEncapsulationKey('ML-KEM-1024', spki)).toBeDefined()
  const publicKey = spki.subarray(HEADER_LENGTH)
  expect(toHex(sha3_256(publicKey))).toBe(key)
  const { cipherText, sharedSecret } = ml_kem1024.encapsulate(publicKey, Buffer.from(m, 'hex'))
  expect([toHex(sha3_256(cipherText)), toHex(sharedSecret)]).toEqual([ciphertext, secret])
  expect(toHex(decapsulate(privateKey, cipherText))).toBe(secret)
})

test.each([
  ['ML-DSA-65', ml_dsa65, '8358a1843220194417cadbc2651295cd8fc65125b5a5c1a239a16dc8b57ca199'],
  ['ML-DSA-87', ml_dsa87, '8c3ad714777622b8f21ce31bb35f71394f23bc0fcf3c78ace5d608990f3b061b'],
] as const)('100 keys and signatures of %s give the published digest, and verify', async (parameterSet, noble, expected) => {
  const source = shake128.create({})
  const results = shake128.create({ dkLen: 32 })
  const message = new Uint8Array(0)
  for (let i = 0; i < ROUNDS; i++) {
    const seed = source.xof(32)
    const spki = mlDsaPublicKeyOf(importMlDsaSeed(parameterSet, seed))
    const signature = noble.sign(message, noble.keygen(seed).secretKey, { extraEntropy: false })
    results.update(spki.subarray(HEADER_LENGTH)).update(signature)
    const publicKey = importMlDsaPublicKey(parameterSet, spki)
    expect(publicKey && mlDsaVerify(publicKey, message, signature)).toBe(true)
  }
  expect(toHex(results.digest())).toBe(expected)
})
