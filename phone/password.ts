// Hides the key of knowledge under the user's password (v3 §3.2, v4 §3.1). A wrong password gives a wrong key. Only the server can tell it from
// the right key, and the server counts wrong codes.
import { scryptSync } from 'node:crypto'
import { random } from './v3/crypto.ts'

/** A key that only its password restores. */
export interface HiddenKey {
  readonly salt: Uint8Array
  readonly hidden: Uint8Array
}

/** Hides a key of 16 or 32 bytes. */
export function hideKey(key: Uint8Array, password: string): HiddenKey {
  const salt = random(16)
  return { salt, hidden: mask(key, password, salt) }
}

/** The key; another key of the same length when the password is wrong. */
export const revealKey = ({ salt, hidden }: HiddenKey, password: string): Uint8Array => mask(hidden, password, salt)

function mask(bytes: Uint8Array, password: string, salt: Uint8Array): Uint8Array {
  const pad = scryptSync(password.normalize('NFKC'), salt, bytes.length, { N: 16_384, r: 8, p: 1 })
  return bytes.map((byte, index) => byte ^ (pad[index] ?? 0))
}
