// The table offline_challenge: QR codes of the bank's own, for as long as what a user types may answer them (cloud §16).
import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../database/database.ts'
import { toList } from '../database/columns.ts'
import { defineExpiry } from '../database/bulk-statement.ts'
import { joinKnownVerdict, KNOWN_VERDICT, type KnownVerdict, type KnownVerdictColumns, toKnownVerdict } from './door-verdicts.ts'

/** A challenge as it is made. */
export interface NewChallenge {
  readonly challengeId: string
  readonly applicationId: string
  /** Null where any phone of the application may answer. */
  readonly activationId: string | null
  /** sealed */
  readonly terms: Uint8Array
  readonly expiresAt: Date
}

/**
 * What is asked for: `usedHash` is what a right answer uses up, `verdictKey` stands for the key of the request, `asked` for key and request; all
 * are 32 bytes.
 */
interface ChallengeNames {
  readonly challengeId: string
  readonly applicationId: string
  readonly usedHash: Uint8Array
  readonly verdictKey: Uint8Array | null
  readonly asked: Uint8Array | null
  readonly at: Date
}

/** What is stored of it. */
interface FoundChallenge {
  /** Undefined where there is none, its time is over, it was answered, or others have used up its attempts. */
  readonly challenge: (Pick<NewChallenge, 'activationId' | 'expiresAt'> & { readonly terms: Buffer }) | undefined
  /** Of the application. */
  readonly roles: readonly string[]
  readonly known: KnownVerdict | undefined
}

/**
 * Stores a challenge. False when its activation is gone. One that is being erased is waited for, so that no challenge of it is stored behind
 * the erasure.
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

/** A challenge of an application that may be answered, and what was answered to the key before. */
export async function findChallenge(
  db: Db,
  { challengeId, applicationId, usedHash, verdictKey, asked, at }: ChallengeNames,
): Promise<FoundChallenge> {
  const { rows } = await sql<Columns>`
    select c.terms, c.activation_id as "activationId", c.expires_at as "expiresAt", p.roles, ${KNOWN_VERDICT}
    from (select ${applicationId}::text as "applicationId", ${verdictKey}::bytea as "verdictKey") as i
    left join application p on p.application_id = i."applicationId"
    left join offline_challenge c on c.challenge_id = ${challengeId}::text and c.application_id = i."applicationId"
      and c.expires_at > ${at}::timestamptz and ${hasAttempt('c', asked)}
      and not exists (select from unique_value u where u.value_hash = ${usedHash}::bytea)
    ${joinKnownVerdict(sql`i."verdictKey"`)}`.execute(db)
  const [row] = rows
  if (row === undefined) throw new TypeError('a statement that always has a row')
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
 * Takes one of the attempts of a challenge, before a password is judged: of those that come at once no more are judged. The request that took the
 * latest one (`asked_hash`) has it still when it is sent again. False when none is left.
 */
export async function takeAttempt(db: Db, challengeId: string, asked: Uint8Array | null): Promise<boolean> {
  const { rows } = await sql`
    update offline_challenge c set asked_hash = ${asked}::bytea,
      attempts = attempts + case when asked_hash = ${asked}::bytea then 0 else 1 end
    where challenge_id = ${challengeId} and ${hasAttempt('c', asked)} returning challenge_id`.execute(db)
  return rows.length > 0
}

const hasAttempt = (table: string, asked: Uint8Array | null): RawBuilder<boolean> =>
  sql<boolean>`(${sql.ref(`${table}.attempts`)} < ${ATTEMPTS_MAX}::int or ${sql.ref(`${table}.asked_hash`)} = ${asked}::bytea)`

/** Deletes challenges whose time is over. */
export const deleteExpiredChallenges = defineExpiry('offline_challenge', 'challenge_id')

const ATTEMPTS_MAX = 3
