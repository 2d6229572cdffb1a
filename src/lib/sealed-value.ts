// Reads from a sealed value, without its key, its form and the id of its master key. domain/secrets/record-keys.ts seals and opens.
import { asBuffer } from './bytes.ts'

export const KEY_ID_BYTES = 4

/** The first byte of a value that is sealed only for its table, column and row. */
export const PLAIN_FORM = 1
/** The first byte of a value that is also bound to other columns of its row. */
export const BOUND_FORM = 2

/** The id of the master key that a value is sealed under: the 4 bytes behind the first, in hex. */
export const keyIdOf = (sealed: Uint8Array): string => asBuffer(sealed).toString('hex', 1, 1 + KEY_ID_BYTES)
