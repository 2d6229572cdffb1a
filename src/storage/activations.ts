// The table activation: what the phone and the bank read, and the conditional writes that move it.
import { CompiledQuery, type Insertable, sql } from 'kysely'
import { type AuditEvent, insertAuditEvent, insertAuditEventFrom, insertAuditEventsFrom } from './audit.ts'
import type { Db, Tx } from './database.ts'
import type { ActivationAlgorithm, ActivationState, ActivationTable, CommitPhase } from './schema.ts'
import {
  composeTaken,
  composeVersionJoin,
  toVersion,
  VERSION_COLUMNS,
  type VersionColumns,
  type VersionRow,
} from './seen-version.ts'
import { type BlockColumns, blockExpiresAt, composeSeenColumns, isBlockOver, stateAt } from './seen-state.ts'

/** An activation as a device request needs it. Bytes marked sealed are encrypted records. */
export interface ActivationRow extends BlockColumns {
  readonly activationId: string
  readonly applicationId: string
  readonly userId: string
  readonly state: ActivationState
  readonly protocolVersion: number | null
  /** Null in protocol 3. */
  readonly algorithm: ActivationAlgorithm | null
  /** The phone has not yet confirmed what it activated (v4 §9.6). */
  readonly isConfirmationPending: boolean
  /** Null in protocol 3, where the phone alone decides. */
  readonly isBiometryEnabled: boolean | null
  /** Set when this is what becomes of an activation of protocol 3 once its phone confirms (v4 §10). */
  readonly isUpgradePending?: true
  readonly serverPublicKey: Buffer
  /** sealed */
  readonly serverPrivateKey: Buffer
  /** sealed */
  readonly masterSecret: Buffer | null
  /** sealed */
  readonly ctrData: Buffer | null
  readonly counter: number
  readonly failedAttempts: number
  readonly maxFailedAttempts: number
  /** Blocks by failed attempts since the last success or UNBLOCK. */
  readonly blocksInRow: number
  /** Text of the highest protocol version that the phone has spoken; null when it is not known. It never goes back. */
  readonly highestVersion: string | null
  readonly name: string | null
  readonly rowVersion: number
  readonly expiresAt: Date
}

export interface RequestParties {
  readonly version: VersionRow | undefined
  readonly activation: ActivationRow | undefined
}

/** Reads the version and the activation that a device request names, in one round trip; either may be missing. */
export async function findRequestParties(
  db: Db,
  applicationKey: string,
  activationId: string,
  at: Date,
): Promise<RequestParties> {
  const { rows } = await db.executeQuery<RequestPartiesRow>(
    CompiledQuery.raw(FIND_REQUEST_PARTIES, [applicationKey, activationId, at]),
  )
  const [row] = rows
  return row === undefined ? { version: undefined, activation: undefined } : toRequestParties(row)
}

/** A row of VERSION_COLUMNS and composeActivationColumns, both outer joined. */
export type RequestPartiesRow = Nullable<ActivationRow> & VersionColumns

/** Splits a joined row into its parties. */
export const toRequestParties = (row: RequestPartiesRow): RequestParties => ({
  version: toVersion(row),
  activation: row.activationId === null ? undefined : (row as ActivationRow),
})

/** One activation by its id, in whatever state. */
export async function findActivation(db: Db, activationId: string, at: Date): Promise<ActivationRow | undefined> {
  const { rows } = await db.executeQuery<ActivationRow>(CompiledQuery.raw(FIND_ACTIVATION, [activationId, at]))
  return rows[0]
}

/** An activation before its key exchange. */
export interface WaitingActivationRow extends ActivationRow {
  readonly commitPhase: CommitPhase
  readonly otpHash: Buffer | null
}

/** The activation that waits for this code in this application. */
export async function findActivationByCode(
  db: Db,
  applicationId: string,
  codeHash: Uint8Array,
  at: Date,
): Promise<WaitingActivationRow | undefined> {
  const { rows } = await db.executeQuery<WaitingActivationRow>(
    CompiledQuery.raw(FIND_ACTIVATION_BY_CODE, [applicationId, codeHash, at]),
  )
  return rows[0]
}

