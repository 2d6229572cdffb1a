// Hashes a value that may be used once, whatever its parts (v3 §14).
import { sha256 } from '../../crypto/hash.ts'
import { concat, u32, utf8 } from '../../lib/bytes.ts'

/** SHA-256 over kind, identifier and value with their lengths, 32 bytes. */
export function hashUniqueValue(kind: string, identifier: string, value: Uint8Array): Uint8Array {
  const parts = [utf8(kind), utf8(identifier), value]
  return sha256(concat(...parts.flatMap((part) => [u32(part.length), part])))
}
