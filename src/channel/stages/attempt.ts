// One code of a request: what it stands for, what it may be good for, and what the audit log shows of the bytes that it covers (cloud §7).
import { fromUtf8 } from '../../lib/bytes.ts'
import type { ErrorCode } from '../../lib/errors.ts'
import type { AuthorizationHeader } from '../../protocol/protocol.ts'
import type { UniqueValue } from '../../storage/activation/unique-values.ts'
import type { VersionRow } from '../../storage/application/version.ts'
import type { DoorVerdict } from '../../storage/request/door-verdicts.ts'
import type { RequestParties } from '../../storage/request/parties.ts'
import type { CodeVerdict } from './decision.ts'
import type { Opened } from './open.ts'
import type { Received } from './receive.ts'

/** One code of a request, and what it stands for. */
export interface CodeAttempt {
  readonly header: AuthorizationHeader
  readonly resourceId: string
  /** What the code may cover: raw body, decrypted body, or the readings of the query. However many, they are one attempt. */
  readonly bodies: readonly Uint8Array[]
  readonly audited: AuditedBody
  /** What is used up with the acceptance, and how a request is refused whose right code comes with what was used meanwhile. */
  readonly use?:
    | { readonly value: UniqueValue; readonly second?: UniqueValue | undefined; readonly refusal: ErrorCode }
    | undefined
  /** Id of an operation that is decided in the transaction of the code: the trip that stores the code locks it. */
  readonly decides?: string | undefined
  /** ACTIVE when absent. */
  readonly goodFor?: CodePolicy | undefined
  /** Set where a bank asks for a phone that sent the request to it. */
  readonly atDoor?: AtDoor | undefined
}

/** What is different where a bank asks. */
export interface AtDoor {
  /** Of the credential: version and activation of another application are unknown ones. */
  readonly applicationId: string
  /** Reads the parties, with what was answered before to the key of the request. */
  readonly find: () => Promise<RequestParties>
  /** What is kept beside an outcome that moves or counts; undefined where the request cannot come again. */
  readonly keep: (judged: JudgedAtDoor) => DoorVerdict | undefined
  /** User name of the credential, for the audit row. */
  readonly verifiedBy: string
  /** The bank cannot say where the phone is: all phones have one source, and guesses alone take a place of the budget of codes that count. */
  readonly isSourceUnknown?: boolean
}

/** What a door tells of a code. */
export interface JudgedAtDoor {
  readonly verdict: CodeVerdict
  /** That the code was judged under; undefined where it is unknown. */
  readonly version: VersionRow | undefined
}

/**
 * Which activations a code is good for. ACTIVE: those alone. CONFIRMING: one that waits for commit and confirmation too (v4 §9.6). UPGRADING:
 * one as its pending upgrade makes it; a wrong code changes nothing then (v4 §10.3).
 */
export type CodePolicy = 'ACTIVE' | 'CONFIRMING' | 'UPGRADING'

/** What an opened envelope uses up with the code of its request. */
export function useOf({ uniqueValues: [value, second] }: Pick<Opened, 'uniqueValues'>, refusal: ErrorCode): CodeAttempt['use'] {
  return value && { value, second, refusal }
}

/** What a code may cover, in the order to try: the body, or the readings of the query (v3 §10.4, v4 §7.1). */
export const coveredBodies = ({ protocol, request }: Received): readonly Uint8Array[] => protocol.coveredBodies(request)

/**
 * The body itself; its length alone, where it is encrypted or was decrypted; bytes in its place, where it holds a secret; or a text that says all
 * there is to say.
 */
type AuditedBody = 'AS_SENT' | 'LENGTH' | Uint8Array | { readonly text: string }

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
