// Stores the changes that time makes to activations: it removes those that waited too long, and ends temporary blocks (v3 §8.7, cloud §3.4).
import { type RawBuilder, sql } from 'kysely'
import { insertAuditFrom } from '../audit/audit.ts'
import type { Db } from '../database/database.ts'
import { amongWaiting } from '../database/index-conditions.ts'
import type { ActivationState } from '../database/schema.ts'
import { insertHistoryFrom } from './history.ts'
import { blockEnds, FAILED_ATTEMPTS_AFTER_BLOCK, hasWaitedTooLong } from './seen-state.ts'

/** The new state of due activations, further columns to set, and the content of history and audit rows. */
interface Move {
  readonly to: ActivationState
  /** Further assignments to columns of the activation `a`. */
  readonly set: RawBuilder<unknown>
  readonly reason: string
  readonly eventType: string
  /** JSON. */
  readonly eventData: string
  readonly at: Date
}

/** Moves the activations whose ids and states `due` selects, with history and audit rows. Returns their number. */
export async function moveDue(
  db: Db,
  due: RawBuilder<unknown>,
  { to, set, reason, eventType, eventData, at }: Move,
): Promise<number> {
  const { rows } = await sql`
    with due as (${due}), moved as (
      update activation a set state = ${to}, ${set}
      from due where a.activation_id = due.activation_id
      returning a.activation_id, a.application_id, a.user_id, due.state as from_state
    ), history as (
      ${insertHistoryFrom(sql`moved`, { from: sql`from_state`, to, reason, at })}
    )
    ${insertAuditFrom(sql`moved`, { eventType, eventData, occurredAt: at })}
    returning sequence`.execute(db)
  return rows.length
}

/** Columns to clear when an activation is removed before its keys were exchanged or before its commit. */
export const FORGOTTEN = sql`activation_qr_code = null, otp_hash = null`

/** Removes up to `limit` expired CREATED and PENDING_COMMIT activations; safe in several processes. */
export function removeExpiredActivations(db: Db, at: Date, limit: number): Promise<number> {
  const due = sql`
    select activation_id, state from activation where ${amongWaiting('activation')} and ${hasWaitedTooLong(at)}
    order by expires_at limit ${limit} for update skip locked`
  const set = sql`${FORGOTTEN}, row_version = a.row_version + 1`
  return moveDue(db, due, { to: 'REMOVED', set, reason: 'EXPIRED', eventType: 'registration_expired', eventData: '{}', at })
}

/** Ends up to `limit` temporary blocks that are over, with history and audit rows; safe in several processes. */
export const endTemporaryBlocks = (db: Db, at: Date, limit: number): Promise<number> =>
  endBlocks(db, sql`order by block_expires_at limit ${limit} for update skip locked`, at)

/**
 * Ends the temporary block of one activation, and waits for the lock of its row. False when the block is not over, or another process ended it
 * first.
 */
export const endTemporaryBlock = async (db: Db, activationId: string, at: Date): Promise<boolean> =>
  (await endBlocks(db, sql`and activation_id = ${activationId} for update`, at)) === 1

/** `which` narrows the query for blocks that are over, and locks the rows. */
function endBlocks(db: Db, which: RawBuilder<unknown>, at: Date): Promise<number> {
  const due = sql`select activation_id, state from activation where ${blockEnds(at)} ${which}`
  const set = sql`blocked_reason = null, block_expires_at = null, failed_attempts = ${FAILED_ATTEMPTS_AFTER_BLOCK}, row_version = row_version + 1`
  const eventData = '{"reason":"BLOCK_EXPIRED"}'
  return moveDue(db, due, { to: 'ACTIVE', set, reason: 'BLOCK_EXPIRED', eventType: 'registration_unblocked', eventData, at })
}
