// scrypt (RFC 7914) for secrets that people choose or type.
import { scrypt } from 'node:crypto'

/**
 * The scrypt hash of a password, 32 bytes. It takes about 80 ms of one core and 32 MiB, in a thread of libuv's pool. `salt` has 16 random
 * bytes.
 */
export const hashPassword = (password: Uint8Array, salt: Uint8Array): Promise<Uint8Array> =>
  new Promise((resolve, reject) => {
    scrypt(password, salt, HASH_LENGTH, PARAMETERS, (error, hash) => (error ? reject(error) : resolve(hash)))
  })

const HASH_LENGTH = 32

// N·r·128 = 32 MiB is exactly Node's default limit and OpenSSL needs a little more, so the limit is doubled.
const PARAMETERS = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 2 ** 20 }
