// Composes what the audit log shows of the bytes that a code covers (cloud §7).
import { fromUtf8 } from '../../lib/bytes.ts'

/**
 * The body itself; its length alone, where it is encrypted or was decrypted; bytes in its place, where it holds a secret; or a text that says all
 * there is to say.
 */
export type AuditedBody = 'AS_SENT' | 'LENGTH' | Uint8Array | { readonly text: string }

/** The body of an accepted code as text up to 4 KiB, anything else by its length. */
export function describeBody(body: Uint8Array, audited: AuditedBody, isAccepted: boolean): string {
  if (audited === 'LENGTH') return `[encrypted, ${body.length} bytes]`
  if (typeof audited === 'object' && 'text' in audited) return audited.text
  const shown = audited === 'AS_SENT' ? body : audited
  // Anybody may have written what comes with a wrong code: it tells nothing of the user and is not worth its room.
  return isAccepted ? describeText(shown) : `[${shown.length} bytes]`
}

function describeText(body: Uint8Array): string {
  const isCut = body.length > BYTES_MAX
  try {
    // A cut in the middle of a character would not be UTF-8; the three bytes before cannot start a longer one.
    const text = fromUtf8(isCut ? body.subarray(0, lastCharacterBoundary(body, BYTES_MAX)) : body)
    if (text.includes('\0')) return `[binary, ${body.length} bytes]`
    return isCut ? `${text}[cut, ${body.length} bytes]` : text
  } catch {
    return `[binary, ${body.length} bytes]`
  }
}

function lastCharacterBoundary(bytes: Uint8Array, limit: number): number {
  let end = limit
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return end
}

const BYTES_MAX = 4096