/** The flags of an activation; none when there is no such activation. */
export async function findActivationFlags(db: Db, activationId: string): Promise<readonly string[]> {
  const row = await db.selectFrom('activation').select('flags').where('activation_id', '=', activationId).executeTakeFirst()
  return row?.flags.split(',').filter(Boolean) ?? []
}

/** What a checked code changes. */
export interface AuthenticationOutcome {
  readonly activationId: string
  readonly rowVersion: number
  readonly counter: number
  /** sealed */
  readonly ctrData: Uint8Array
  /** sealed; null when it stays */
  readonly masterSecret: Uint8Array | null
  readonly failedAttempts: number
  readonly state: ActivationState
  readonly blockedReason: string | null
  /** Of a temporary block. */
  readonly blockExpiresAt: Date | null
  readonly blocksInRow: number
  /** For an acceptance the application key it was accepted for: its version must still be supported. Null for a refusal. */
  readonly acceptedFor: string | null
  /**
   * For an acceptance the protocol version of the code, which is then the highest of the activation; the application must still take it.
   * Null when that stays.
   */
  readonly highestVersion: string | null
  readonly at: Date
}

/**
 * Stores the outcome of a checked code and its audit row in one statement, if the activation is still the one that was read.
 * False when it is not: the caller reads and decides again.
 */
