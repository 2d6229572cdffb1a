// ANSI X9.63 key derivation with SHA-256 (SEC 1 §3.6.1).
import { concat, u32 } from '../lib/bytes.ts'
import { sha256 } from './hash.ts'

/** First `length` bytes of SHA-256(Z ‖ u32(1) ‖ info) ‖ SHA-256(Z ‖ u32(2) ‖ info) ‖ ... */
export function deriveX963(z: Uint8Array, info: Uint8Array, length: number): Uint8Array {
  const blocks: Uint8Array[] = []
  for (let counter = 1; (counter - 1) * HASH_LENGTH < length; counter += 1) blocks.push(sha256(concat(z, u32(counter), info)))
  return concat(...blocks).subarray(0, length)
}

const HASH_LENGTH = 32
