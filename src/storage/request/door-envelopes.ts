// Reads the rows that a door needs for an envelope. Stores envelopes opened for the bank and answers sealed for it, in the tables sealed_answer and
// ticket_fence (cloud §13). Times are those of the database, so that all processes agree.
import { sql } from 'kysely'
import { insertTwoValuesFrom, selectValues, type UniqueValue } from '../activation/unique-values.ts'
import { type AuditEvent, heldActivation, insertAuditFrom, ONE_ROW } from '../audit/audit.ts'
import { type Db, isUniqueViolation, type Pool } from '../database/database.ts'
import { deleteBatch } from '../database/bulk-statement.ts'
import { type DoorVerdict, insertVerdictsFrom, selectVerdict } from './door-verdicts.ts'
import {
  both,
  defineLookup,
  DOOR,
  type DoorNames,
  type DoorParties,
  ENVELOPE,
  type EnvelopeNames,
  type FoundEnvelope,
} from './lookup.ts'

/** The rows that a door reads for a request with an envelope. */
export interface DoorEnvelope extends DoorParties, FoundEnvelope {}
export type DoorEnvelopeNames = DoorNames & EnvelopeNames

export const findDoorEnvelopes = defineLookup(both(DOOR, ENVELOPE))

/** The rows to store for an opened envelope. */
export interface Opening {
  /** At most two values to use up; none when they are used up already, or the version of the envelope has none. */
  readonly uses: readonly UniqueValue[]
  /** The answer for a repeated request with the same Idempotency-Key. */
  readonly kept: DoorVerdict | undefined
  /** `activationId` is empty for an envelope of the application scope. */
  readonly audit: AuditEvent & { readonly verifiedBy: string }
}

/**
 * Stores the rows in one statement, and returns its time. Undefined, with nothing stored, when a value was used before or the key has an answer.
 */
export async function recordOpening(db: Pool, { uses, kept, audit }: Opening): Promise<Date | undefined> {
  const { activationId } = audit
  try {
    const { rows } = await sql<{ at: Date }>`
      with used as (
        ${insertTwoValuesFrom(sql`(${selectValues(uses)}) as given`)}
      ), kept as (
        ${insertVerdictsFrom(sql`(${selectVerdict(activationId, kept)}) as given`)}
      ), audited as (
        ${insertAuditFrom(activationId === '' ? ONE_ROW : heldActivation(activationId), audit)}
      )
      select clock_timestamp() as at`.execute(db)
    return rows[0]?.at
  } catch (error) {
    if (isUniqueViolation(error)) return undefined
    throw error
  }
}

/** An answer that is about to be sealed under a ticket. */
export interface AnswerToSeal {
  readonly ticketId: Uint8Array
  /** Keyed hash, 32 bytes. */
  readonly plaintextHash: Uint8Array
  readonly openedAt: Date
  readonly expiresAt: Date
}

/** The first answer that was sealed under a ticket; it may be another one than the given. */
interface FirstAnswer {
  readonly plaintextHash: Buffer
  /** In whole milliseconds. */
  readonly sealedAt: Date
}

/**
 * Takes the ticket for this answer unless it has one, and returns the first answer. The row is committed before this returns, so that no other
 * process seals a different answer. Undefined for an expired ticket, and for one from before a fence: the database may have forgotten an answer
 * sealed under it.
 */
export async function takeTicket(
  db: Db,
  { ticketId, plaintextHash, openedAt, expiresAt }: AnswerToSeal,
): Promise<FirstAnswer | undefined> {
  const { rows } = await sql<FirstAnswer>`
    insert into sealed_answer (ticket_id, plaintext_hash, sealed_at, expires_at)
    select ${ticketId}::bytea, ${plaintextHash}::bytea, date_trunc('milliseconds', clock_timestamp()), ${expiresAt}::timestamptz
    where ${expiresAt}::timestamptz > clock_timestamp()
      and not exists (select from ticket_fence where fenced_at >= ${openedAt}::timestamptz)
    on conflict (ticket_id) do update set expires_at = greatest(sealed_answer.expires_at, excluded.expires_at)
    returning plaintext_hash as "plaintextHash", sealed_at as "sealedAt"`.execute(db)
  return rows[0]
}

/**
 * Deletes up to `limit` answers whose tickets ended two hours ago. A repeated request gets its ticket again for an hour at most
 * (PAWL_DOOR_IDEMPOTENCY_SECONDS), and clocks may differ. `_at` is unused: the clock of the database decides.
 */
export const deleteEndedAnswers = (db: Db, _at: Date, limit: number): Promise<number> =>
  deleteBatch(
    db,
    { table: 'sealed_answer', key: ['ticket_id'] },
    sql`expires_at <= clock_timestamp() - interval '2 hours' order by expires_at`,
    limit,
  )
