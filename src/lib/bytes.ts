// Joins and compares byte strings, and encodes integers and lists of parts (v3 §2.2, v4 §1.6). No other file of pawl compares secrets.
import { timingSafeEqual } from 'node:crypto'

/** UTF-8 bytes of a text; half of a surrogate pair becomes U+FFFD. This takes 0.07 µs for a label; a TextEncoder takes 0.3. */
export const utf8 = (text: string): Uint8Array => Buffer.from(text)

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text of UTF-8 bytes; throws a TypeError when they are not UTF-8. A byte order mark stays in the text. */
export const fromUtf8 = (bytes: Uint8Array): string => decoder.decode(bytes)

/** The text of UTF-8 bytes; undefined when they are not UTF-8. */
export function parseUtf8(bytes: Uint8Array): string | undefined {
  try {
    return fromUtf8(bytes)
  } catch {
    return undefined
  }
}

/** The parts one after the other, in new memory: a ‖ b ‖ ... */
export const concat = (...parts: readonly Uint8Array[]): Uint8Array => Buffer.concat(parts)

/** The same bytes in the same memory, with the methods of a Buffer. */
export const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** Two lower-case hexadecimal digits for each byte. */
export const toHex = (bytes: Uint8Array): string => asBuffer(bytes).toString('hex')

/**
 * Copies bytes into memory of their own, before a cache keeps them. Node cuts small buffers from pools of 64 KiB, and one kept buffer keeps its whole
 * pool. With some 6,000 cached records a process grew by 900 MB (bench/results/memory.md).
 */
export function ownBytes(bytes: Uint8Array): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length)
  own.set(bytes)
  return own
}

/**
 * Copies all byte strings in a value, also those within plain objects, into memory of their own, before the value is posted to another thread. The
 * message would otherwise copy the whole memory that a byte string is cut from, with the bytes of others in it.
 */
export function ownAllBytes(value: unknown): unknown {
  if (value instanceof Uint8Array) return ownBytes(value)
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, ownAllBytes(member)]))
}

/** Unsigned big-endian integer, 4 bytes. Throws a RangeError beyond 2^32 - 1. */
export function u32(value: number): Uint8Array {
  const out = Buffer.allocUnsafe(4)
  out.writeUInt32BE(value)
  return out
}

/** Unsigned big-endian integer, 8 bytes; exact up to 2^53 - 1. Throws a RangeError for a fraction or a negative number. */
export function u64(value: number): Uint8Array {
  const out = Buffer.allocUnsafe(8)
  out.writeBigUInt64BE(BigInt(value))
  return out
}

/**
 * Compares two byte strings in a time that depends only on their lengths. Different lengths are answered at once, because lengths of codes, digests
 * and MACs are public.
 */
export const equalConstantTime = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && timingSafeEqual(a, b)

/** Compares two public byte strings, for example sealed records; never for secrets. */
export const equalPublic = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0

/**
 * SIZED: each part behind its length as u32, so that no two lists of parts give the same bytes (v3 §2.2, v4 §1.6). An absent part is encoded like an
 * empty one.
 */
export function concatWithSizes(...parts: readonly (Uint8Array | undefined)[]): Uint8Array {
  const out = Buffer.allocUnsafe(parts.reduce((sum, part) => sum + SIZE_LENGTH + (part?.length ?? 0), 0))
  let at = 0
  for (const part of parts) {
    at = out.writeUInt32BE(part?.length ?? 0, at)
    if (part === undefined) continue
    out.set(part, at)
    at += part.length
  }
  return out
}

/**
 * Splits bytes that concatWithSizes made. The parts share the memory of `bytes`; an absent part comes back empty. Throws a RangeError for bytes that
 * end early.
 */
export function splitBySizes(bytes: Buffer): Buffer[] {
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const start = at + SIZE_LENGTH
    at = start + bytes.readUInt32BE(at)
    if (at > bytes.length) throw new RangeError('a part ends behind the last byte')
    parts.push(bytes.subarray(start, at))
  }
  return parts
}

const SIZE_LENGTH = 4
