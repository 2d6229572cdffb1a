// ECDSA with SHA-256 (FIPS 186-5 §6), signatures in ASN.1 DER.
import { type KeyObject, sign, verify } from 'node:crypto'

/** Signature of `message`, DER, up to 72 bytes on P-256. Not deterministic. */
export const ecdsaSign = (privateKey: KeyObject, message: Uint8Array): Uint8Array => sign('sha256', message, privateKey)

/** Whether `signature` (DER) is one of `message`; false for bytes that are no signature at all. */
export const ecdsaVerify = (publicKey: KeyObject, message: Uint8Array, signature: Uint8Array): boolean =>
  verify('sha256', message, publicKey, signature)
