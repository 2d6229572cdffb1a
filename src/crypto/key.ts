// EC key pairs and points (SEC 1 §2.3, RFC 5480, RFC 5208). One table row a curve.
import { createECDH, createPrivateKey, createPublicKey, ECDH, generateKeyPairSync, KeyObject } from 'node:crypto'
import { asBuffer } from '../lib/bytes.ts'

export type Curve = keyof typeof CURVES

export interface KeyPair {
  readonly privateKey: KeyObject
  /** Uncompressed point: 65 bytes on P-256, 97 on P-384. */
  readonly publicKey: Uint8Array
}

/** A fresh key pair. On P-384 it takes a millisecond: requests call it in a thread (threads.ts). */
export function generateKeyPair(curve: Curve): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: CURVES[curve].opensslName })
  return { privateKey, publicKey: exportPoint(publicKey) }
}

/**
 * About how many bytes the keys among the members of an object take beside the heap, for bounds of memory. OpenSSL keeps a private key expanded:
 * one of ML-DSA, whose seed has 32 bytes, takes 34 to 43 KiB (docs/decisions/0014-memory.md).
 */
export const bytesOfKeys = (holder: object): number =>
  Object.values(holder).reduce((sum, member) => (member instanceof KeyObject ? sum + bytesOf(member) : sum), 0)

const bytesOf = ({ type, asymmetricKeyType }: KeyObject): number =>
  (type === 'private' ? PRIVATE_KEY_BYTES[String(asymmetricKeyType)] : undefined) ?? OTHER_KEY_BYTES

/** PKCS#8 DER. */
export const exportPrivateKey = (key: KeyObject): Uint8Array => key.export({ format: 'der', type: 'pkcs8' })

/**
 * The same of a fresh pair, whose public half is known (RFC 5208 §5, RFC 5915 §3): byte for byte what OpenSSL's encoders write, in 9 µs instead
 * of 37.
 */
export const exportKeyPair = (curve: Curve, { privateKey, publicKey }: KeyPair): Uint8Array => {
  const { beforePrivate, beforePublic } = CURVES[curve]
  return Buffer.concat([beforePrivate, privateKey.export({ format: 'raw-private' }), beforePublic, publicKey])
}

/** The key of a PKCS#8 DER text; throws when the bytes are not one, because they come from our own storage only. */
export const importPrivateKey = (pkcs8: Uint8Array): KeyObject =>
  createPrivateKey({ key: asBuffer(pkcs8), format: 'der', type: 'pkcs8' })

/** The key of a bare private number, big-endian and as long as the field; undefined unless it is from 1 to the order of the curve less 1. */
export function privateKeyFromScalar(curve: Curve, scalar: Uint8Array): KeyObject | undefined {
  const { opensslName } = CURVES[curve]
  try {
    // The import below takes numbers out of range; this does not.
    createECDH(opensslName).setPrivateKey(scalar)
    return createPrivateKey({ key: asBuffer(scalar), format: 'raw-private', asymmetricKeyType: 'ec', namedCurve: opensslName })
  } catch {
    return undefined
  }
}

/** The public half of a private key: uncompressed point, 65 bytes on P-256, 97 on P-384. */
export const publicKeyOf = (privateKey: KeyObject): Uint8Array => exportPoint(createPublicKey(privateKey))

/**
 * The uncompressed form of a point of 33 or 65 bytes (P-256), 49 or 97 (P-384) that starts with 02, 03 or 04. Undefined for any other form
 * (hybrid points and infinity included) and for a point that is not on the curve.
 */
export function decodePoint(curve: Curve, point: Uint8Array): Uint8Array | undefined {
  if (!hasPointForm(curve, point)) return undefined
  try {
    // With neither encoding given, OpenSSL checks range and curve equation and answers with a Buffer.
    return ECDH.convertKey(point, CURVES[curve].opensslName, undefined, undefined, 'uncompressed') as Buffer
  } catch {
    return undefined
  }
}

