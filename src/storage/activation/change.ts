// Changes the state, the name and the flags of an activation.
import { type RawBuilder, sql } from 'kysely'
import { type AuditEvent, insertAuditFrom } from '../audit/audit.ts'
import type { Db, Tx } from '../database/database.ts'
import type { ActivationState } from '../database/schema.ts'
import { insertHistoryFrom } from './history.ts'
import { toList } from '../database/columns.ts'
import { endTemporaryBlock } from './expiry.ts'
import { effectiveStateAt } from './seen-state.ts'

/** A change of state; it is stored with a history row. */
interface StateChange {
  readonly activationId: string
  readonly rowVersion: number
  readonly from: ActivationState
  readonly to: ActivationState
  readonly reason: string | null
  readonly externalUserId: string | null
  readonly at: Date
}

/**
 * Moves an activation from one state to another, with a history and an audit row. False when another request changed the activation first. The OTP
 * is deleted, because no target state needs it. ACTIVE resets the failed attempts and the blocks in a row. BLOCKED lasts until an unblock. REMOVED
 * deletes the QR text, the push registration and a waiting upgrade.
 */
export async function changeState(
  db: Db,
  { activationId, rowVersion, from, to, reason, externalUserId, at }: StateChange,
  audit: AuditEvent,
): Promise<boolean> {
  const { rows } = await sql`
    with moved as (
      update activation set state = ${to}, row_version = row_version + 1, block_expires_at = null, otp_hash = null,
        blocked_reason = ${to === 'BLOCKED' ? reason : null}${ALSO_SET[to] ?? sql``}
      where activation_id = ${activationId} and row_version = ${rowVersion} and state = ${from}
      returning activation_id
    ), history as (
      ${insertHistoryFrom(sql`moved`, { from, to, reason, externalUserId, at })}
    )${to === 'REMOVED' ? forgetRest(sql`moved`) : sql``}
    ${insertAuditFrom(sql`moved`, audit)} returning activation_id`.execute(db)
  return rows.length === 1
}

const ALSO_SET: Partial<Record<ActivationState, RawBuilder<unknown>>> = {
  ACTIVE: sql`, failed_attempts = 0, blocks_in_row = 0`,
  REMOVED: sql`, activation_qr_code = null`,
}

/** Composes the parts of a statement that delete push registrations and waiting upgrades of removed activations, the rows of `removed`. */
export const forgetRest = (removed: RawBuilder<unknown>): RawBuilder<unknown> => sql`, forgotten as (
      delete from push_registration p using ${removed} where p.activation_id = ${removed}.activation_id
    ), abandoned as (
      delete from activation_upgrade u using ${removed} where u.activation_id = ${removed}.activation_id
    )`

/** Names the person and the credential behind a change that a back end asks for. */
export interface ChangedBy {
  /** User name of the credential that made the call. */
  readonly username: string
  /** The person, by a name that the bank chose. */
  readonly externalUserId: string | null
}

/**
 * Renames an ACTIVE or BLOCKED activation; false when it was removed. A block after the request's code was accepted does not prevent the renaming.
 * `by` is absent when the phone asks for it. Otherwise an audit row is written, without the name, and a temporary block that is over is ended first,
 * so that the history has its end before the renaming; the code of a phone has ended it already.
 */
export async function renameActivation(db: Db, activationId: string, name: string, at: Date, by?: ChangedBy): Promise<boolean> {
  if (by !== undefined) await endTemporaryBlock(db, activationId, at)
  const audited = sql`, audited as (
      ${insertAuditFrom(sql`renamed`, { eventType: 'registration_renamed', eventData: '{}', occurredAt: at, verifiedBy: by?.username })}
    )`
  const { rows } = await sql`
    with renamed as (
      update activation set name = ${name} where activation_id = ${activationId} and state in ('ACTIVE', 'BLOCKED')
      returning activation_id, application_id, user_id, state
    )${by === undefined ? sql`` : audited}
    ${insertHistoryFrom(sql`renamed`, {
      from: sql`state`,
      to: sql`state`,
      reason: 'ACTIVATION_NAME_UPDATED',
      externalUserId: by?.externalUserId ?? null,
      at,
    })}
    returning activation_id`.execute(db)
  return rows.length === 1
}

/** Reads the flags of an activation (cloud §10); an empty list when there is no such activation. */
export async function findActivationFlags(db: Db, activationId: string): Promise<readonly string[]> {
  const row = await selectFlags(db, activationId).executeTakeFirst()
  return toList(row?.flags ?? '')
}

/** Reads the flags and locks the row until the end of the transaction. */
export async function lockActivationFlags(tx: Tx, activationId: string): Promise<readonly string[]> {
  const row = await selectFlags(tx, activationId).forUpdate().executeTakeFirst()
  return toList(row?.flags ?? '')
}

const selectFlags = (db: Db, activationId: string) =>
  db.selectFrom('activation').select('flags').where('activation_id', '=', activationId)

/**
 * Sets the flags of a live activation, with a history and an audit row; false when there is none. A temporary block that is over is ended first, as
 * by renameActivation. `username` names the credential in the audit row.
 */
export async function setActivationFlags(
  db: Db,
  activationId: string,
  list: readonly string[],
  at: Date,
  username: string,
): Promise<boolean> {
  const flags = list.join(',')
  const eventData = JSON.stringify({ flags })
  await endTemporaryBlock(db, activationId, at)
  const { rows } = await sql`
    with changed as (
      update activation set flags = ${flags}, row_version = row_version + 1
      where activation_id = ${activationId} and ${effectiveStateAt(at)} <> 'REMOVED'
      returning activation_id, application_id, user_id, state
    ), history as (
      ${insertHistoryFrom(sql`changed`, { from: sql`state`, to: sql`state`, reason: 'ACTIVATION_FLAGS_UPDATED', at })}
    )
    ${insertAuditFrom(sql`changed`, { eventType: 'registration_flags_changed', eventData, occurredAt: at, verifiedBy: username })}
    returning activation_id`.execute(db)
  return rows.length === 1
}
