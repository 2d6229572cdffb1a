// An activation as its commit needs it, and wrong OTPs before it (v3 §8.5).
import { sql } from 'kysely'
import { type AuditEvent, insertAuditEventFrom } from '../audit.ts'
import type { Db } from '../database.ts'
import { defineGivenRows } from '../given-rows.ts'
import type { ActivationState, CommitPhase } from '../schema.ts'
import { defineSharedTrip } from '../shared-trips.ts'
import { composeChanges } from './change.ts'
import { fromOwners, type OwnerNames, OWNERS } from './find.ts'
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

/** The application in which something is committed, and the live activation of the user there. */
export interface RegistrationToCommit {
  readonly applicationId: string
  readonly live: CommitRow | undefined
}

/** Reads both in one statement, shared with what others ask. Undefined when there is no such application. */
export const findRegistrationToCommit = defineSharedTrip(
  async (db, owners: readonly OwnerNames[]): Promise<readonly (RegistrationToCommit | undefined)[]> => {
    const { rows } = await db.executeQuery<CommitColumns>(
      FIND_TO_COMMIT(owners.map((owner, position) => ({ ...owner, position }))),
    )
    return rows.map(toRegistration)
  },
)

type CommitColumns =
  | { readonly applicationId: null }
  | ({ readonly applicationId: string } & ({ readonly activationId: null } | CommitRow))

const toRegistration = (row: CommitColumns): RegistrationToCommit | undefined =>
  row.applicationId === null ? undefined : { applicationId: row.applicationId, live: row.activationId === null ? undefined : row }

/** A commit by the owner's name alone. */
export interface NamedCommit extends OwnerNames {
  readonly externalUserId: string | null
  readonly at: Date
  readonly eventType: string
  readonly eventData: string
}

/**
 * PENDING_COMMIT to ACTIVE with history and audit row, in a statement that is shared with others. Returns the id of the activation; undefined
 * when the user has none that waits, or one with an OTP: findRegistrationToCommit says which.
 */
export const commitWithoutOtp = defineSharedTrip(
  async (db, commits: readonly NamedCommit[]): Promise<readonly (string | undefined)[]> => {
    const ordered = commits.toSorted((one, other) => (one.userId < other.userId ? -1 : 1))
    const { rows } = await db.executeQuery<{ readonly activation_id: string; readonly user_id: string }>(COMMIT(ordered))
    const committed = new Map(rows.map((row) => [row.user_id, row.activation_id]))
    return commits.map(({ userId }) => committed.get(userId))
  },
  // The default application may be named or not: two commits of one user may mean the same activation.
  { keyOf: ({ userId }) => userId },
)

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

const FIND_TO_COMMIT = OWNERS.define(
  (asked) => sql`
  select p.application_id as "applicationId", a.activation_id as "activationId", a.user_id as "userId", a.state,
    a.row_version as "rowVersion", a.expires_at as "expiresAt", a.failed_attempts as "failedAttempts",
    a.max_failed_attempts as "maxFailedAttempts", a.commit_phase as "commitPhase", a.otp_hash as "otpHash"
  ${fromOwners(asked)}
  order by i.position`,
)

const COMMITS = defineGivenRows<NamedCommit>({
  applicationId: 'text',
  userId: 'text',
  externalUserId: 'text',
  at: 'timestamptz',
  eventType: 'text',
  eventData: 'text',
})

const COMMIT = COMMITS.define((asked) =>
  composeChanges(sql`(
    select a.activation_id as "activationId", a.row_version as "rowVersion", a.state as "from", 'ACTIVE' as "to", null as reason,
      a.application_id as "applicationId", i."userId", i."externalUserId", i.at, i."eventType", i."eventData"
    ${fromOwners(asked)}
    where a.state = 'PENDING_COMMIT' and a.otp_hash is null and a.expires_at > i.at
  )`),
)