/** The key of a point, checked as in decodePoint; undefined where decodePoint is. */
export function publicKeyFromPoint(curve: Curve, point: Uint8Array): KeyObject | undefined {
  if (!hasPointForm(curve, point)) return undefined
  const isCompressed = point.length === CURVES[curve].coordinateLength + 1
  const prefix = isCompressed ? CURVES[curve].compressedSpki : CURVES[curve].uncompressedSpki
  try {
    return createPublicKey({ key: Buffer.concat([prefix, point]), format: 'der', type: 'spki' })
  } catch {
    return undefined
  }
}

export interface Point {
  readonly key: KeyObject
  /** Uncompressed: 65 bytes on P-256, 97 on P-384. */
  readonly bytes: Uint8Array
}

/** Both what publicKeyFromPoint and what decodePoint give, for one check of the curve equation; undefined where they are. */
export function readPoint(curve: Curve, point: Uint8Array): Point | undefined {
  const key = publicKeyFromPoint(curve, point)
  return key && { key, bytes: exportPoint(key) }
}

/** Length and first byte of a compressed or uncompressed point; says nothing about the curve equation. */
export function hasPointForm(curve: Curve, point: Uint8Array): boolean {
  const { coordinateLength } = CURVES[curve]
  if (point.length === coordinateLength + 1) return point[0] === 2 || point[0] === 3
  return point.length === 2 * coordinateLength + 1 && point[0] === 4
}

/** The uncompressed point: 6 µs, where an export as SPKI of the same bytes takes OpenSSL's encoders 60. */
const exportPoint = (publicKey: KeyObject): Uint8Array => publicKey.export({ format: 'raw-public', type: 'uncompressed' })

/** DER with the short form of lengths: everything here has fewer than 128 bytes, on P-384 too. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([Buffer.of(tag, content.length), content])
}

const BIT_STRING = 0x03
const OBJECT_IDENTIFIER = 0x06
const SEQUENCE = 0x30

// Resident memory of a thousand keys that were read from DER, Node 26.10.
const PRIVATE_KEY_BYTES: Readonly<Record<string, number>> = { ec: 6_500, 'ml-dsa-65': 34_500, 'ml-dsa-87': 44_100 }
const OTHER_KEY_BYTES = 500

const ID_EC_PUBLIC_KEY = Buffer.from('2a8648ce3d0201', 'hex')

/** `beforePrivate` and `beforePublic`: what stands in a PKCS#8 text of the curve in front of the two halves of a pair, in hex. */
function describeCurve(
  opensslName: string,
  coordinateLength: number,
  oid: string,
  [beforePrivate, beforePublic]: readonly [string, string],
) {
  const algorithm = der(SEQUENCE, der(OBJECT_IDENTIFIER, ID_EC_PUBLIC_KEY), der(OBJECT_IDENTIFIER, Buffer.from(oid, 'hex')))
  const spkiPrefix = (pointLength: number): Buffer =>
    der(SEQUENCE, algorithm, der(BIT_STRING, Buffer.alloc(pointLength + 1))).subarray(0, -pointLength)
  return {
    opensslName,
    coordinateLength,
    compressedSpki: spkiPrefix(coordinateLength + 1),
    uncompressedSpki: spkiPrefix(2 * coordinateLength + 1),
    beforePrivate: Buffer.from(beforePrivate, 'hex'),
    beforePublic: Buffer.from(beforePublic, 'hex'),
  }
}

const CURVES = {
  'P-256': describeCurve('prime256v1', 32, '2a8648ce3d030107', [
    '308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420',
    'a144034200',
  ]),
  'P-384': describeCurve('secp384r1', 48, '2b81040022', [
    '3081b6020100301006072a8648ce3d020106052b8104002204819e30819b0201010430',
    'a164036200',
  ]),
} as const
