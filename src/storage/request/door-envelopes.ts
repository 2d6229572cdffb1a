// Envelopes that were opened for the bank, and the answers that were sealed for it: the tables sealed_answer and ticket_fence (cloud §13). Times are
// those of the database, whichever process asks.
import { sql } from 'kysely'
import { insertTwoValuesFrom, selectValues, type UniqueValue } from '../activation/unique-values.ts'
import { type AuditEvent, heldActivation, insertAuditOf } from '../audit/audit.ts'
import { type Db, isUniqueViolation, type Pool } from '../database/database.ts'
import {
  joinTemporaryKey,
  TEMPORARY_KEY_COLUMNS,
  type TemporaryKeyColumns,
  toTemporaryKey,
} from '../application/temporary-keys.ts'
import { defineAskedRows } from '../database/bulk-statement.ts'
import {
  DOOR_COLUMNS,
  DOOR_NAMES,
  type DoorColumns,
  type DoorNames,
  type DoorParties,
  type FoundEnvelope,
  fromDoorNames,
  toDoorParties,
} from './lookup.ts'
import { type DoorVerdict, insertVerdictsFrom, selectVerdict } from './door-verdicts.ts'

/** The names in a request with an envelope: its key, empty without one, and the value that it uses up, 32 bytes, null without one. */
export interface DoorEnvelopeNames extends DoorNames {
  readonly temporaryKeyId: string
  readonly envelopeValue: Uint8Array | null
}

/** What a door reads of an envelope. */
export interface DoorEnvelope extends DoorParties, FoundEnvelope {}

/** Reads all of them, in their order. */
export async function findDoorEnvelopes(db: Db, names: readonly DoorEnvelopeNames[]): Promise<readonly DoorEnvelope[]> {
  const { rows } = await db.executeQuery<DoorColumns & TemporaryKeyColumns & Pick<FoundEnvelope, 'isEnvelopeUsed'>>(FIND(names))
  return rows.map((row) => ({ ...toDoorParties(row), temporaryKey: toTemporaryKey(row), isEnvelopeUsed: row.isEnvelopeUsed }))
}

const FIND = defineAskedRows<DoorEnvelopeNames>({
  ...DOOR_NAMES,
  temporaryKeyId: 'text',
  envelopeValue: 'bytea',
}).define(
  (asked) => sql`
  select ${DOOR_COLUMNS}, ${TEMPORARY_KEY_COLUMNS},
    exists (select from unique_value u where u.value_hash = i."envelopeValue") as "isEnvelopeUsed"
  ${fromDoorNames(asked)}
  ${joinTemporaryKey(sql`i."temporaryKeyId"`)}
  order by i.position`,
)

/** What is stored of an opened envelope. */
export interface Opening {
  /** What it uses up, where that was not done already and its version has such values: at most two. */
  readonly uses: readonly UniqueValue[]
  /** What a request is answered that comes again. */
  readonly kept: DoorVerdict | undefined
  /** Its `activationId` is empty for an envelope of an application. */
  readonly audit: AuditEvent & { readonly verifiedBy: string }
}

/** Stores all of it in one statement. Gives the time; undefined, and nothing is stored, where the value was used or the key has an answer. */
export async function recordOpening(db: Pool, { uses, kept, audit }: Opening): Promise<Date | undefined> {
  const { activationId } = audit
  try {
    const { rows } = await sql<{ at: Date }>`
      with used as (
        ${insertTwoValuesFrom(sql`(${selectValues(uses)}) as given`)}
      ), kept as (
        ${insertVerdictsFrom(sql`(${selectVerdict(activationId, kept)}) as given`)}
      ), audited as (
        ${insertAuditOf(audit, activationId === '' ? undefined : heldActivation(activationId))}
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
  /** Keyed, 32 bytes. */
  readonly plaintextHash: Uint8Array
  readonly openedAt: Date
  readonly expiresAt: Date
}

/** The first answer of a ticket, which is this one or another. */
interface FirstAnswer {
  readonly plaintextHash: Buffer
  /** In whole milliseconds. */
  readonly sealedAt: Date
}

/**
 * Takes the ticket for this answer unless it has one. Committed before it returns, so that no other process seals another. Undefined for a ticket
 * that has ended, and for one that is older than a fence: what was sealed under that the database may have forgotten.
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
 * Deletes up to `limit` answers whose tickets ended two hours ago: an envelope gets a ticket again for as long as its key is answered again, an hour
 * at most (PAWL_DOOR_IDEMPOTENCY_SECONDS), and clocks may differ. `_at`: not the clock of this process.
 */
export async function deleteEndedAnswers(db: Db, _at: Date, limit: number): Promise<number> {
  const { rows } = await sql`
    delete from sealed_answer where ticket_id in (
      select ticket_id from sealed_answer where expires_at <= clock_timestamp() - interval '2 hours'
      order by expires_at limit ${limit} for update skip locked
    ) returning ticket_id`.execute(db)
  return rows.length
}
