// Computes the eight digits that both sides show, so that people can compare the exchanged keys (v4 §8.6).
import { sha3 } from '../../crypto/hash.ts'
import { concat, utf8 } from '../../lib/bytes.ts'
import { minimalX, toDecimal } from '../wire/decimal.ts'
import type { Algorithm } from '../protocol.ts'
import type { PublicKeys } from './key-pairs.ts'

/** The fingerprint of an activation, eight decimal digits. */
export const activationFingerprint = (
  algorithm: Algorithm,
  deviceKeys: PublicKeys,
  activationId: string,
  serverKeys: PublicKeys,
): string => fingerprintOf(concat(utf8(algorithm), describeKeys(deviceKeys), utf8(activationId), describeKeys(serverKeys)))

/** Reduces a message to eight decimal digits. */
export const fingerprintOf = (message: Uint8Array): string => toDecimal(sha3(message), 8)

const describeKeys = ({ ecdsa, mldsa }: PublicKeys): Uint8Array => concat(minimalX(ecdsa, X_LENGTH), ...(mldsa ? [mldsa] : []))

const X_LENGTH = 48
