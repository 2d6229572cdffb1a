// SHA-256 (FIPS 180-4) and SHA3-256 (FIPS 202).
import { hash } from 'node:crypto'

/** 32 bytes. */
export const sha256 = (message: Uint8Array): Uint8Array => hash('sha256', message, 'buffer')

/** SHA3-256, 32 bytes. */
export const sha3 = (message: Uint8Array): Uint8Array => hash('sha3-256', message, 'buffer')

/** SHA-2 of so many bits: what OpenID Connect shortens to `at_hash` (Core 1.0, 3.1.3.6). */
export const sha2 = (bits: 256 | 384 | 512, message: Uint8Array): Uint8Array => hash(`sha${bits}`, message, 'buffer')
