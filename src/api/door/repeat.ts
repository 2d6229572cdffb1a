// `Idempotency-Key` of the doors (cloud §12.4): a request whose answer was lost is sent again, and gets the answer of the first time.
import type { Db } from '../../storage/database/database.ts'
import { deleteExpiredVerdict, type DoorVerdict, type KnownVerdict } from '../../storage/request/door-verdicts.ts'
import { type DoorKey, hashDoorKey } from '../../domain/activation/door-key.ts'
import { equalConstantTime } from '../../lib/bytes.ts'
import { toBase64 } from '../../lib/base64.ts'
import type { CloudParts } from '../cloud/parts.ts'
import { refuse } from './members.ts'

/** The key of a request, and what is done with it. */
export interface Repeats extends DoorKey {
  /** What is kept of an answer. */
  readonly keep: (owner: Owner, answer: Readonly<Record<string, unknown>>) => DoorVerdict
  /** Throws RepeatedRequest where the same was asked under the key before, and REQUEST_INVALID where something else was. */
  readonly refuseKnown: (known: KnownVerdict | undefined) => Promise<void>
}

/** Of whose activation an answer is. */
export interface Owner {
  readonly activationId: string
  readonly userId: string
}

/** The request was answered before, so. */
export class RepeatedRequest extends Error {
  readonly answer: Readonly<Record<string, unknown>>

  constructor(answer: Readonly<Record<string, unknown>>) {
    super('the request was answered before')
    this.name = 'RepeatedRequest'
    this.answer = answer
  }
}

/** Who asks under which key. */
export interface Asker {
  readonly username: string
  readonly applicationId: string
  readonly idempotencyKey: string
}

/** `request`: all that the answer depends on, in one order. */
export function createRepeats(parts: CloudParts, asker: Asker, request: readonly (string | null)[]): Repeats {
  const hashes = hashDoorKey(parts.installationKeys.codeLookup, { ...asker, request })
  return {
    ...hashes,
    keep: ({ activationId, userId }, { userId: _, ...answer }) => {
      const expiresAt = new Date(parts.platform.now() + parts.settings.doorIdempotencySeconds * 1000)
      // The name of the user stands in the activation.
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
  // Of an activation that was erased nothing is told any more.
  const { userId } = known
  // What is judged in its place is to be kept.
  if (userId === null) return deleteExpiredVerdict(db, keyHash, known.expiresAt)
  // As well where somebody changed what is kept, or whose the activation is.
  if (!equalConstantTime(authenticate({ ...known, userId }), known.mac))
    throw refuse(KEY_HEADER, 'was used for another request: make a new key for each')
  throw new RepeatedRequest({ ...(JSON.parse(known.answer) as Readonly<Record<string, unknown>>), userId })
}

/**
 * Throws REQUEST_INVALID for a key that holds the nonce or another text of the phone's header: whoever repeats the header would be answered what
 * the owner was.
 */
export function refuseKeyOfPhone(key: string, { nonce, text }: { readonly nonce: Uint8Array; readonly text: string }): void {
  const nonceText = toBase64(nonce).replace(/=+$/, '')
  if (key.includes(nonceText) || key.includes(text))
    throw refuse(KEY_HEADER, 'must be made by the back end, not taken from the phone')
}

/** A list of names as one text of a request; null where it is absent. */
export const listOf = (names: readonly string[] | undefined): string | null => names?.join(',') ?? null

export const KEY_HEADER = 'Idempotency-Key'
