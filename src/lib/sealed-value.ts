// What can be seen of a sealed value without its key: which master key it is under. domain/secrets/record-keys.ts seals and opens.
import { asBuffer } from './bytes.ts'

export const KEY_ID_BYTES = 4

/** The id of the master key that a value is sealed under, in hex. Behind one byte that names the format. */
export const keyIdOf = (sealed: Uint8Array): string => asBuffer(sealed).toString('hex', 1, 1 + KEY_ID_BYTES)
