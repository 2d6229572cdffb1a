// Encodes and decodes Base64. Output has padding, and input may lack it (v3 §1.2). base64url is for JWTs, and for tokens, passwords and file names
// that pawl makes.
import { asBuffer } from './bytes.ts'

const STANDARD = /^[A-Za-z0-9+/]*={0,2}$/

/** Standard Base64 with padding. */
export const toBase64 = (bytes: Uint8Array): string => asBuffer(bytes).toString('base64')

/** base64url without padding (RFC 7515 §2). */
export const toBase64Url = (bytes: Uint8Array): string => asBuffer(bytes).toString('base64url')

/**
 * Decodes standard Base64; missing padding is accepted. Returns undefined for characters outside the alphabet, misplaced padding and impossible
 * lengths, and if the decoded value does not have exactly `length` bytes.
 */
export function parseBase64(text: string, length?: number): Uint8Array | undefined {
  if (!STANDARD.test(text)) return undefined
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  const digits = text.length - padding
  if (digits % 4 === 1) return undefined
  if (padding > 0 && text.length % 4 !== 0) return undefined
  const bytes = Buffer.from(text, 'base64')
  return length === undefined || bytes.length === length ? bytes : undefined
}

/** Decodes base64url strictly: only the one text that encodes the bytes is accepted (RFC 7515 §2). */
export function parseBase64Url(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return toBase64Url(bytes) === text ? bytes : undefined
}
