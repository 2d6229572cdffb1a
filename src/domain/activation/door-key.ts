// What is stored of calls to doors in place of what they bring: of their `Idempotency-Key` two keyed hashes (cloud §12.4), of the bytes that a code
// covers length and hash, of the right answer to an offline challenge a hash (cloud §16.2).
import type { KeyObject } from 'node:crypto'
import { toHex } from '../../lib/bytes.ts'
import { hmac, sha256 } from '../../crypto/hash.ts'
import { encodeTexts } from '../secrets/row-mac.ts'

/** Who asks, under which key, and what: member by member, null for one that is absent. */
interface DoorQuestion {
  readonly username: string
  readonly applicationId: string
  readonly idempotencyKey: string
  readonly request: readonly (string | null)[]
}

/** The hashes of a key and of its question, and the MAC of an answer. All are HMAC-SHA-256, 32 bytes. */
export interface DoorKey {
  /** Covers the credential and the key. */
  readonly keyHash: Uint8Array
  /** Covers the credential, the key, and the request. */
  readonly questionHash: Uint8Array
  /**
   * The MAC of an answer. It covers the credential, the key, the request and the answer, so that nobody who writes to the database can change a
   * stored answer.
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
 * The audit log's description of the bytes that a code covers, a line each: their number, their SHA-256 in hexadecimal, and the text of the
 * bank, if there is one.
 */
export const describeCovered = (bytes: Uint8Array, auditText: string | undefined): string =>
  [bytes.length, toHex(sha256(bytes)), ...(auditText === undefined ? [] : [auditText])].join('\n')

/** The hash, 32 bytes, that the right answer to an offline challenge uses up, so that there is only one (cloud §16.2). */
export const answerHash = (challengeId: string): Uint8Array =>
  sha256(encodeTexts(NO_PREFIX, ['answer of an offline challenge', challengeId]))

const NO_PREFIX = new Uint8Array(0)
