// Makes durable what the clock does to activations: ends those that waited too long, and temporary blocks (v3 §8.7, cloud §3.4).
import { sql } from 'kysely'
import { insertAuditFrom } from '../audit/audit.ts'
import type { Db } from '../database/database.ts'
import { amongWaiting } from '../database/index-conditions.ts'
import { insertHistoryFrom } from './history.ts'
import { blockEnds, FAILED_ATTEMPTS_AFTER_BLOCK, hasWaitedTooLong } from './seen-state.ts'

/** Makes the expiry of up to `limit` due CREATED and PENDING_COMMIT activations durable; safe in several processes. */
export async function removeExpiredActivations(db: Db, at: Date, limit: number): Promise<number> {
  const { rows } = await sql`
    with due as (
      select activation_id, state from activation
      where ${amongWaiting('activation')} and ${hasWaitedTooLong(at)}
      order by expires_at limit ${limit} for update skip locked
    ), removed as (
      update activation a set state = 'REMOVED', activation_qr_code = null, otp_hash = null, row_version = row_version + 1
      from due where a.activation_id = due.activation_id
      returning a.activation_id, a.application_id, a.user_id, due.state as from_state
    ), history as (
      ${insertHistoryFrom(sql`removed`, {
        from: sql`from_state`,
        to: sql`'REMOVED'`,
        reason: sql`'EXPIRED'`,
        at: sql`${at}::timestamptz`,
      })}
    )
    ${insertAuditFrom(sql`removed`, {
      eventType: sql`'registration_expired'`,
      eventData: sql`'{}'`,
      occurredAt: sql`${at}::timestamptz`,
    })}
    returning sequence`.execute(db)
  return rows.length
}

/** Stores the end of up to `limit` temporary blocks that are over, with history and audit rows; safe in several processes. */
export async function endTemporaryBlocks(db: Db, at: Date, limit: number): Promise<number> {
  const due = sql`
    select activation_id from activation where ${blockEnds(at)}
    order by block_expires_at limit ${limit} for update skip locked`
  return endBlocks(db, due, at)
}

/** The same for one activation, which it waits for. False when its block is not over, or somebody else was faster. */
export async function endTemporaryBlock(db: Db, activationId: string, at: Date): Promise<boolean> {
  const due = sql`
    select activation_id from activation
    where activation_id = ${activationId} and ${blockEnds(at)} for update`
  return (await endBlocks(db, due, at)) === 1
}

async function endBlocks(db: Db, due: ReturnType<typeof sql>, at: Date): Promise<number> {
  const { rows } = await sql`
    with due as (${due}), ended as (
      update activation a set state = 'ACTIVE', blocked_reason = null, block_expires_at = null,
        failed_attempts = ${FAILED_ATTEMPTS_AFTER_BLOCK}, row_version = row_version + 1
      from due where a.activation_id = due.activation_id
      returning a.activation_id, a.application_id, a.user_id
    ), history as (
      ${insertHistoryFrom(sql`ended`, {
        from: sql`'BLOCKED'`,
        to: sql`'ACTIVE'`,
        reason: sql`'BLOCK_EXPIRED'`,
        at: sql`${at}::timestamptz`,
      })}
    )
    ${insertAuditFrom(sql`ended`, {
      eventType: sql`'registration_unblocked'`,
      eventData: sql`'{"reason":"BLOCK_EXPIRED"}'`,
      occurredAt: sql`${at}::timestamptz`,
    })}
    returning sequence`.execute(db)
  return rows.length
}
