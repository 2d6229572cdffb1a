// Elliptic curve Diffie-Hellman (SEC 1 §3.3.1).
import { diffieHellman, type KeyObject } from 'node:crypto'

/** X coordinate of the shared point, left-padded to the length of the field: 32 bytes on P-256, 48 on P-384. Both keys on one curve. */
export const ecdh = (privateKey: KeyObject, publicKey: KeyObject): Uint8Array => diffieHellman({ privateKey, publicKey })
