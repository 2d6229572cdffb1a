// The `Idempotency-Key` of a call to a door (cloud §12.4). Only two keyed hashes are stored of it.
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

/** A key, and what an answer to the question is authenticated by. All are HMAC-SHA-256, 32 bytes. */
export interface DoorKey {
  /** Over the credential and its key. */
  readonly keyHash: Uint8Array
  /** Over the credential, its key, and what was asked. */
  readonly questionHash: Uint8Array
  /** Over the credential, its key, what was asked, and an answer: nobody who writes to the database makes an answer another one. */
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
 * What the audit log has of the bytes that a code covers: their number, their SHA-256 in hexadecimal digits, and the text of the bank if it
 * gave one, each on a line.
 */
export const describeCovered = (bytes: Uint8Array, auditText: string | undefined): string =>
  [bytes.length, toHex(sha256(bytes)), ...(auditText === undefined ? [] : [auditText])].join('\n')

/** What the right answer of an offline challenge uses up, 32 bytes: there is one (cloud §16.2). */
export const answerHash = (challengeId: string): Uint8Array =>
  sha256(encodeTexts(NO_PREFIX, ['answer of an offline challenge', challengeId]))

const NO_PREFIX = new Uint8Array(0)
