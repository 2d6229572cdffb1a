// Parts with their lengths in front, so that no two lists of parts are the same bytes (v3 §2.2, v4 §1.6).
import { concat, u32 } from '../../lib/bytes.ts'

/** SIZED: every part with its length as u32 in front; an absent part is encoded like an empty one. */
export const concatWithSizes = (...parts: readonly (Uint8Array | undefined)[]): Uint8Array =>
  concat(...parts.flatMap((part = EMPTY) => [u32(part.length), part]))

const EMPTY = new Uint8Array(0)
