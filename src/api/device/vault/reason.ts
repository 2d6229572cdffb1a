// Checks and shows the reason for which an app opens its vault. Audit log and log have the reason. pawl never interprets it (v3 §12, v4 §9.10).
import { Type } from '@sinclair/typebox'
import { OptionalOrNull } from '../../../http/types.ts'

/** Printable text of up to 255 UTF-16 code units; it may be absent. */
export const VaultReason = OptionalOrNull(
  Type.String({
    pattern: '^[^\\u0000-\\u001F\\u007F-\\u009F]{0,255}$',
    description: 'must be at most 255 characters without control characters',
    examples: ['ADD_BIOMETRY'],
  }),
)

/** The reason for display. Characters that would change the display of the text around it are escaped as in JSON. */
export const showReason = (reason: string | null | undefined): string =>
  (reason ?? 'NOT_SPECIFIED').replace(REORDERING, (character) => `\\u${character.charCodeAt(0).toString(16)}`)

// Line separators and controls of text direction. JSON does not escape them.
const REORDERING = /[\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/g
