// Tests device keys against other implementations: signatures of the phone and of jose are verified here, and written keys are read by them.
import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { CompactSign, GeneralSign, generalVerify, importJWK, importSPKI } from 'jose'
import { describe, expect, test } from 'vitest'
import {
  certificateRequest,
  type DeviceSigner,
  generalJws,
  v3DeviceSigners,
  v4DeviceSigners,
} from '../../phone/device-signature.ts'
import { newKeyPair } from '../../phone/v3/crypto.ts'
import { newSigningPair, PHONE_ALGORITHMS } from '../../phone/v4/crypto.ts'
import { parseCertificateRequestPem } from '../lib/pem.ts'
import {
  createDecoyDeviceKeys,
  describeDeviceKey,
  importDeviceKeys,
  readCertificateRequest,
  verifyByDeviceKey,
} from './device-key.ts'
import type { Algorithm, DeviceKey } from './protocol.ts'
import { parseSignedJws } from './wire/signed-jws.ts'

interface Device {
  readonly algorithm: Algorithm
  readonly signers: readonly DeviceSigner[]
  readonly keys: readonly DeviceKey[]
}

/** A phone's keys, and the same keys as the server stores and reads them. */
function newDevice(algorithm: Algorithm, isCompressed = false): Device {
  if (algorithm === 'EC_P256') {
    const pair = newKeyPair()
    const keys = importDeviceKeys(algorithm, isCompressed ? pair.compressed : pair.uncompressed)
    return { algorithm, signers: v3DeviceSigners(pair), keys }
  }
  const pair = newSigningPair(algorithm)
  const stored = Buffer.concat([pair.ecPublic, pair.spki ?? new Uint8Array(0)])
  return { algorithm, signers: v4DeviceSigners(algorithm, pair), keys: importDeviceKeys(algorithm, stored) }
}

const ALGORITHMS = ['EC_P256', ...PHONE_ALGORITHMS] as const
const JOSE = { dsaEncoding: 'ieee-p1363' } as const

test.each([
  ['EC_P256', ['ES256']],
  ['EC_P384', ['ES384']],
  ['EC_P384_ML_L3', ['ES384', 'ML-DSA-65']],
  ['EC_P384_ML_L5', ['ES384', 'ML-DSA-87']],
] as const)('an activation of %s has keys for %j', (algorithm, names) => {
  expect(newDevice(algorithm).keys.map((key) => key.algorithm)).toEqual(names)
})

test.each<[Algorithm, number]>([
  ['EC_P256', 64],
  ['EC_P256', 97],
  ['EC_P384', 65],
  ['EC_P384', 97 + 1974],
  ['EC_P384_ML_L3', 97],
  ['EC_P384_ML_L3', 97 + 2614],
])('keys of %s in %i bytes are not taken for keys', (algorithm, length) => {
  expect(importDeviceKeys(algorithm, new Uint8Array(length).fill(4))).toEqual([])
})

test('keys of a hybrid algorithm are not read as the one key of a smaller one', () => {
  const { ecPublic, spki = new Uint8Array(0) } = newSigningPair('EC_P384_ML_L3')
  expect(importDeviceKeys('EC_P384', Buffer.concat([ecPublic, spki]))).toEqual([])
})

