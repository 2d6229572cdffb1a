// HMAC-SHA256 (RFC 2104, RFC 4231).
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

/** A key for repeated use: 3.5 µs an HMAC instead of 5.6 µs with an import each time. */
export const importHmacKey = (key: Uint8Array): KeyObject => createSecretKey(key)

/** 32 bytes. */
export const hmac = (key: KeyObject | Uint8Array, message: Uint8Array): Uint8Array =>
  // createHmac imports raw keys three times slower than createSecretKey does (17 against 5.6 µs).
  createHmac('sha256', key instanceof Uint8Array ? createSecretKey(key) : key)
    .update(message)
    .digest()
