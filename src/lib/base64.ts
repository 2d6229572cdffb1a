// Standard Base64 with padding on output; on input padding may be missing (v3 §1.2). base64url is for JWTs, and for tokens, passwords and file
// names that pawl makes itself.
import { asBuffer } from './bytes.ts'

const STANDARD = /^[A-Za-z0-9+/]*={0,2}$/

/** Standard Base64 with padding. */
export const toBase64 = (bytes: Uint8Array): string => asBuffer(bytes).toString('base64')

/** base64url without padding (RFC 7515 §2). */
export const toBase64Url = (bytes: Uint8Array): string => asBuffer(bytes).toString('base64url')

/**
 * Decodes standard Base64. Characters outside the alphabet, misplaced padding and impossible lengths give undefined;
 * missing padding is accepted. With `length` the decoded value must have exactly that many bytes.
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
