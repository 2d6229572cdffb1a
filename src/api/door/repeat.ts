// Implements `Idempotency-Key` at the doors (cloud §12.4): a bank that lost an answer sends its request again, and gets the first answer.
import { type DoorKey, hashDoorKey } from '../../domain/activation/door-key.ts'
import { toBase64 } from '../../lib/base64.ts'
import { equalConstantTime } from '../../lib/bytes.ts'
import { requestRefused } from '../../lib/errors.ts'
import type { Db } from '../../storage/database/database.ts'
import { deleteExpiredVerdict, type DoorVerdict, type KnownVerdict } from '../../storage/request/door-verdicts.ts'
import type { CloudParts } from '../cloud/parts.ts'

/** The hashed key of a request. */
export interface Repeats extends DoorKey {
  /** The row that stores an answer under the key. */
  readonly keep: (owner: Owner, answer: Readonly<Record<string, unknown>>) => DoorVerdict
  /** Throws RepeatedRequest if the same request came under the key before, and REQUEST_INVALID if another request did. */
  readonly refuseKnown: (known: KnownVerdict | undefined) => Promise<void>
}

/** The activation that an answer is about, and its user. */
export interface Owner {
  readonly activationId: string
  readonly userId: string
}

/** Thrown when the same request was answered before. `answer` is that answer, with `isRepeated`. */
export class RepeatedRequest extends Error {
  readonly answer: Readonly<Record<string, unknown>>

  constructor(answer: Readonly<Record<string, unknown>>) {
    super('the request was answered before')
    this.name = 'RepeatedRequest'
    this.answer = { ...answer, isRepeated: true }
  }
}

/** The asking credential, and the key of its request. */
export interface Asker {
  readonly username: string
  readonly applicationId: string
  readonly idempotencyKey: string
}

/** Hashes the key of a request. `request` lists all values on which the answer depends, in a fixed order. */
export function createRepeats(parts: CloudParts, asker: Asker, request: readonly (string | null)[]): Repeats {
  const hashes = hashDoorKey(parts.installationKeys.codeLookup, { ...asker, request })
  return {
    ...hashes,
    keep: ({ activationId, userId }, { userId: _, ...answer }) => {
      const expiresAt = new Date(parts.platform.now() + parts.settings.doorIdempotencySeconds * 1000)
      // The answer is stored without the user, who is read from the activation again. So no answer names a user who was erased.
      const kept = { activationId, answer: JSON.stringify(answer), expiresAt }
      return { keyHash: hashes.keyHash, ...kept, mac: hashes.authenticate({ ...kept, userId }) }
    },
    refuseKnown: (known) => refuseKnown(parts.db, hashes, known, parts.platform.now()),
  }
}

async function refuseKnown(
  db: Db,
  { keyHash, authenticate }: DoorKey,
  known: KnownVerdict | undefined,
  now: number,
): Promise<void> {
  if (known === undefined) return
  if (known.expiresAt.getTime() <= now) return deleteExpiredVerdict(db, keyHash, new Date(now))
  const { userId } = known
  // The activation was erased, and its answer with it. The row is deleted, so that the key can be used again.
  if (userId === null) return deleteExpiredVerdict(db, keyHash, known.expiresAt)
  // The MAC is wrong for another request, and when the row or the owner of the activation was changed in the database.
  if (!equalConstantTime(authenticate({ ...known, userId }), known.mac))
    throw requestRefused(KEY_HEADER, 'was used for another request: make a new key for each')
  throw new RepeatedRequest({ ...(JSON.parse(known.answer) as Readonly<Record<string, unknown>>), userId })
}

/**
 * Throws REQUEST_INVALID for a key that contains the nonce or `text` of the phone's header. With such a key, whoever repeats the header would get
 * the answer of its owner.
 */
export function refuseKeyOfPhone(key: string, { nonce, text }: { readonly nonce: Uint8Array; readonly text: string }): void {
  const nonceText = toBase64(nonce).replace(/=+$/, '')
  if (key.includes(nonceText) || key.includes(text))
    throw requestRefused(KEY_HEADER, 'must be made by the back end, not taken from the phone')
}

/** A list of names as one text; null if it is absent. */
export const listOf = (names: readonly string[] | undefined): string | null => names?.join(',') ?? null

export const KEY_HEADER = 'Idempotency-Key'
