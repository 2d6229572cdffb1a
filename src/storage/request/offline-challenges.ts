// Stores the challenges of offline QR codes in the table offline_challenge, for as long as a user's digits may answer them (cloud §16).
import { type RawBuilder, sql } from 'kysely'
import { type Db, onlyRow } from '../database/database.ts'
import { toList } from '../database/columns.ts'
import { defineExpiry } from '../database/bulk-statement.ts'
import { joinKnownVerdict, KNOWN_VERDICT, type KnownVerdict, type KnownVerdictColumns, toKnownVerdict } from './door-verdicts.ts'

/** A challenge to store. */
export interface NewChallenge {
  readonly challengeId: string
  readonly applicationId: string
  /** Null when any phone of the application may answer. */
  readonly activationId: string | null
  /** Sealed. */
  readonly terms: Uint8Array
  readonly expiresAt: Date
}

/**
 * The names in a request. `usedHash` stands for the value that a right answer uses up, `verdictKey` for the request's Idempotency-Key, and `asked`
 * for key and request together. Each is 32 bytes.
 */
interface ChallengeNames {
  readonly challengeId: string
  readonly applicationId: string
  readonly usedHash: Uint8Array
  readonly verdictKey: Uint8Array | null
  readonly asked: Uint8Array | null
  readonly at: Date
}

/** The rows found for a request. */
interface FoundChallenge {
  /** Undefined when there is none, when it has expired or was answered, or when other requests have used up its attempts. */
  readonly challenge: (Pick<NewChallenge, 'activationId' | 'expiresAt'> & { readonly terms: Buffer }) | undefined
  /** The roles of the application. */
  readonly roles: readonly string[]
  readonly known: KnownVerdict | undefined
}

/**
 * Stores a challenge. False when its activation is gone. When the activation is being erased, the statement waits for the erasure, so that no
 * challenge is stored after it.
 */
export async function insertChallenge(db: Db, challenge: NewChallenge): Promise<boolean> {
  const { challengeId, applicationId, activationId, terms, expiresAt } = challenge
  const { rows } = await sql`
    insert into offline_challenge (challenge_id, application_id, activation_id, terms, expires_at)
    select ${challengeId}::text, ${applicationId}::text, i.of_phone, ${terms}::bytea, ${expiresAt}::timestamptz
    from (select ${activationId}::text as of_phone) as i
    where i.of_phone is null or exists (select from activation a where a.activation_id = i.of_phone for key share of a)
    returning challenge_id`.execute(db)
  return rows.length === 1
}

/** Finds a challenge of an application that may be answered, and the earlier answer to the same key. */
export async function findChallenge(
  db: Db,
  { challengeId, applicationId, usedHash, verdictKey, asked, at }: ChallengeNames,
): Promise<FoundChallenge> {
  const { rows } = await sql<Columns>`
    select c.terms, c.activation_id as "activationId", c.expires_at as "expiresAt", p.roles, ${KNOWN_VERDICT}
    from (select ${applicationId}::text as "applicationId", ${verdictKey}::bytea as "verdictKey") as i
    left join application p on p.application_id = i."applicationId"
    left join offline_challenge c on c.challenge_id = ${challengeId}::text and c.application_id = i."applicationId"
      and c.expires_at > ${at}::timestamptz and ${hasAttempt(asked)}
      and not exists (select from unique_value u where u.value_hash = ${usedHash}::bytea)
    ${joinKnownVerdict(sql`i."verdictKey"`)}`.execute(db)
  const row = onlyRow(rows)
  const { terms, activationId, expiresAt, roles } = row
  const challenge = terms === null || expiresAt === null ? undefined : { terms, activationId, expiresAt }
  return { challenge, roles: toList(roles ?? ''), known: toKnownVerdict(row) }
}

interface Columns extends KnownVerdictColumns {
  readonly terms: Buffer | null
  readonly activationId: string | null
  readonly expiresAt: Date | null
  readonly roles: string | null
}

/**
 * Takes one attempt of a challenge before the digits are checked, so that concurrent requests check no more answers than there are attempts. The
 * request that took the latest attempt (`asked_hash`) keeps it when it is repeated. False when no attempt is left.
 */
export async function takeAttempt(db: Db, challengeId: string, asked: Uint8Array | null): Promise<boolean> {
  const { rows } = await sql`
    update offline_challenge c set asked_hash = ${asked}::bytea,
      attempts = attempts + case when asked_hash = ${asked}::bytea then 0 else 1 end
    where challenge_id = ${challengeId} and ${hasAttempt(asked)} returning challenge_id`.execute(db)
  return rows.length > 0
}

const hasAttempt = (asked: Uint8Array | null): RawBuilder<boolean> =>
  sql`(c.attempts < ${ATTEMPTS_MAX}::int or c.asked_hash = ${asked}::bytea)`

/** Deletes expired challenges. */
export const deleteExpiredChallenges = defineExpiry('offline_challenge', 'challenge_id')

const ATTEMPTS_MAX = 3
