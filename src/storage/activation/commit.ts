// An activation as its commit needs it, and wrong OTPs before it (v3 §8.5).
import { sql } from 'kysely'
import { type AuditEvent, insertAuditEventFrom } from '../audit.ts'
import type { Db } from '../database.ts'
import type { ActivationState, CommitPhase } from '../schema.ts'
import { insertHistoryFrom } from './history.ts'

/** A live activation as its commit needs it. */
export interface CommitRow {
  readonly activationId: string
  readonly applicationId: string
  readonly userId: string
  readonly state: ActivationState
  readonly rowVersion: number
  readonly expiresAt: Date
  readonly failedAttempts: number
  readonly maxFailedAttempts: number
  readonly commitPhase: CommitPhase
  readonly otpHash: Buffer | null
}

/** The live activation of a user with its OTP. */
export async function findRegistrationToCommit(db: Db, applicationId: string, userId: string): Promise<CommitRow | undefined> {
  return db
    .selectFrom('activation')
    .select([
      'activation_id as activationId',
      'application_id as applicationId',
      'user_id as userId',
      'state',
      'row_version as rowVersion',
      'expires_at as expiresAt',
      'failed_attempts as failedAttempts',
      'max_failed_attempts as maxFailedAttempts',
      'commit_phase as commitPhase',
      'otp_hash as otpHash',
    ])
    .where('application_id', '=', applicationId)
    .where('user_id', '=', userId)
    .where('state', '<>', 'REMOVED')
    .executeTakeFirst()
}

/** A wrong OTP: it is counted, and at the maximum the activation is removed. */
export interface OtpFailure {
  readonly activationId: string
  readonly rowVersion: number
  readonly from: ActivationState
  readonly to: ActivationState
  readonly failedAttempts: number
  readonly reason: string
  readonly at: Date
}

/** Stores a wrong OTP with history and audit row. False when the activation is no longer the one that was read. */
export async function storeOtpFailure(db: Db, failure: OtpFailure, audit: AuditEvent): Promise<boolean> {
  const { rows } = await sql`
    with moved as (
      update activation set state = ${failure.to}, failed_attempts = ${failure.failedAttempts}, row_version = row_version + 1,
        activation_qr_code = case when ${failure.to}::text = 'REMOVED' then null else activation_qr_code end,
        otp_hash = case when ${failure.to}::text = 'REMOVED' then null else otp_hash end
      where activation_id = ${failure.activationId} and row_version = ${failure.rowVersion} and state = ${failure.from}
        and expires_at > ${failure.at}
      returning activation_id
    ), history as (
      ${insertHistoryFrom(sql`moved`, {
        from: sql`${failure.from}::text`,
        to: sql`${failure.to}::text`,
        reason: sql`${failure.reason}::text`,
        at: sql`${failure.at}::timestamptz`,
      })}
    )
    ${insertAuditEventFrom('moved', audit)}`.execute(db)
  return rows.length === 1
}
