// KMAC-256 with fixed length (NIST SP 800-185 §4). Node has it from version 26 on; before that it is noble's.
import * as nodeCrypto from 'node:crypto'
import { kmac256 as nobleKmac256 } from '@noble/hashes/sha3-addons.js'
import { utf8 } from '../lib/bytes.ts'

/** A key under one customisation string and output length. What comes before the message has been absorbed already. */
export interface KmacKey {
  /** The MAC of a message. */
  readonly compute: (message: Uint8Array) => Uint8Array
}

/** A key for repeated use: 3 µs a short MAC instead of 12 with an import each time. `key` 4 to 512 bytes, `length` in bytes. */
export const importKmacKey = (key: Uint8Array, custom: string, length = 32): KmacKey => importKey(key, utf8(custom), length)

/** One MAC, `length` bytes (the standard counts bits). */
export const kmac256 = (key: Uint8Array, message: Uint8Array, custom: string, length?: number): Uint8Array =>
  importKmacKey(key, custom, length).compute(message)

type ImportKey = (key: Uint8Array, custom: Uint8Array, length: number) => KmacKey

/** As Node 26 documents it; the types of Node 24 do not know it. */
type CreateMac = (
  algorithm: 'kmac-256',
  key: Uint8Array,
  options: { customization: Uint8Array; outputLength: number },
) => { update: (data: Uint8Array) => { final: () => Uint8Array } }

const importForNode =
  (createMac: CreateMac): ImportKey =>
  (key, customization, outputLength) => {
    // The caller's bytes may change; noble has absorbed them by now, so they are kept here too.
    const own = Uint8Array.from(key)
    return { compute: (message) => createMac('kmac-256', own, { customization, outputLength }).update(message).final() }
  }

const importForNoble: ImportKey = (key, personalization, dkLen) => {
  const absorbed = nobleKmac256.create(key, { personalization, dkLen })
  return { compute: (message) => absorbed.clone().update(message).digest() }
}

const { createMac } = nodeCrypto as { createMac?: CreateMac }
const importKey = createMac ? importForNode(createMac) : importForNoble
