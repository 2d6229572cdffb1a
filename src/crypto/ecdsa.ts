// Signs and verifies with ECDSA (FIPS 186-5 §6): P-256 with SHA-256, P-384 with SHA-384. Certificate requests may use another hash of SHA-2.
import { type KeyObject, sign, verify } from 'node:crypto'

/** `der`: ASN.1, of varying length; `ieee-p1363`: r ‖ s as in JWS (RFC 7518 §3.4), 64 bytes on P-256, 96 on P-384. */
type SignatureEncoding = 'der' | 'ieee-p1363'

/** Hash and encoding of a signature. */
export interface EcdsaForm {
  readonly hash?: 'sha256' | 'sha384' | 'sha512'
  readonly dsaEncoding?: SignatureEncoding
}

/** Signs `message` with a key on P-256: up to 72 bytes in DER, else 64. Not deterministic. It takes 30 µs, so it runs in the event loop. */
export const ecdsaSign = (privateKey: KeyObject, message: Uint8Array, dsaEncoding: SignatureEncoding = 'der'): Uint8Array =>
  sign('sha256', message, { key: privateKey, dsaEncoding })

/**
 * Whether `signature` is a signature of `message`; false for bytes that are no signature at all. On P-256 it takes 70 to 160 µs and runs in the
 * event loop. On P-384 it takes up to a millisecond, so requests call it in a thread (threads.ts).
 */
export const ecdsaVerify = (
  publicKey: KeyObject,
  message: Uint8Array,
  signature: Uint8Array,
  { hash = 'sha256', dsaEncoding = 'der' }: EcdsaForm = {},
): boolean => verify(hash, message, { key: publicKey, dsaEncoding }, signature)

/**
 * Signs `message` with a key on P-384: up to 104 bytes in DER, else 96. It takes a millisecond, so requests call it in a thread (threads.ts).
 */
export const ecdsaSignP384 = (privateKey: KeyObject, message: Uint8Array, dsaEncoding: SignatureEncoding = 'der'): Uint8Array =>
  sign('sha384', message, { key: privateKey, dsaEncoding })
