// ECDSA (FIPS 186-5 §6): P-256 with SHA-256, P-384 with SHA-384; certificate requests may have another hash of SHA-2.
import { type KeyObject, sign, verify } from 'node:crypto'

/** `der`: ASN.1, of varying length; `ieee-p1363`: r ‖ s as in JWS (RFC 7518 §3.4), 64 bytes on P-256, 96 on P-384. */
type SignatureEncoding = 'der' | 'ieee-p1363'

/** What a signature is made with. */
export interface EcdsaForm {
  readonly hash?: 'sha256' | 'sha384' | 'sha512'
  readonly dsaEncoding?: SignatureEncoding
}

/** Signature of `message` with a key on P-256, DER up to 72 bytes, or 64. Not deterministic. 30 µs, so it runs where it is called. */
export const ecdsaSign = (privateKey: KeyObject, message: Uint8Array, dsaEncoding: SignatureEncoding = 'der'): Uint8Array =>
  sign('sha256', message, { key: privateKey, dsaEncoding })

/**
 * Whether `signature` is one of `message`; false for bytes that are not a signature at all. On P-256 it takes 70
 * to 160 µs and runs where it is called, on P-384 up to a millisecond: requests call that in a thread (threads.ts).
 */
export const ecdsaVerify = (
  publicKey: KeyObject,
  message: Uint8Array,
  signature: Uint8Array,
  { hash = 'sha256', dsaEncoding = 'der' }: EcdsaForm = {},
): boolean => verify(hash, message, { key: publicKey, dsaEncoding }, signature)

/** Signature of `message` with a key on P-384, DER up to 104 bytes, or 96. Takes a millisecond: requests call it in a thread (threads.ts). */
export const ecdsaSignP384 = (privateKey: KeyObject, message: Uint8Array, dsaEncoding: SignatureEncoding = 'der'): Uint8Array =>
  sign('sha384', message, { key: privateKey, dsaEncoding })
