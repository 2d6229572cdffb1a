// KMAC-256 with fixed length (NIST SP 800-185 §4). Node has it from version 26 on (checked with 26.10 against noble); before that only in
// WebCrypto, where it is experimental and asynchronous. Until then it is made of cSHAKE256 of noble.
import * as nodeCrypto from 'node:crypto'
import { cshake256 } from '@noble/hashes/sha3-addons.js'
import { utf8 } from '../lib/bytes.ts'

/** A key under one customisation string and output length. What comes before the message has been absorbed already. */
export interface KmacKey {
  /** The MAC of a message. */
  readonly compute: (message: Uint8Array) => Uint8Array
}

/** Imports a key, 4 to 512 bytes. A key that is kept costs 3 µs a short MAC instead of 6 with an import each time. */
export type ImportKmacKey = (key: Uint8Array) => KmacKey

/** KMAC under a customisation string, with `length` bytes of output (the standard counts bits). */
export const createKmac = (custom: string, length = 32): ImportKmacKey => create(utf8(custom), length)

/** One MAC. */
export const kmac256 = (key: Uint8Array, message: Uint8Array, custom: string, length?: number): Uint8Array =>
  createKmac(custom, length)(key).compute(message)

type Create = (custom: Uint8Array, length: number) => ImportKmacKey

/** As Node 26 documents it; the types of Node 24 do not know it. */
type CreateMac = (
  algorithm: 'kmac-256',
  key: Uint8Array,
  options: { customization: Uint8Array; outputLength: number },
) => { update: (data: Uint8Array) => { final: () => Uint8Array } }

const createForNode =
  (createMac: CreateMac): Create =>
  (customization, outputLength) =>
  (key) => {
    // The caller's bytes may change afterwards.
    const own = Uint8Array.from(key)
    return { compute: (message) => createMac('kmac-256', own, { customization, outputLength }).update(message).final() }
  }

/** KMAC256(K, X, L, S) = cSHAKE256(bytepad(encode_string(K), 136) ‖ X ‖ right_encode(L), L, "KMAC", S) (§4.3). */
const createForNoble: Create = (personalization, length) => {
  const behindCustom = cshake256.create({ NISTfn: 'KMAC', personalization, dkLen: length })
  const end = rightEncode(8 * length)
  return (key) => {
    const behindKey = behindCustom.clone()
    const parts = [leftEncode(RATE), leftEncode(8 * key.length), key]
    const size = parts.reduce((sum, part) => sum + part.length, 0)
    for (const part of [...parts, new Uint8Array((RATE - (size % RATE)) % RATE)]) behindKey.update(part)
    return { compute: (message) => behindKey.clone().update(message).update(end).digest() }
  }
}

/** left_encode and right_encode of a number below 65536 (§2.3.1). */
const leftEncode = (x: number): Uint8Array => (x < 256 ? Uint8Array.of(1, x) : Uint8Array.of(2, x >>> 8, x & 0xff))
const rightEncode = (x: number): Uint8Array => (x < 256 ? Uint8Array.of(x, 1) : Uint8Array.of(x >>> 8, x & 0xff, 2))

const RATE = 136

const { createMac } = nodeCrypto as { createMac?: CreateMac }
const create: Create = createMac ? createForNode(createMac) : createForNoble
