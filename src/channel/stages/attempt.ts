// Describes one code of a request: its purpose, the activations that may use it, and the text by which the audit log shows the covered bytes (cloud
// §7).
import { fromUtf8 } from '../../lib/bytes.ts'
import type { ErrorCode } from '../../lib/errors.ts'
import type { AuthorizationHeader } from '../../protocol/protocol.ts'
import type { UniqueValue } from '../../storage/activation/unique-values.ts'
import type { VersionRow } from '../../storage/application/version.ts'
import type { DoorVerdict } from '../../storage/request/door-verdicts.ts'
import type { RequestParties } from '../../storage/request/lookup.ts'
import type { CodeVerdict } from './decision.ts'
import type { Opened } from './open.ts'

/** One code of a request, with all values that are needed to judge and store it. */
export interface CodeAttempt {
  readonly header: AuthorizationHeader
  readonly resourceId: string
  /** The byte strings that the code may cover: raw body, decrypted body, or the readings of the query. All of them together are one attempt. */
  readonly bodies: readonly Uint8Array[]
  readonly audited: AuditedBody
  /** The values that an acceptance uses up, and the error code for a right code whose value another request has used meanwhile. */
  readonly use?:
    | { readonly value: UniqueValue; readonly second?: UniqueValue | undefined; readonly refusal: ErrorCode }
    | undefined
  /** The id of the operation to decide in the transaction of the code. The statement that stores the code locks the operation. */
  readonly decides?: string | undefined
  /** ACTIVE if absent. */
  readonly goodFor?: CodePolicy | undefined
  /** Set at a door, when a bank asks about a request that a phone sent to the bank. */
  readonly atDoor?: AtDoor | undefined
}

/** The values of a call to a door. */
export interface AtDoor {
  /** The credential's application. Version and activation of another application count as unknown. */
  readonly applicationId: string
  /** Reads version and activation, together with an earlier answer to the same `Idempotency-Key`. */
  readonly find: () => Promise<RequestParties>
  /**
   * The verdict to store together with an outcome that moves the counter or counts a failure; undefined for a call without `Idempotency-Key`.
   */
  readonly keep: (judged: JudgedAtDoor) => DoorVerdict | undefined
  /** User name of the credential, for the audit row. */
  readonly verifiedBy: string
  /**
   * Whether the bank cannot name the phone's address. All phones then are one source, and of codes with two factors only guesses use up its
   * budget.
   */
  readonly isSourceUnknown?: boolean
}

/** The judgement of a code, for the verdict of a door. */
export interface JudgedAtDoor {
  readonly verdict: CodeVerdict
  /** The application version under which the code was judged; undefined if it is unknown. */
  readonly version: VersionRow | undefined
}

/**
 * The activations that may use a code. ACTIVE: only ACTIVE ones. CONFIRMING: also one that waits for commit and confirmation (v4 §9.6). UPGRADING:
 * one with the keys of its pending upgrade; a wrong code then changes nothing (v4 §10.3).
 */
export type CodePolicy = 'ACTIVE' | 'CONFIRMING' | 'UPGRADING'

/** The values that an opened envelope uses up together with the code of its request. */
export function useOf({ uniqueValues: [value, second] }: Pick<Opened, 'uniqueValues'>, refusal: ErrorCode): CodeAttempt['use'] {
  return value && { value, second, refusal }
}

/**
 * The way in which the audit log shows a body: as sent; only its length, because it is encrypted or was decrypted; other bytes in its place, because
 * it holds a secret; or a complete text.
 */
type AuditedBody = 'AS_SENT' | 'LENGTH' | Uint8Array | { readonly text: string }

/** Shows the body of an accepted code as text up to 4 KiB, and any other body by its length. */
export function describeBody(body: Uint8Array, audited: AuditedBody, isAccepted: boolean): string {
  if (audited === 'LENGTH') return `[encrypted, ${body.length} bytes]`
  if (typeof audited === 'object' && 'text' in audited) return audited.text
  const shown = audited === 'AS_SENT' ? body : audited
  // Anybody may have written the body of a wrong code. It shows nothing about the user and is not worth its space.
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
