// Byte strings: joining, integers in network order, lists of parts (v3 §2.2, v4 §1.6), and the only comparison of secrets in pawl.
import { timingSafeEqual } from 'node:crypto'

/** UTF-8 bytes of a text; half of a surrogate pair becomes U+FFFD. A TextEncoder takes 0.3 µs for a label, this 0.07. */
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

/** Two hexadecimal digits for each byte, small letters. */
export const toHex = (bytes: Uint8Array): string => asBuffer(bytes).toString('hex')

/**
 * The same bytes in memory of their own, for what is remembered. Node cuts small buffers from pools of 64 KiB, and one that is kept keeps its
 * whole pool: with some 6,000 remembered records a process grew by 900 MB (bench/results/memory.md).
 */
export function ownBytes(bytes: Uint8Array): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length)
  own.set(bytes)
  return own
}

/**
 * A value whose byte strings, also those within plain objects, have memory of their own, for another thread. A message takes along all of
 * the memory that a byte string is cut from, with what others have in it.
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

/** Unsigned big-endian integer, 8 bytes; exact up to 2^53 - 1. Throws a RangeError for what is no integer from 0 on. */
export function u64(value: number): Uint8Array {
  const out = Buffer.allocUnsafe(8)
  out.writeBigUInt64BE(BigInt(value))
  return out
}

/**
 * Compares two byte strings in a time that depends on their lengths only. A differing length is answered at once:
 * lengths of codes, digests and MACs are public.
 */
export const equalConstantTime = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && timingSafeEqual(a, b)

/** Compares two public byte strings, for example sealed records; never for secrets. */
export const equalPublic = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0

/**
 * SIZED: every part with its length as u32 in front, so that no two lists of parts are the same bytes (v3 §2.2, v4 §1.6); an absent part is
 * encoded like an empty one.
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

/** The parts of what concatWithSizes made; they share its memory, and an absent one is empty. Throws a RangeError for bytes that end early. */
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
