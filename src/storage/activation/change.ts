// What becomes of an activation: its state, and its name.
import { sql } from 'kysely'
import { type AuditEvent, insertAuditEventFrom } from '../audit.ts'
import type { Db } from '../database.ts'
import type { ActivationState } from '../schema.ts'
import { insertHistoryFrom } from './history.ts'

/** A change of state with its history row. */
export interface StateChange {
  readonly activationId: string
  readonly rowVersion: number
  readonly from: ActivationState
  readonly to: ActivationState
  readonly reason: string | null
  readonly externalUserId: string | null
  readonly at: Date
}

/**
 * Moves an activation from one state to another together with history and audit row. False when somebody else was faster.
 * ACTIVE resets the failed attempts and blocks in a row; BLOCKED has no end then; REMOVED forgets the QR text, where pushes go, and an
 * upgrade that waits. None of the states it leads to needs the OTP any more.
 */
export async function changeState(db: Db, change: StateChange, audit: AuditEvent): Promise<boolean> {
  const { rows } = await sql`
    with moved as (
      update activation set state = ${change.to}, row_version = row_version + 1,
        blocked_reason = case when ${change.to}::text = 'BLOCKED' then ${change.reason}::text end,
        failed_attempts = case when ${change.to}::text = 'ACTIVE' then 0 else failed_attempts end,
        blocks_in_row = case when ${change.to}::text = 'ACTIVE' then 0 else blocks_in_row end, block_expires_at = null,
        activation_qr_code = case when ${change.to}::text = 'REMOVED' then null else activation_qr_code end, otp_hash = null
      where activation_id = ${change.activationId} and row_version = ${change.rowVersion} and state = ${change.from}
      returning activation_id
    ), history as (
      ${insertHistoryFrom(sql`moved`, {
        from: sql`${change.from}::text`,
        to: sql`${change.to}::text`,
        reason: sql`${change.reason}::text`,
        externalUserId: sql`${change.externalUserId}::text`,
        at: sql`${change.at}::timestamptz`,
      })}
    ), forgotten as (
      delete from push_registration p using moved where p.activation_id = moved.activation_id and ${change.to}::text = 'REMOVED'
    ), abandoned as (
      delete from activation_upgrade u using moved where u.activation_id = moved.activation_id and ${change.to}::text = 'REMOVED'
    )
    ${insertAuditEventFrom('moved', audit)}`.execute(db)
  return rows.length === 1
}

/** Renames an activation whose code was accepted; a block since then does not prevent it. False when it was removed. */
export async function renameActivation(db: Db, activationId: string, name: string, at: Date): Promise<boolean> {
  const { rows } = await sql`
    with renamed as (
      update activation set name = ${name} where activation_id = ${activationId} and state in ('ACTIVE', 'BLOCKED')
      returning activation_id, state
    )
    ${insertHistoryFrom(sql`renamed`, {
      from: sql`state`,
      to: sql`state`,
      reason: sql`'ACTIVATION_NAME_UPDATED'`,
      at: sql`${at}::timestamptz`,
    })}
    returning activation_id`.execute(db)
  return rows.length === 1
}
