// The table activation as administrators search it, the OTP of a registration, and flags (v3 §8.5, cloud §10).
import { sql } from 'kysely'
import { type AuditEvent, insertAuditEventFrom } from './audit.ts'
import type { Db } from './database.ts'
import type { ActivationAlgorithm, ActivationState, CommitPhase } from './schema.ts'
import { blockedReasonAt, blockExpiresAt, failedAttemptsAt, stateAt } from './seen-state.ts'

/** Whether a user has or had an activation. */
export async function hasActivation(db: Db, applicationId: string, userId: string): Promise<boolean> {
  const row = await db
    .selectFrom('activation')
    .select('activation_id')
    .where('application_id', '=', applicationId)
    .where('user_id', '=', userId)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

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
      insert into activation_history (activation_id, from_state, to_state, reason, occurred_at)
      select activation_id, ${failure.from}::text, ${failure.to}::text, ${failure.reason}::text, ${failure.at}::timestamptz from moved
    )
    ${insertAuditEventFrom('moved', audit)}`.execute(db)
  return rows.length === 1
}

/** An activation in a list. CREATED and PENDING_COMMIT that have run out are REMOVED, a block that is over is ACTIVE. */
export interface ListedRegistrationRow {
  readonly activationId: string
  readonly userId: string
  readonly state: ActivationState
  readonly name: string | null
  readonly platform: string | null
  readonly deviceInfo: string | null
  readonly protocolVersion: number | null
  /** Null in protocol 3. */
  readonly algorithm: ActivationAlgorithm | null
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
}

export interface RegistrationSearch {
  readonly applicationId: string
  readonly userId: string | null
  readonly state: ActivationState | null
  readonly protocolVersion: number | null
  /** The last one of the page before. */
  readonly after: { readonly createdAt: Date; readonly activationId: string } | null
  readonly at: Date
  readonly limit: number
}

/** Activations of an application in every state, newest first. */
export async function listRegistrations(db: Db, search: RegistrationSearch): Promise<ListedRegistrationRow[]> {
  const state = effectiveState(search.at)
  const conditions = [
    sql`application_id = ${search.applicationId}`,
    ...(search.userId === null ? [] : [sql`user_id = ${search.userId}`]),
    ...(search.state === null ? [] : [sql`${state} = ${search.state} and ${sql.raw(STORED_AS[search.state])}`]),
    ...(search.protocolVersion === null ? [] : [sql`protocol_version = ${search.protocolVersion}`]),
    ...(search.after === null
      ? []
      : [sql`(created_at, activation_id) < (${search.after.createdAt}::timestamptz, ${search.after.activationId}::text)`]),
  ]
  const { rows } = await sql<ListedRegistrationRow>`
    select activation_id as "activationId", user_id as "userId", ${state} as state, name, platform, device_info as "deviceInfo",
      protocol_version as "protocolVersion", algorithm, created_at as "createdAt", last_used_at as "lastUsedAt"
    from activation where ${sql.join(conditions, sql` and `)}
    order by created_at desc, activation_id desc limit ${search.limit}`.execute(db)
  return rows
}

/** Everything about an activation but its keys. */
export interface RegistrationDetailRow extends ListedRegistrationRow {
  readonly blockedReason: string | null
  /** The end of a temporary block that lasts. */
  readonly blockExpiresAt: Date | null
  /** Comma list. */
  readonly flags: string
  readonly isConfirmationPending: boolean
  /** Null in protocol 3, where the phone alone decides. */
  readonly isBiometryEnabled: boolean | null
  readonly isUpgradePending: boolean
  readonly failedAttempts: number
  readonly maxFailedAttempts: number
  readonly activationFingerprint: string | null
  readonly extras: string | null
  readonly externalId: string | null
  readonly commitPhase: CommitPhase
  readonly hasOtp: boolean
  readonly expiresAt: Date
}

/** One activation of an application. */
export async function findRegistrationDetail(
  db: Db,
  applicationId: string,
  activationId: string,
  at: Date,
): Promise<RegistrationDetailRow | undefined> {
  const { rows } = await sql<RegistrationDetailRow>`
    select activation_id as "activationId", user_id as "userId", ${effectiveState(at)} as state, name, platform,
      device_info as "deviceInfo", created_at as "createdAt", last_used_at as "lastUsedAt", ${blockedReasonAt(at)} as "blockedReason",
      ${blockExpiresAt(at)} as "blockExpiresAt", flags, protocol_version as "protocolVersion",
      algorithm, is_confirmation_pending as "isConfirmationPending", is_biometry_enabled as "isBiometryEnabled",
      exists (select from activation_upgrade u where u.activation_id = activation.activation_id) as "isUpgradePending",
      ${failedAttemptsAt(at)} as "failedAttempts", max_failed_attempts as "maxFailedAttempts",
      activation_fingerprint as "activationFingerprint", extras, external_id as "externalId", commit_phase as "commitPhase",
      otp_hash is not null as "hasOtp", expires_at as "expiresAt"
    from activation where application_id = ${applicationId} and activation_id = ${activationId}`.execute(db)
  return rows[0]
}

export interface HistoryRow {
  readonly fromState: string | null
  readonly toState: string
  readonly reason: string | null
  readonly externalUserId: string | null
  readonly occurredAt: Date
}

/** What happened to an activation, newest first. */
export async function listActivationHistory(db: Db, activationId: string, limit: number): Promise<HistoryRow[]> {
  return db
    .selectFrom('activation_history')
    .select([
      'from_state as fromState',
      'to_state as toState',
      'reason',
      'external_user_id as externalUserId',
      'occurred_at as occurredAt',
    ])
    .where('activation_id', '=', activationId)
    .orderBy('activation_history_id', 'desc')
    .limit(limit)
    .execute()
}

/** Sets the flags of a live activation with history and audit row; false when there is none. `flags`: comma list. */
export async function setActivationFlags(db: Db, activationId: string, flags: string, at: Date): Promise<boolean> {
  const eventData = JSON.stringify({ flags })
  const { rows } = await sql`
    with changed as (
      update activation set flags = ${flags}, row_version = row_version + 1
      where activation_id = ${activationId} and ${effectiveState(at)} <> 'REMOVED'
      returning activation_id, application_id, user_id, ${stateAt(at)} as state
    ), history as (
      insert into activation_history (activation_id, from_state, to_state, reason, occurred_at)
      select activation_id, state, state, 'ACTIVATION_FLAGS_UPDATED', ${at}::timestamptz from changed
    )
    insert into audit_event (application_id, user_id, activation_id, event_type, event_data, occurred_at)
    select application_id, user_id, activation_id, 'registration_flags_changed', ${eventData}::text,
      ${at}::timestamptz from changed
    returning activation_id`.execute(db)
  return rows.length === 1
}

const effectiveState = (at: Date) =>
  sql`case when state in ('CREATED', 'PENDING_COMMIT') and expires_at <= ${at}::timestamptz then 'REMOVED' else ${stateAt(at)} end`

// What may be seen as a state, so written that the index of states serves.
const STORED_AS: Record<ActivationState, string> = {
  CREATED: `state = 'CREATED'`,
  PENDING_COMMIT: `state = 'PENDING_COMMIT'`,
  ACTIVE: `state in ('ACTIVE', 'BLOCKED')`,
  BLOCKED: `state = 'BLOCKED'`,
  REMOVED: `state in ('REMOVED', 'CREATED', 'PENDING_COMMIT')`,
}