export async function storeAuthentication(db: Db, outcome: AuthenticationOutcome, audit: AuditEvent): Promise<boolean> {
  const { activationId, rowVersion, counter, ctrData, masterSecret, failedAttempts, blocksInRow, state, blockedReason } = outcome
  const { rows } = await db.executeQuery(
    CompiledQuery.raw(selectStatement(outcome), [
      activationId,
      rowVersion,
      counter,
      ctrData,
      failedAttempts,
      state,
      blockedReason,
      outcome.at,
      audit.applicationId,
      audit.userId,
      audit.eventType,
      audit.eventData,
      outcome.acceptedFor,
      blocksInRow,
      outcome.highestVersion,
      ...(blockedReason === null ? [] : [outcome.blockExpiresAt]),
      ...(masterSecret === null ? [] : [masterSecret]),
    ]),
  )
  return rows.length === 1
}

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
      insert into activation_history (activation_id, from_state, to_state, reason, external_user_id, occurred_at)
      select activation_id, ${change.from}::text, ${change.to}::text, ${change.reason}::text, ${change.externalUserId}::text,
        ${change.at}::timestamptz from moved
    ), forgotten as (
      delete from push_registration p using moved where p.activation_id = moved.activation_id and ${change.to}::text = 'REMOVED'
    ), abandoned as (
      delete from activation_upgrade u using moved where u.activation_id = moved.activation_id and ${change.to}::text = 'REMOVED'
    )
    ${insertAuditEventFrom('moved', audit)}`.execute(db)
  return rows.length === 1
}

/** What the key exchange stores. */
export interface KeyExchange {
  readonly activationId: string
  readonly rowVersion: number
  readonly to: 'PENDING_COMMIT' | 'ACTIVE'
  readonly protocolVersion: number
  /** Text of the protocol version it was done in. */
  readonly highestVersion: string
  readonly algorithm: ActivationAlgorithm | null
  readonly isConfirmationPending: boolean
  readonly isBiometryEnabled: boolean | null
  /** Keys that were made in the exchange, in place of those of the creation. */
  readonly serverKeys: { readonly publicKey: Uint8Array /** sealed */; readonly privateKey: Uint8Array } | null
  readonly devicePublicKey: Uint8Array
  readonly activationFingerprint: string
  /** sealed */
  readonly masterSecret: Uint8Array
  /** sealed */
  readonly ctrData: Uint8Array
  readonly name: string | null
  readonly platform: string
  readonly deviceInfo: string | null
  readonly extras: string | null
  readonly externalId: string | null
  readonly at: Date
}

/**
 * CREATED to PENDING_COMMIT or ACTIVE with the device's key, together with history and audit rows. False when the code was used,
 * removed or expired meanwhile, or a wrong OTP counted.
 */
export async function storeKeyExchange(
  db: Db,
  exchange: KeyExchange,
  audit: readonly [AuditEvent, ...AuditEvent[]],
): Promise<boolean> {
  const { serverKeys } = exchange
  const { rows } = await sql`
    with moved as (
      update activation set state = ${exchange.to}, protocol_version = ${exchange.protocolVersion},
        highest_version = ${exchange.highestVersion}, algorithm = ${exchange.algorithm}, is_confirmation_pending = ${exchange.isConfirmationPending},
        is_biometry_enabled = ${exchange.isBiometryEnabled}, server_public_key = coalesce(${serverKeys?.publicKey ?? null}, server_public_key),
        server_private_key = coalesce(${serverKeys?.privateKey ?? null}, server_private_key),
        device_public_key = ${exchange.devicePublicKey}, activation_fingerprint = ${exchange.activationFingerprint},
        master_secret = ${exchange.masterSecret}, ctr_data = ${exchange.ctrData}, counter = 0, failed_attempts = 0,
        name = ${exchange.name}, platform = ${exchange.platform}, device_info = ${exchange.deviceInfo}, extras = ${exchange.extras},
        external_id = ${exchange.externalId}, activation_qr_code = null, row_version = row_version + 1,
        otp_hash = case when ${exchange.to}::text = 'PENDING_COMMIT' then otp_hash end
      where activation_id = ${exchange.activationId} and row_version = ${exchange.rowVersion} and state = 'CREATED'
        and expires_at > ${exchange.at}
      returning activation_id
    ), history as (
      insert into activation_history (activation_id, from_state, to_state, occurred_at)
      select activation_id, 'CREATED', ${exchange.to}::text, ${exchange.at}::timestamptz from moved
    )
    ${insertAuditEventsFrom('moved', audit)}`.execute(db)
  return rows.length > 0
}

/** Renames an activation whose code was accepted; a block since then takes nothing away. False when it was removed. */
export async function renameActivation(db: Db, activationId: string, name: string, at: Date): Promise<boolean> {
  const { rows } = await sql`
    with renamed as (
      update activation set name = ${name} where activation_id = ${activationId} and state in ('ACTIVE', 'BLOCKED')
      returning activation_id, state
    )
    insert into activation_history (activation_id, from_state, to_state, reason, occurred_at)
    select activation_id, state, state, 'ACTIVATION_NAME_UPDATED', ${at}::timestamptz from renamed
    returning activation_id`.execute(db)
  return rows.length === 1
}

/** A registration as the bank sees it. */
export interface RegistrationRow extends BlockColumns {
  readonly activationId: string
  readonly state: ActivationState
  readonly rowVersion: number
  readonly expiresAt: Date
  /** sealed; until the key exchange */
  readonly activationQrCode: Buffer | null
  readonly name: string | null
  readonly platform: string | null
  readonly deviceInfo: string | null
  readonly activationFingerprint: string | null
}

/** The registration of a user: the live activation, of which there is at most one. */
export async function findRegistration(
  db: Db,
  applicationId: string,
  userId: string,
  at: Date,
): Promise<RegistrationRow | undefined> {
  return db
    .selectFrom('registration')
    .select([
      'activation_id as activationId',
      stateAt(at).as('state'),
      blockExpiresAt(at).as('blockExpiresAt'),
      isBlockOver(at).as('isBlockOver'),
      'row_version as rowVersion',
      'expires_at as expiresAt',
      'activation_qr_code as activationQrCode',
      'name',
      'platform',
      'device_info as deviceInfo',
      'activation_fingerprint as activationFingerprint',
    ])
    .where('application_id', '=', applicationId)
    .where('user_id', '=', userId)
    .executeTakeFirst()
}

/** The live activation of a user, or else the one that was made last; undefined when there never was one. */
export async function findLatestActivationId(db: Db, applicationId: string, userId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('activation')
    .select('activation_id as activationId')
    .where('application_id', '=', applicationId)
    .where('user_id', '=', userId)
    .orderBy(sql`state = 'REMOVED'`)
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.activationId
}

/** Inserts a CREATED activation with history and audit row. Throws a unique violation when the user has a live one, or the code exists. */
export async function insertActivation(tx: Tx, row: Insertable<ActivationTable>, audit: AuditEvent): Promise<void> {
  await tx.insertInto('activation').values(row).execute()
  await tx
    .insertInto('activation_history')
    .values({ activation_id: row.activation_id, to_state: row.state, occurred_at: row.created_at })
    .execute()
  await insertAuditEvent(tx, audit)
}

function selectStatement({ masterSecret, blockedReason }: AuthenticationOutcome): string {
  if (blockedReason !== null) return STORE_AUTHENTICATION_AND_HISTORY
  return masterSecret === null ? STORE_AUTHENTICATION : STORE_AUTHENTICATION_AND_SECRET
}

type Nullable<T> = { [K in keyof T]: T[K] | null }

/** `at`: a placeholder or column, the time at which the activation is seen. */
export const composeActivationColumns = (
  at: string,
): string => `a.activation_id as "activationId", a.application_id as "applicationId", a.user_id as "userId",
  ${composeSeenColumns(at)}, a.protocol_version as "protocolVersion", a.server_public_key as "serverPublicKey",
  a.server_private_key as "serverPrivateKey", a.master_secret as "masterSecret", a.ctr_data as "ctrData", a.counter,
  a.blocks_in_row as "blocksInRow", a.max_failed_attempts as "maxFailedAttempts", a.name, a.row_version as "rowVersion",
  a.expires_at as "expiresAt", a.algorithm, a.is_confirmation_pending as "isConfirmationPending",
  a.is_biometry_enabled as "isBiometryEnabled", a.highest_version as "highestVersion"`

/** What is selected of the version of the application key $1 and of the activation of the id $2 at the time $3. */
export const SELECTED_PARTIES = `${VERSION_COLUMNS}, ${composeActivationColumns('$3')}`
/** From where: one row, whether there are a version and an activation or not. */
export const JOINED_PARTIES = `from (select 1) as one
  ${composeVersionJoin('$1')}
  left join activation a on a.activation_id = $2`

// The statements of every authentication, as constant text: building them anew would cost more than running them.
const FIND_REQUEST_PARTIES = `
  select ${SELECTED_PARTIES}
  ${JOINED_PARTIES}`
const FIND_ACTIVATION = `
  select ${composeActivationColumns('$2')} from activation a where a.activation_id = $1`
const FIND_ACTIVATION_BY_CODE = `
  select ${composeActivationColumns('$3')}, a.commit_phase as "commitPhase", a.otp_hash as "otpHash" from activation a
  where a.application_id = $1 and a.activation_code_hash = $2 and a.state = 'CREATED'`

const move = (further = ''): string => `moved as (
    update activation set counter = $3, ctr_data = $4, failed_attempts = $5, state = $6, blocked_reason = $7, last_used_at = $8,
      blocks_in_row = $14, highest_version = coalesce($15, highest_version), row_version = row_version + 1${further}
    where activation_id = $1 and row_version = $2
      and ($13::text is null or ${composeTaken('$13', '$15::text')})
    returning activation_id
  )`
const AUDITED = `
  insert into audit_event (application_id, user_id, activation_id, event_type, event_data, occurred_at)
  select $9::text, $10::text, activation_id, $11::text, $12::text, $8::timestamptz from moved returning activation_id`
const STORE_AUTHENTICATION = `with ${move()}${AUDITED}`
const STORE_AUTHENTICATION_AND_SECRET = `with ${move(', master_secret = $16')}${AUDITED}`
const STORE_AUTHENTICATION_AND_HISTORY = `with ${move(', block_expires_at = $16')}, history as (
    insert into activation_history (activation_id, from_state, to_state, reason, occurred_at)
    select activation_id, 'ACTIVE', $6::text, $7::text, $8::timestamptz from moved
  )${AUDITED}`
