// What the clock does to activations, made durable: it ends those that waited too long, and temporary blocks (v3 §8.7, cloud §3.4).
import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { BLOCK_ENDS } from './seen-state.ts'

/** Makes the expiry of up to `limit` due CREATED and PENDING_COMMIT activations durable; safe in several processes. */
export async function removeExpiredActivations(db: Db, at: Date, limit: number): Promise<number> {
  const { rows } = await sql`
    with due as (
      select activation_id, state from activation
      where state in ('CREATED', 'PENDING_COMMIT') and expires_at <= ${at}
      order by expires_at limit ${limit} for update skip locked
    ), removed as (
      update activation a set state = 'REMOVED', activation_qr_code = null, otp_hash = null, row_version = row_version + 1
      from due where a.activation_id = due.activation_id
      returning a.activation_id, a.application_id, a.user_id, due.state as from_state
    ), history as (
      insert into activation_history (activation_id, from_state, to_state, reason, occurred_at)
      select activation_id, from_state, 'REMOVED', 'EXPIRED', ${at}::timestamptz from removed
    )
    insert into audit_event (application_id, user_id, activation_id, event_type, event_data, occurred_at)
    select application_id, user_id, activation_id, 'registration_expired', '{}', ${at}::timestamptz from removed
    returning sequence`.execute(db)
  return rows.length
}

/** Stores the end of up to `limit` temporary blocks that are over, with history and audit rows; safe in several processes. */
export async function endTemporaryBlocks(db: Db, at: Date, limit: number): Promise<number> {
  const due = sql`
    select activation_id from activation where ${sql.raw(BLOCK_ENDS)} ${at}::timestamptz
    order by block_expires_at limit ${limit} for update skip locked`
  return end(db, due, at)
}

/** The same for one activation, which it waits for. False when its block is not over, or somebody else was faster. */
export async function endTemporaryBlock(db: Db, activationId: string, at: Date): Promise<boolean> {
  const due = sql`
    select activation_id from activation
    where activation_id = ${activationId} and ${sql.raw(BLOCK_ENDS)} ${at}::timestamptz for update`
  return (await end(db, due, at)) === 1
}

async function end(db: Db, due: ReturnType<typeof sql>, at: Date): Promise<number> {
  const { rows } = await sql`
    with due as (${due}), ended as (
      update activation a set state = 'ACTIVE', blocked_reason = null, block_expires_at = null,
        failed_attempts = least(failed_attempts, max_failed_attempts - 1), row_version = row_version + 1
      from due where a.activation_id = due.activation_id
      returning a.activation_id, a.application_id, a.user_id
    ), history as (
      insert into activation_history (activation_id, from_state, to_state, reason, occurred_at)
      select activation_id, 'BLOCKED', 'ACTIVE', 'BLOCK_EXPIRED', ${at}::timestamptz from ended
    )
    insert into audit_event (application_id, user_id, activation_id, event_type, event_data, occurred_at)
    select application_id, user_id, activation_id, 'registration_unblocked', '{"reason":"BLOCK_EXPIRED"}', ${at}::timestamptz
    from ended
    returning sequence`.execute(db)
  return rows.length
}
