// Makes durable what the clock does to activations: ends those that waited too long, and temporary blocks (v3 §8.7, cloud §3.4).
import { type RawBuilder, sql } from 'kysely'
import { insertAuditFrom } from '../audit/audit.ts'
import type { Db } from '../database/database.ts'
import { amongWaiting } from '../database/index-conditions.ts'
import type { ActivationState } from '../database/schema.ts'
import { insertHistoryFrom } from './history.ts'
import { blockEnds, FAILED_ATTEMPTS_AFTER_BLOCK, hasWaitedTooLong } from './seen-state.ts'

/** What becomes of activations that are due, beside their state, and what history and audit log say of it. */
interface Move {
  readonly to: ActivationState
  /** What else is set, of the activation `a`. */
  readonly set: RawBuilder<unknown>
  readonly reason: string
  readonly eventType: string
  /** JSON. */
  readonly eventData: string
  readonly at: Date
}

/** Moves the activations whose ids and states `due` selects, with history and audit rows; gives how many. */
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
      ${insertHistoryFrom(sql`moved`, {
        from: sql`from_state`,
        to: sql`${to}::text`,
        reason: sql`${reason}::text`,
        at: sql`${at}::timestamptz`,
      })}
    )
    ${insertAuditFrom(sql`moved`, {
      eventType: sql`${eventType}::text`,
      eventData: sql`${eventData}::text`,
      occurredAt: sql`${at}::timestamptz`,
    })}
    returning sequence`.execute(db)
  return rows.length
}

/** What a REMOVED activation forgets that never exchanged keys, or was not committed. */
export const FORGOTTEN = sql`activation_qr_code = null, otp_hash = null`

/** Makes the expiry of up to `limit` due CREATED and PENDING_COMMIT activations durable; safe in several processes. */
export function removeExpiredActivations(db: Db, at: Date, limit: number): Promise<number> {
  const due = sql`
    select activation_id, state from activation where ${amongWaiting('activation')} and ${hasWaitedTooLong(at)}
    order by expires_at limit ${limit} for update skip locked`
  const set = sql`${FORGOTTEN}, row_version = a.row_version + 1`
  return moveDue(db, due, { to: 'REMOVED', set, reason: 'EXPIRED', eventType: 'registration_expired', eventData: '{}', at })
}

/** Stores the end of up to `limit` temporary blocks that are over, with history and audit rows; safe in several processes. */
export const endTemporaryBlocks = (db: Db, at: Date, limit: number): Promise<number> =>
  endBlocks(db, sql`order by block_expires_at limit ${limit} for update skip locked`, at)

/** The same for one activation, which it waits for. False when its block is not over, or somebody else was faster. */
export const endTemporaryBlock = async (db: Db, activationId: string, at: Date): Promise<boolean> =>
  (await endBlocks(db, sql`and activation_id = ${activationId} for update`, at)) === 1

/** `which`: of the blocks that are over. */
function endBlocks(db: Db, which: RawBuilder<unknown>, at: Date): Promise<number> {
  const due = sql`select activation_id, state from activation where ${blockEnds(at)} ${which}`
  const set = sql`blocked_reason = null, block_expires_at = null, failed_attempts = ${FAILED_ATTEMPTS_AFTER_BLOCK}, row_version = row_version + 1`
  const eventData = '{"reason":"BLOCK_EXPIRED"}'
  return moveDue(db, due, { to: 'ACTIVE', set, reason: 'BLOCK_EXPIRED', eventType: 'registration_unblocked', eventData, at })
}
