// Stores the answers of doors in the table door_verdict, for as long as a caller may repeat the request with its key (cloud §12.4).
import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../database/database.ts'
import { defineExpiry } from '../database/bulk-statement.ts'

/** An answer to keep. */
export interface DoorVerdict {
  /** Keyed hash of the application, the credential and the Idempotency-Key; 32 bytes. */
  readonly keyHash: Uint8Array
  /** JSON, without the name of the user. */
  readonly answer: string
  readonly expiresAt: Date
  /** MAC over request, activation, answer and expiry; 32 bytes. */
  readonly mac: Uint8Array
}

/** The answer that was kept under a key. */
export interface KnownVerdict {
  readonly activationId: string
  readonly answer: string
  /** The user of the activation; null when the activation is gone. */
  readonly userId: string | null
  readonly expiresAt: Date
  readonly mac: Buffer
}

/** The columns of KNOWN_VERDICT in an outer join. */
export interface KnownVerdictColumns {
  readonly knownActivation: string | null
  readonly knownMac: Buffer | null
  readonly knownAnswer: string | null
  readonly knownUser: string | null
  readonly knownExpiresAt: Date | null
}

/** Selects the columns of a kept verdict. */
export const KNOWN_VERDICT = sql`d.activation_id as "knownActivation", d.mac as "knownMac", d.answer as "knownAnswer", d.expires_at as "knownExpiresAt",
    (select owner.user_id from activation owner where owner.activation_id = d.activation_id) as "knownUser"`

/** Joins the verdict of a key, which may be missing. `key` is a column. */
export const joinKnownVerdict = (key: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`left join door_verdict d on d.key_hash = ${key}`

/** Returns the verdict of a row; undefined without one. */
export function toKnownVerdict(row: KnownVerdictColumns): KnownVerdict | undefined {
  const { knownActivation: activationId, knownMac: mac, knownAnswer: answer, knownExpiresAt: expiresAt, knownUser: userId } = row
  if (activationId === null || mac === null || answer === null || expiresAt === null) return undefined
  return { activationId, answer, userId, expiresAt, mac }
}

/** The columns that insertVerdictsFrom reads, without activation_id. */
export const VERDICT_COLUMNS = {
  verdictKey: 'bytea',
  verdictAnswer: 'text',
  verdictExpiresAt: 'timestamptz',
  verdictMac: 'bytea',
} as const

/** Converts a verdict to these columns; all are null without one. */
export const toVerdictColumns = (verdict: DoorVerdict | undefined) => ({
  verdictKey: verdict?.keyHash ?? null,
  verdictAnswer: verdict?.answer ?? null,
  verdictExpiresAt: verdict?.expiresAt ?? null,
  verdictMac: verdict?.mac ?? null,
})

/** Selects a verdict, or nulls, as a row for insertVerdictsFrom. */
export const selectVerdict = (activationId: string, verdict: DoorVerdict | undefined): RawBuilder<unknown> => {
  const { verdictKey, verdictAnswer, verdictExpiresAt, verdictMac } = toVerdictColumns(verdict)
  return sql`select ${activationId}::text as activation_id, ${verdictKey}::bytea as "verdictKey", ${verdictAnswer}::text as "verdictAnswer",
          ${verdictExpiresAt}::timestamptz as "verdictExpiresAt", ${verdictMac}::bytea as "verdictMac"`
}

/**
 * Composes the part of a statement that keeps the verdict of each row of `rows` that has one. A unique violation is thrown when a key has a verdict
 * already. Verdicts are inserted in the order of their key's bytes, as in every statement.
 */
export const insertVerdictsFrom = (
  rows: RawBuilder<unknown>,
): RawBuilder<unknown> => sql`insert into door_verdict (key_hash, activation_id, answer, expires_at, mac)
    select "verdictKey", activation_id, "verdictAnswer", "verdictExpiresAt", "verdictMac" from ${rows}
    where "verdictKey" is not null order by "verdictKey"`

/** Deletes the verdict of a key if it has expired. */
export async function deleteExpiredVerdict(db: Db, keyHash: Uint8Array, at: Date): Promise<void> {
  await sql`delete from door_verdict where key_hash = ${keyHash} and expires_at <= ${at}`.execute(db)
}

/** Deletes expired verdicts. */
export const deleteExpiredVerdicts = defineExpiry('door_verdict', 'key_hash')
