// Computes the eight digits that both sides show, so that people can compare the exchanged keys (v3 §4.3).
import { sha256 } from '../../crypto/hash.ts'
import { concat, utf8 } from '../../lib/bytes.ts'
import { minimalX, toDecimal } from '../wire/decimal.ts'

/** The fingerprint of an activation, eight decimal digits. Points have 33 or 65 bytes. */
export const activationFingerprint = (devicePublicKey: Uint8Array, activationId: string, serverPublicKey: Uint8Array): string =>
  fingerprintOf(concat(minimalX(devicePublicKey, X_LENGTH), utf8(activationId), minimalX(serverPublicKey, X_LENGTH)))

/** Reduces a message to eight decimal digits. */
export const fingerprintOf = (message: Uint8Array): string => toDecimal(sha256(message), 8)

const X_LENGTH = 32
