// SHA-256 (FIPS 180-4) and SHA3-256 (FIPS 202).
import { hash } from 'node:crypto'

/** 32 bytes. */
export const sha256 = (message: Uint8Array): Uint8Array => hash('sha256', message, 'buffer')

/** SHA3-256, 32 bytes. */
export const sha3 = (message: Uint8Array): Uint8Array => hash('sha3-256', message, 'buffer')
