// SHA-256 (FIPS 180-4).
import { hash } from 'node:crypto'

/** 32 bytes. */
export const sha256 = (message: Uint8Array): Uint8Array => hash('sha256', message, 'buffer')
