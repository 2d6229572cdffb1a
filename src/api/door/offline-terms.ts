// Seals the terms of an offline challenge in its row, and refuses texts that a challenge must not have (cloud §16.1).
import type { RecordKeys } from '../../domain/secrets/record-keys.ts'
import { places, unlessAltered } from '../../domain/secrets/secrets.ts'
import { fromUtf8, parseUtf8, utf8 } from '../../lib/bytes.ts'
import { requestRefused } from '../../lib/errors.ts'
import type { Factors } from '../../protocol/protocol.ts'
import { OFFLINE_RESOURCE_ID } from '../../protocol/wire/offline.ts'
import type { Db } from '../../storage/database/database.ts'
import { findOperation } from '../../storage/operation/operations.ts'

/** The values against which a one-time password is checked. */
export interface ChallengeTerms {
  readonly applicationId: string
  /** Null if any phone of the application may answer. */
  readonly activationId: string | null
  readonly resourceId: string
  /** Base64 text. */
  readonly body: string
  /** Base64 of 16 bytes. */
  readonly nonce: string
  readonly factors: readonly Factors[]
  /** Base64 of 16 bytes; null without a proximity check. */
  readonly seed: string | null
  /** Milliseconds. */
  readonly expiresAt: number
}

/** Seals the terms, so that a writer to the database can neither read nor change them. */
export const sealTerms = (recordKeys: RecordKeys, challengeId: string, terms: ChallengeTerms): Buffer =>
  recordKeys.seal(places.challengeTerms(challengeId), utf8(JSON.stringify(terms)))

/** Opens the terms. Undefined for a record that was altered, or that belongs to another challenge. */
export const openTerms = (recordKeys: RecordKeys, challengeId: string, sealed: Uint8Array): ChallengeTerms | undefined =>
  unlessAltered(() => JSON.parse(fromUtf8(recordKeys.open(places.challengeTerms(challengeId), sealed))) as ChallengeTerms)

/**
 * Throws REQUEST_INVALID when the body begins with the id of an operation of the application. A code over such a body approves the operation; here it
 * would be used up without that effect.
 */
export async function refuseOperationBody(
  db: Db,
  applicationId: string,
  { resourceId, body }: { readonly resourceId: string; readonly body: Uint8Array },
  fieldName: string,
): Promise<void> {
  if (resourceId !== OFFLINE_RESOURCE_ID) return
  const id = ID_AT_START.exec(parseUtf8(body.subarray(0, ID_LENGTH + 1)) ?? '')?.[1]
  if (id !== undefined && (await findOperation(db, applicationId, id)) !== undefined)
    throw requestRefused(fieldName, 'is of an operation of pawl: POST /operations/offline/otp approves it')
}

/**
 * Throws REQUEST_INVALID when a phone would read the text as that of an operation. The phone would show another title than that of the operation that
 * the code approves.
 */
export async function refuseOperationText(db: Db, applicationId: string, data: string): Promise<void> {
  const [first = ''] = data.split('\n', 1)
  if (ID.test(first) && (await findOperation(db, applicationId, first)) !== undefined)
    throw requestRefused('data', 'is of an operation of pawl: POST /operations/offline/qr shows it')
}

const ID_LENGTH = 36
/** Only bytes of this form are looked up. Other decoded bytes may have U+0000, which PostgreSQL refuses. */
const ID_AT_START = /^([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})&$/
const ID = /^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$/
