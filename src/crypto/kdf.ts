// Derives keys: ANSI X9.63 with SHA-256 (SEC 1 §3.6.1), HKDF with SHA-384 (RFC 5869), and scrypt (RFC 7914) for passwords.
import { scrypt } from 'node:crypto'
import { concat, u32 } from '../lib/bytes.ts'
import { hmacSha384, sha256 } from './hash.ts'

/** ANSI X9.63: the first `length` bytes of SHA-256(Z ‖ u32(1) ‖ info) ‖ SHA-256(Z ‖ u32(2) ‖ info) ‖ ... */
export function deriveX963(z: Uint8Array, info: Uint8Array, length: number): Uint8Array {
  const blocks: Uint8Array[] = []
  for (let counter = 1; (counter - 1) * HASH_LENGTH < length; counter += 1) blocks.push(sha256(concat(z, u32(counter), info)))
  return concat(...blocks).subarray(0, length)
}

/** HKDF-Extract with SHA-384 (RFC 5869 §2.2), 48 bytes. An empty salt stands for 48 zero bytes. */
export const hkdfExtract = (salt: Uint8Array, ikm: Uint8Array): Uint8Array => hmacSha384(salt, ikm)

/** HKDF-Expand with SHA-384 (RFC 5869 §2.3): the first `length` bytes of T(1) ‖ T(2) ‖ ... */
export function hkdfExpand(prk: Uint8Array, info: Uint8Array, length: number): Uint8Array {
  const blocks: Uint8Array[] = []
  let previous = new Uint8Array(0)
  for (let counter = 1; (counter - 1) * HKDF_HASH_LENGTH < length; counter += 1) {
    previous = Uint8Array.from(hmacSha384(prk, concat(previous, info, Uint8Array.of(counter))))
    blocks.push(previous)
  }
  return concat(...blocks).subarray(0, length)
}

const HASH_LENGTH = 32
const HKDF_HASH_LENGTH = 48

/**
 * The scrypt hash of a password, 32 bytes. It takes about 80 ms of one core and 32 MiB, in a thread of libuv's pool. `salt` has 16 random
 * bytes.
 */
export const hashPassword = (password: Uint8Array, salt: Uint8Array): Promise<Uint8Array> =>
  new Promise((resolve, reject) => {
    scrypt(password, salt, PASSWORD_HASH_LENGTH, PARAMETERS, (error, hash) => (error ? reject(error) : resolve(hash)))
  })

const PASSWORD_HASH_LENGTH = 32

// N·r·128 = 32 MiB is exactly Node's default limit and OpenSSL needs a little more, so the limit is doubled.
const PARAMETERS = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 2 ** 20 }
