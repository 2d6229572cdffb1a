// The table door_verdict: what a door answered to a request with a key, for as long as its caller may send it again (cloud §12.4).
import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../database/database.ts'
import { defineExpiry } from '../database/bulk-statement.ts'

/** An answer that is kept. */
export interface DoorVerdict {
  /** 32 bytes that stand for the credential and its key. */
  readonly keyHash: Uint8Array
  /** JSON, without the name of the user. */
  readonly answer: string
  readonly expiresAt: Date
  /** Over what was asked, the activation, the answer and its end; 32 bytes. */
  readonly mac: Uint8Array
}

/** What was kept under a key. */
export interface KnownVerdict {
  readonly activationId: string
  readonly answer: string
  /** Of the activation; null when that is gone. */
  readonly userId: string | null
  readonly expiresAt: Date
  readonly mac: Buffer
}

/** KNOWN_VERDICT, outer joined. */
export interface KnownVerdictColumns {
  readonly knownActivation: string | null
  readonly knownMac: Buffer | null
  readonly knownAnswer: string | null
  readonly knownUser: string | null
  readonly knownExpiresAt: Date | null
}

/** What is selected of a kept verdict. */
export const KNOWN_VERDICT = sql`d.activation_id as "knownActivation", d.mac as "knownMac", d.answer as "knownAnswer", d.expires_at as "knownExpiresAt",
    (select owner.user_id from activation owner where owner.activation_id = d.activation_id) as "knownUser"`

/** Where it comes from: the verdict of a key, which may be missing. `key`: a column. */
export const joinKnownVerdict = (key: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`left join door_verdict d on d.key_hash = ${key}`

/** The verdict of a row, if it has one. */
export function toKnownVerdict(row: KnownVerdictColumns): KnownVerdict | undefined {
  const { knownActivation: activationId, knownMac: mac, knownAnswer: answer, knownExpiresAt: expiresAt, knownUser: userId } = row
  if (activationId === null || mac === null || answer === null || expiresAt === null) return undefined
  return { activationId, answer, userId, expiresAt, mac }
}

/** The columns of insertVerdictsFrom, but for activation_id. */
export const VERDICT_COLUMNS = {
  verdictKey: 'bytea',
  verdictAnswer: 'text',
  verdictExpiresAt: 'timestamptz',
  verdictMac: 'bytea',
} as const

/** A verdict as these columns; all are null without one. */
export const toVerdictColumns = (verdict: DoorVerdict | undefined) => ({
  verdictKey: verdict?.keyHash ?? null,
  verdictAnswer: verdict?.answer ?? null,
  verdictExpiresAt: verdict?.expiresAt ?? null,
  verdictMac: verdict?.mac ?? null,
})

/** Selects a verdict, or none, as a row for insertVerdictsFrom. */
export const selectVerdict = (activationId: string, verdict: DoorVerdict | undefined): RawBuilder<unknown> => {
  const { verdictKey, verdictAnswer, verdictExpiresAt, verdictMac } = toVerdictColumns(verdict)
  return sql`select ${activationId}::text as activation_id, ${verdictKey}::bytea as "verdictKey", ${verdictAnswer}::text as "verdictAnswer",
          ${verdictExpiresAt}::timestamptz as "verdictExpiresAt", ${verdictMac}::bytea as "verdictMac"`
}

/**
 * The part of a statement that keeps the verdict of each row of `rows` that has one. A key that has a verdict makes the statement a unique
 * violation. In the order of their bytes, as everywhere.
 */
export const insertVerdictsFrom = (
  rows: RawBuilder<unknown>,
): RawBuilder<unknown> => sql`insert into door_verdict (key_hash, activation_id, answer, expires_at, mac)
    select "verdictKey", activation_id, "verdictAnswer", "verdictExpiresAt", "verdictMac" from ${rows}
    where "verdictKey" is not null order by "verdictKey"`

/** Deletes the verdict of a key when its time is over. */
export async function deleteExpiredVerdict(db: Db, keyHash: Uint8Array, at: Date): Promise<void> {
  await db.deleteFrom('door_verdict').where('key_hash', '=', Buffer.from(keyHash)).where('expires_at', '<=', at).execute()
}

/** Deletes verdicts whose time is over. */
export const deleteExpiredVerdicts = defineExpiry('door_verdict', 'key_hash')
