// Makes and reads EC key pairs and points, and computes shared secrets (SEC 1 §2.3, §3.3.1, RFC 5208). CURVES has one row a curve.
import { createECDH, createPrivateKey, createPublicKey, diffieHellman, generateKeyPairSync, KeyObject } from 'node:crypto'
import { asBuffer } from '../lib/bytes.ts'

export type Curve = keyof typeof CURVES

export interface KeyPair {
  readonly privateKey: KeyObject
  /** Uncompressed point: 65 bytes on P-256, 97 on P-384. */
  readonly publicKey: Uint8Array
}

/** Makes a fresh key pair. On P-384 that takes a millisecond, so requests call it in a thread (threads.ts). */
export function generateKeyPair(curve: Curve): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: CURVES[curve].opensslName })
  return { privateKey, publicKey: exportPoint(publicKey) }
}

/**
 * Estimates how many bytes the keys among the members of an object take outside of the heap, for limits of memory. OpenSSL keeps a private key
 * expanded: one of ML-DSA, whose seed has 32 bytes, takes 34 to 43 KiB (docs/decisions/0014-memory.md).
 */
export const bytesOfKeys = (holder: object): number =>
  Object.values(holder).reduce((sum, member) => (member instanceof KeyObject ? sum + bytesOf(member) : sum), 0)

const bytesOf = ({ type, asymmetricKeyType }: KeyObject): number =>
  (type === 'private' ? PRIVATE_KEY_BYTES[String(asymmetricKeyType)] : undefined) ?? OTHER_KEY_BYTES

/** Exports a private key as PKCS#8 in DER. */
export const exportPrivateKey = (key: KeyObject): Uint8Array => key.export({ format: 'der', type: 'pkcs8' })

/** Imports a private key from PKCS#8 in DER. Throws for other bytes, because they come only from pawl's own storage. */
export const importPrivateKey = (pkcs8: Uint8Array): KeyObject =>
  createPrivateKey({ key: asBuffer(pkcs8), format: 'der', type: 'pkcs8' })

/**
 * Imports a private key from its number, big-endian and as long as the field. Undefined unless the number is from 1 to the order of the curve
 * less 1.
 */
export function privateKeyFromScalar(curve: Curve, scalar: Uint8Array): KeyObject | undefined {
  const { opensslName } = CURVES[curve]
  try {
    // This refuses numbers out of range, which the import below would accept.
    createECDH(opensslName).setPrivateKey(scalar)
    return createPrivateKey({ key: asBuffer(scalar), format: 'raw-private', asymmetricKeyType: 'ec', namedCurve: opensslName })
  } catch {
    return undefined
  }
}

/** The public key of a private one, as an uncompressed point: 65 bytes on P-256, 97 on P-384. */
export const publicKeyOf = (privateKey: KeyObject): Uint8Array => exportPoint(createPublicKey(privateKey))

/**
 * Imports a public key from a point of 33 or 65 bytes (P-256), 49 or 97 (P-384) that starts with 02, 03 or 04. Undefined for any other form (hybrid
 * points and infinity included) and for a point that is not on the curve: OpenSSL checks range and curve equation.
 */
export function publicKeyFromPoint(curve: Curve, point: Uint8Array): KeyObject | undefined {
  if (!hasPointForm(curve, point)) return undefined
  const { opensslName } = CURVES[curve]
  try {
    return createPublicKey({ key: asBuffer(point), format: 'raw-public', asymmetricKeyType: 'ec', namedCurve: opensslName })
  } catch {
    return undefined
  }
}

export interface Point {
  readonly key: KeyObject
  /** Uncompressed: 65 bytes on P-256, 97 on P-384. */
  readonly bytes: Uint8Array
}

/** Gives the key of publicKeyFromPoint and its point; undefined where that is. */
export function readPoint(curve: Curve, point: Uint8Array): Point | undefined {
  const key = publicKeyFromPoint(curve, point)
  return key && { key, bytes: exportPoint(key) }
}

/** X coordinate of the shared point, left-padded to the length of the field: 32 bytes on P-256, 48 on P-384. Both keys must be on one curve. */
export const ecdh = (privateKey: KeyObject, publicKey: KeyObject): Uint8Array => diffieHellman({ privateKey, publicKey })

/** True when length and first byte fit a compressed or uncompressed point. The curve equation is not checked. */
export function hasPointForm(curve: Curve, point: Uint8Array): boolean {
  const { coordinateLength } = CURVES[curve]
  if (point.length === coordinateLength + 1) return point[0] === 2 || point[0] === 3
  return point.length === 2 * coordinateLength + 1 && point[0] === 4
}

const exportPoint = (publicKey: KeyObject): Uint8Array => publicKey.export({ format: 'raw-public', type: 'uncompressed' })

// Measured as resident memory of a thousand keys read from DER, with Node 26.10.
const PRIVATE_KEY_BYTES: Readonly<Record<string, number>> = { ec: 6_500, 'ml-dsa-65': 34_500, 'ml-dsa-87': 44_100 }
const OTHER_KEY_BYTES = 500

const CURVES = {
  'P-256': { opensslName: 'prime256v1', coordinateLength: 32 },
  'P-384': { opensslName: 'secp384r1', coordinateLength: 48 },
} as const
