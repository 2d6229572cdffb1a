// Makes malformed keys, for each algorithm of protocol 4.0 (v4 §1.7, §1.8, §2.2).
import { createECDH } from 'node:crypto'
import { b64, join } from '../../phone/v3/crypto.ts'
import { newKemPair, newSigningPair, type PhoneAlgorithm, type PhonePair, sharedSecretRequest } from '../../phone/v4/crypto.ts'

type Named<T> = readonly (readonly [string, T])[]

const with1stByte = (first: number, bytes: Uint8Array) => join(Uint8Array.of(first), bytes.subarray(1))

/** Texts in place of a point of P-384. */
export function badPoints({ ecPublic, ecCompressed }: PhonePair): Named<unknown> {
  const offCurve = Buffer.from(ecPublic)
  offCurve.writeUInt8((offCurve.at(-1) ?? 0) ^ 1, 96)
  const p256 = createECDH('prime256v1')
  const points: Named<Uint8Array> = [
    ['nothing', new Uint8Array(0)],
    ['infinity', Uint8Array.of(0)],
    ['infinity in 97 bytes', new Uint8Array(97)],
    ['hybrid, even', with1stByte(6, ecPublic)],
    ['hybrid, odd', with1stByte(7, ecPublic)],
    ['compressed in name only', with1stByte(2, ecPublic)],
    ['uncompressed in name only', with1stByte(4, ecCompressed)],
    ['not on the curve', offCurve],
    // About half of all X belong to no point. Of these texts, two have an X beyond the field, and an X of zero belongs to no point either.
    ['X beyond the field', join(Uint8Array.of(2), Buffer.alloc(48, 255))],
    ['96 bytes', ecPublic.subarray(1)],
    ['98 bytes', join(ecPublic, Uint8Array.of(0))],
    ['of P-256', p256.generateKeys()],
  ]
  return [
    ...points.map(([name, bytes]) => [name, b64(bytes)] as const),
    ['no Base64', '?'],
    ['base64url', Buffer.alloc(97, 255).toString('base64url')],
    ['a number', 7],
    ['null', null],
    ['an object', {}],
  ]
}

/** Texts in place of a SubjectPublicKeyInfo. `other`: a key of the other parameter set. */
function badSpkis(spki: Uint8Array, other: Uint8Array): Named<unknown> {
  const keys: Named<Uint8Array> = [
    ['nothing', new Uint8Array(0)],
    ['without its header', spki.subarray(22)],
    ['one byte short', spki.subarray(0, -1)],
    ['one byte more', join(spki, Uint8Array.of(0))],
    ['of the other parameter set', other],
    ['under the header of the other parameter set', join(other.subarray(0, 22), spki.subarray(22))],
    ['with another identifier', join(spki.subarray(0, 16), Uint8Array.of((spki[16] ?? 0) ^ 1), spki.subarray(17))],
  ]
  return [...keys.map(([name, bytes]) => [name, b64(bytes)] as const), ['no Base64', '?'], ['a number', 7], ['null', null]]
}

/** Requests for a shared secret, each with one thing wrong with it. */
export function badSharedSecretRequests(algorithm: PhoneAlgorithm): Named<unknown> {
  const pair = newKemPair(algorithm)
  const good = sharedSecretRequest(algorithm, pair)
  const [point = '', spki] = good.encapsulationKeys
  const others = (['EC_P384', 'EC_P384_ML_L3', 'EC_P384_ML_L5'] as const).filter((name) => name !== algorithm)
  const withKeys = (encapsulationKeys: unknown) => ({ ...good, encapsulationKeys })
  return [
    ...[
      'EC_P256',
      'ML_L3',
      'ML_L5',
      algorithm.toLowerCase(),
      `${algorithm} `,
      '',
      7,
      null,
      undefined,
      '__proto__',
      ['EC_P384'],
    ].map((name) => [`algorithm ${JSON.stringify(name)}`, { ...good, algorithm: name }] as const),
    ...others.map((name) => [`the name ${name}`, { ...good, algorithm: name }] as const),
    ['no keys', withKeys([])],
    ['a key too many', withKeys([...good.encapsulationKeys, point])],
    ['keys that are not a list', withKeys({ 0: point, 1: spki, length: good.encapsulationKeys.length })],
    ['keys as text', withKeys(point)],
    ['no member for keys', withKeys(undefined)],
    ['the members of old texts', { algorithm, ecdhe: point, mlkem: spki }],
    ...badPoints(pair).map(([name, value]) => [`point ${name}`, withKeys([value, ...(spki ? [spki] : [])])] as const),
    ...(spki && pair.spki ? badHybrids(algorithm, pair.spki, point, withKeys) : []),
  ]
}

function badHybrids(
  algorithm: PhoneAlgorithm,
  spki: Uint8Array,
  point: string,
  withKeys: (keys: unknown) => unknown,
): Named<unknown> {
  const other = newKemPair(algorithm === 'EC_P384_ML_L3' ? 'EC_P384_ML_L5' : 'EC_P384_ML_L3').spki ?? spki
  // A coefficient is 12 bits; 3329 and above fail the modulus check of FIPS 203 §7.2.
  const beyond = Buffer.from(spki)
  beyond.fill(0xff, 22, 25)
  const justBeyond = Buffer.from(spki)
  justBeyond.writeUInt16LE((justBeyond.readUInt16LE(22) & 0xf000) | 3329, 22)
  const signing = newSigningPair(algorithm).spki ?? spki
  return [
    ['one key', withKeys([point])],
    ['keys in the wrong order', withKeys([b64(spki), point])],
    ['the same key twice', withKeys([point, point])],
    ['ML-KEM with coefficients beyond the modulus', withKeys([point, b64(beyond)])],
    ['ML-KEM with a coefficient that is the modulus', withKeys([point, b64(justBeyond)])],
    ['a key that signs', withKeys([point, b64(signing)])],
    ...badSpkis(spki, other).map(([name, value]) => [`ML-KEM ${name}`, withKeys([point, value])] as const),
  ]
}

/** Public keys of a device, each with one thing wrong with it. */
export function badDeviceKeys(algorithm: PhoneAlgorithm): Named<unknown> {
  const pair = newSigningPair(algorithm)
  const other = newSigningPair(algorithm === 'EC_P384_ML_L3' ? 'EC_P384_ML_L5' : 'EC_P384_ML_L3').spki
  const ecdsa = b64(pair.ecCompressed)
  const mldsa = pair.spki && b64(pair.spki)
  return [
    ...badPoints(pair).map(([name, value]) => [`ecdsa ${name}`, { ecdsa: value, mldsa }] as const),
    ...(pair.spki && other
      ? badSpkis(pair.spki, other).map(([name, value]) => [`mldsa ${name}`, { ecdsa, mldsa: value }] as const)
      : []),
  ]
}