describe.each(ALGORITHMS)('keys of %s', (algorithm) => {
  test('verify what the phone signs, of any length, and nothing else', async () => {
    const { keys, signers } = newDevice(algorithm)
    const others = newDevice(algorithm).keys
    for (const [i, signer] of signers.entries()) {
      const [key, other] = [keys[i] as DeviceKey, others[i] as DeviceKey]
      for (const length of [0, 1, 1000]) {
        const message = randomBytes(length)
        const [raw, der] = [signer.sign(message), signer.signDer(message)]
        expect(await verifyByDeviceKey(key, message, raw, JOSE)).toBe(true)
        expect(await verifyByDeviceKey(key, message, der)).toBe(true)
        expect(await verifyByDeviceKey(other, message, der)).toBe(false)
        expect(await verifyByDeviceKey(key, Buffer.concat([message, Buffer.of(0)]), der)).toBe(false)
        const isEcdsa = signer.alg.startsWith('ES')
        if (isEcdsa) expect(await verifyByDeviceKey(key, message, raw)).toBe(false)
        if (isEcdsa) expect(await verifyByDeviceKey(key, message, der, JOSE)).toBe(false)
        for (const bytes of spoiled(der)) expect(await verifyByDeviceKey(key, message, bytes), `${bytes.length}`).toBe(false)
        for (const bytes of spoiled(raw))
          expect(await verifyByDeviceKey(key, message, bytes, JOSE), `${bytes.length}`).toBe(false)
      }
    }
  })

  test('verify what jose signs for the same kind of key', async () => {
    const payload = randomBytes(100)
    const pairs = newDevice(algorithm).keys.map((key) => ({ alg: key.algorithm, ...generate(key.algorithm) }))
    const writer = new GeneralSign(payload)
    for (const { alg, privateKey } of pairs) writer.addSignature(privateKey).setProtectedHeader({ alg, typ: 'application/x' })
    const parsed = parseSignedJws(JSON.stringify(await writer.sign()))
    expect(parsed?.payload).toEqual(payload)
    expect(parsed?.signatures.map((one) => one.algorithm)).toEqual(pairs.map(({ alg }) => alg))
    for (const { alg, publicKey, privateKey } of pairs) {
      const key = { algorithm: alg, key: publicKey }
      const one = parsed?.signatures.find((signature) => signature.algorithm === alg)
      expect(one && (await verifyByDeviceKey(key, one.covered, one.signature, JOSE))).toBe(true)
      const [compact] =
        parseSignedJws(await new CompactSign(payload).setProtectedHeader({ alg }).sign(privateKey))?.signatures ?? []
      expect(compact && (await verifyByDeviceKey(key, compact.covered, compact.signature, JOSE))).toBe(true)
    }
  })

  test('as PEM and as JWK are keys for jose, which then verifies what the phone signs', async () => {
    const { keys, signers } = newDevice(algorithm)
    const jws = JSON.parse(generalJws(signers, Buffer.from('hello'))) as Parameters<typeof generalVerify>[0]
    for (const [i, key] of keys.entries()) {
      const { pem, jwk, algorithm: alg } = describeDeviceKey(key)
      expect(createPublicKey(pem).export({ format: 'der', type: 'spki' })).toEqual(Buffer.from(signers[i]?.spki ?? []))
      expect(jwk).toMatchObject({ alg, use: 'sig' })
      for (const imported of [await importSPKI(pem, alg), await importJWK(jwk, alg)]) {
        const verified = await generalVerify(jws, imported, { algorithms: [alg] })
        expect(Buffer.from(verified.payload).toString()).toBe('hello')
        expect(verified.protectedHeader?.alg).toBe(alg)
      }
    }
  })

  test('are found in the certificate request that the phone made with them, and verify it', async () => {
    const { keys, signers } = newDevice(algorithm)
    for (const [i, signer] of signers.entries()) {
      const request = readRequest(certificateRequest(signer))
      expect(keys.map((key) => request.fits(key))).toEqual(keys.map((_, j) => i === j))
      expect(request.looksLike).toBe(signer.alg)
      const key = keys[i] as DeviceKey
      expect(await verifyByDeviceKey(key, request.covered, request.signature, request.form)).toBe(true)
      expect(newDevice(algorithm).keys.some((other) => request.fits(other))).toBe(false)
    }
  })
})

test('a compressed point of a phone of 3.x is written out in full', async () => {
  const { keys, signers } = newDevice('EC_P256', true)
  const [key, signer] = [keys[0] as DeviceKey, signers[0] as DeviceSigner]
  expect(createPublicKey(describeDeviceKey(key).pem).export({ format: 'der', type: 'spki' })).toEqual(Buffer.from(signer.spki))
  expect(readRequest(certificateRequest(signer)).fits(key)).toBe(true)
  expect(await verifyByDeviceKey(key, Buffer.from('x'), signer.signDer(Buffer.from('x')))).toBe(true)
})

test('ECDSA in a certificate request has the hash that the request says', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'secp384r1' })
  const spki = publicKey.export({ format: 'der', type: 'spki' })
  for (const [alg, hash] of [
    ['ES256', 'sha256'],
    ['ES384', 'sha384'],
  ] as const) {
    const signDer: DeviceSigner['signDer'] = (message) => sign(hash, message, privateKey)
    const request = readRequest(certificateRequest({ alg, spki, sign: signDer, signDer }))
    expect(request.looksLike).toBe('ES384')
    const key = { algorithm: 'ES384', key: publicKey } as const
    expect(request.fits(key)).toBe(true)
    expect(await verifyByDeviceKey(key, request.covered, request.signature, request.form)).toBe(true)
    expect(await verifyByDeviceKey(key, request.covered, request.signature, { hash: 'sha512' })).toBe(false)
  }
})

test('a decoy of each algorithm verifies nothing', async () => {
  const decoys = createDecoyDeviceKeys()
  expect(Object.entries(decoys).every(([name, key]) => key.algorithm === name)).toBe(true)
  for (const { signers } of ALGORITHMS.map((algorithm) => newDevice(algorithm))) {
    for (const signer of signers) {
      const message = randomBytes(10)
      expect(await verifyByDeviceKey(decoys[signer.alg], message, signer.sign(message), JOSE)).toBe(false)
    }
  }
})

/** Bytes that are no right signature: cut, longer, with another bit, empty. */
const spoiled = (signature: Uint8Array): readonly Uint8Array[] => [
  new Uint8Array(0),
  signature.subarray(1),
  signature.subarray(0, -1),
  Buffer.concat([signature, Buffer.of(0)]),
  signature.map((byte, i) => (i === signature.length - 1 ? byte ^ 1 : byte)),
  signature.map((byte, i) => (i === 8 ? byte ^ 0x10 : byte)),
  new Uint8Array(signature.length),
]

function generate(algorithm: DeviceKey['algorithm']): { privateKey: KeyObject; publicKey: KeyObject } {
  switch (algorithm) {
    case 'ES256':
      return generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
    case 'ES384':
      return generateKeyPairSync('ec', { namedCurve: 'secp384r1' })
    case 'ML-DSA-65':
      return generateKeyPairSync('ml-dsa-65')
    default:
      return generateKeyPairSync('ml-dsa-87')
  }
}

function readRequest(pem: string) {
  const request = readCertificateRequest(parseCertificateRequestPem(pem) ?? new Uint8Array(0))
  if (request === undefined) throw new Error('not a request')
  return request
}
