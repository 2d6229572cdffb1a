// Elliptic curve Diffie-Hellman (SEC 1 §3.3.1).
import { diffieHellman, type KeyObject } from 'node:crypto'
import { inPool } from './pool.ts'

/** X coordinate of the shared point, left-padded to the length of the field: 32 bytes on P-256. Both keys on one curve. */
export const ecdh = (privateKey: KeyObject, publicKey: KeyObject): Uint8Array => diffieHellman({ privateKey, publicKey })

/** The same in a thread of the pool, for P-384: 48 bytes, half a millisecond. */
export const ecdhInPool = (privateKey: KeyObject, publicKey: KeyObject): Promise<Uint8Array> =>
  inPool((done) => diffieHellman({ privateKey, publicKey }, done))
