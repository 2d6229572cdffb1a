// Reads what a sealed value shows without its key: its form, and its master key. domain/secrets/record-keys.ts seals and opens.
import { asBuffer } from './bytes.ts'

export const KEY_ID_BYTES = 4

/** The first byte of a value that is sealed for its place alone: table, column and row. */
export const PLAIN_FORM = 1
/** The first byte of a value that is also bound to columns beside it. */
export const BOUND_FORM = 2

/** The id of the master key that a value is sealed under, in hex: the 4 bytes behind that of the form. */
export const keyIdOf = (sealed: Uint8Array): string => asBuffer(sealed).toString('hex', 1, 1 + KEY_ID_BYTES)
