// Makes the hashes that pawl stores instead of secrets and data of calls to doors. Of an `Idempotency-Key` pawl stores two keyed hashes (cloud
// §12.4), of the bytes under a code their length and hash, of the right answer to an offline challenge a hash (cloud §16.2).
import type { KeyObject } from 'node:crypto'
import { toHex } from '../../lib/bytes.ts'
import { hmac, sha256 } from '../../crypto/hash.ts'
import { encodeTexts } from '../secrets/row-mac.ts'

/** A call with its caller and its Idempotency-Key. `request` has the members of the request, null for an absent one. */
interface DoorQuestion {
  readonly username: string
  readonly applicationId: string
  readonly idempotencyKey: string
  readonly request: readonly (string | null)[]
}

/** The hashes of an Idempotency-Key and of its request, and the MAC of an answer. All are HMAC-SHA-256, 32 bytes. */
export interface DoorKey {
  /** Covers the application, the credential and the Idempotency-Key. */
  readonly keyHash: Uint8Array
  /** Covers the application, the credential, the Idempotency-Key and the request. */
  readonly questionHash: Uint8Array
  /**
   * Makes the MAC of an answer. It covers application, credential, Idempotency-Key, request and answer, so that a change in the database is
   * noticed.
   */
  readonly authenticate: (answer: DoorAnswerToKeep) => Uint8Array
}

interface DoorAnswerToKeep {
  readonly activationId: string
  readonly userId: string
  /** JSON. */
  readonly answer: string
  readonly expiresAt: Date
}

export function hashDoorKey(key: KeyObject, { username, applicationId, idempotencyKey, request }: DoorQuestion): DoorKey {
  const who = [applicationId, username, idempotencyKey]
  return {
    keyHash: hmac(key, encodeTexts(NO_PREFIX, ['key of a door', ...who])),
    questionHash: hmac(key, encodeTexts(NO_PREFIX, ['question of a door', ...who, ...request])),
    authenticate: ({ activationId, userId, answer, expiresAt }) => {
      const kept = [activationId, userId, answer, String(expiresAt.getTime())]
      return hmac(key, encodeTexts(NO_PREFIX, ['answer of a door', ...kept, ...who, ...request]))
    },
  }
}

/**
 * Describes the bytes that a code or a device signature covers for the audit log; the bytes stay with the bank. Its lines are their number, their
 * SHA-256 in hexadecimal, and the text of the bank or the reason of a refusal, if there is one.
 */
export const describeCovered = (bytes: Uint8Array, text: string | undefined): string =>
  [bytes.length, toHex(sha256(bytes)), ...(text === undefined ? [] : [text])].join('\n')

/**
 * The hash of an offline challenge, 32 bytes, that is stored with its right answer. It can be stored only once, so a challenge has one right answer
 * (cloud §16.2).
 */
export const answerHash = (challengeId: string): Uint8Array =>
  sha256(encodeTexts(NO_PREFIX, ['answer of an offline challenge', challengeId]))

const NO_PREFIX = new Uint8Array(0)
