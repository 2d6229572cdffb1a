// Reads an activation for its commit, stores wrong OTPs, and sets the OTP that a commit demands (v3 §8.5).
import { sql } from 'kysely'
import { type AuditEvent, insertAuditFrom } from '../audit/audit.ts'
import type { Db } from '../database/database.ts'
import type { ActivationState } from '../database/schema.ts'
import { defineSharedTrip } from '../database/batched-statement.ts'
import { COMMIT_COLUMNS, type Read, selectColumns } from './columns.ts'
import { fromOwners, type OwnerNames, OWNERS } from './find.ts'
import type { ChangedBy } from './change.ts'
import { insertHistoryFrom } from './history.ts'

/** The columns of a live activation that a commit needs. */
export interface CommitRow extends Read<typeof COMMIT_COLUMNS> {
  readonly applicationId: string
}

/** An application, and the live activation of the user in it: the named one, or any of several. */
export interface RegistrationToCommit {
  readonly applicationId: string
  /** A user may have several live activations. */
  readonly isMultiDevice: boolean
  readonly live: CommitRow | undefined
}

/** Reads application and activation in one statement, which concurrent calls share. Undefined when there is no such application. */
export const findRegistrationToCommit = defineSharedTrip(
  async (db, owners: readonly OwnerNames[]): Promise<readonly (RegistrationToCommit | undefined)[]> => {
    const { rows } = await db.executeQuery<CommitColumns>(FIND_TO_COMMIT(owners))
    return rows.map(toRegistration)
  },
)

type CommitColumns =
  | { readonly applicationId: null }
  | (Pick<RegistrationToCommit, 'applicationId' | 'isMultiDevice'> & ({ readonly activationId: null } | CommitRow))

const toRegistration = (row: CommitColumns): RegistrationToCommit | undefined =>
  row.applicationId === null
    ? undefined
    : {
        applicationId: row.applicationId,
        isMultiDevice: row.isMultiDevice,
        live: row.activationId === null ? undefined : row,
      }

/** A wrong OTP: the failure is counted, and at the maximum the activation is removed. */
interface OtpFailure {
  readonly activationId: string
  readonly rowVersion: number
  readonly from: ActivationState
  readonly to: ActivationState
  readonly failedAttempts: number
  readonly reason: string
  readonly at: Date
}

/** Stores a wrong OTP with a history and an audit row. False when the activation has changed since it was read. */
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
      ${insertHistoryFrom(sql`moved`, failure)}
    )
    ${insertAuditFrom(sql`moved`, audit)} returning activation_id`.execute(db)
  return rows.length === 1
}

/** Sets the OTP that the commit of an activation demands. False unless its commit phase is ON_COMMIT and its state is one of `from`. */
export async function setCommitOtp(
  db: Db,
  { activationId, from }: { readonly activationId: string; readonly from: readonly ('CREATED' | 'PENDING_COMMIT')[] },
  otpHash: Uint8Array,
  at: Date,
  { username, externalUserId }: ChangedBy,
): Promise<boolean> {
  const { rows } = await sql`
    with changed as (
      update activation set otp_hash = ${otpHash}, row_version = row_version + 1
      where activation_id = ${activationId} and commit_phase = 'ON_COMMIT' and state = any(${[...from]}::text[]) and expires_at > ${at}
      returning activation_id, application_id, user_id, state
    ), history as (
      ${insertHistoryFrom(sql`changed`, { from: sql`state`, to: sql`state`, reason: 'OTP_VALUE_UPDATED', externalUserId, at })}
    )
    ${insertAuditFrom(sql`changed`, { eventType: 'registration_otp_changed', eventData: '{}', occurredAt: at, verifiedBy: username })}
    returning activation_id`.execute(db)
  return rows.length === 1
}

const FIND_TO_COMMIT = OWNERS.define(
  (asked) => sql`
  select p.application_id as "applicationId", p.is_multi_device as "isMultiDevice", ${selectColumns(COMMIT_COLUMNS)}
  ${fromOwners(asked)}
  order by i.position`,
)
