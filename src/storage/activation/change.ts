// Changes the state, the name and the flags of an activation.
import { type RawBuilder, sql } from 'kysely'
import { AUDIT_GIVEN, AUDIT_OF_GIVEN, type AuditEvent, insertAuditFrom, toAuditGiven } from '../audit/audit.ts'
import type { Db, Tx } from '../database/database.ts'
import { defineGivenRows } from '../database/bulk-statement.ts'
import type { ActivationState } from '../database/schema.ts'
import { defineSharedWrite } from '../database/batched-statement.ts'
import { insertHistoryFrom } from './history.ts'
import { toList } from '../database/columns.ts'
import { effectiveStateAt, stateAt } from './seen-state.ts'

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
 * Moves an activation from one state to another, with a history and an audit row, in a statement that concurrent calls share. False when another
 * request changed the activation first. The OTP is deleted, because no target state needs it. ACTIVE resets the failed attempts and the blocks in a
 * row. BLOCKED lasts until an unblock. REMOVED deletes the QR text, the push registration and a waiting upgrade.
 */
export const changeState = (db: Db, change: StateChange, audit: AuditEvent): Promise<boolean> =>
  (change.to === 'REMOVED' ? remove : move)(db, { change, audit })

/** Names the person and the credential behind a change that a back end asks for. */
export interface ChangedBy {
  /** User name of the credential that made the call. */
  readonly username: string
  /** The person, by a name that the bank chose. */
  readonly externalUserId: string | null
}

/**
 * Renames an ACTIVE or BLOCKED activation; false when it was removed. A block after the request's code was accepted does not prevent the renaming.
 * `by` is absent when the phone asks for it; otherwise an audit row is written, without the name.
 */
export async function renameActivation(db: Db, activationId: string, name: string, at: Date, by?: ChangedBy): Promise<boolean> {
  const audited = sql`, audited as (
      ${insertAuditFrom(sql`renamed`, {
        eventType: sql`'registration_renamed'`,
        eventData: sql`'{}'`,
        occurredAt: sql`${at}::timestamptz`,
        verifiedBy: sql`${by?.username}::text`,
      })}
    )`
  const { rows } = await sql`
    with renamed as (
      update activation set name = ${name} where activation_id = ${activationId} and state in ('ACTIVE', 'BLOCKED')
      returning activation_id, application_id, user_id, state
    )${by === undefined ? sql`` : audited}
    ${insertHistoryFrom(sql`renamed`, {
      from: sql`state`,
      to: sql`state`,
      reason: sql`'ACTIVATION_NAME_UPDATED'`,
      ...(by && { externalUserId: sql`${by.externalUserId}::text` }),
      at: sql`${at}::timestamptz`,
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
 * Sets the flags of a live activation, with a history and an audit row; false when there is none. `username` names the credential in the audit row;
 * it is left out when an admin event names the credential.
 */
export async function setActivationFlags(
  db: Db,
  activationId: string,
  list: readonly string[],
  at: Date,
  username?: string,
): Promise<boolean> {
  const flags = list.join(',')
  const eventData = JSON.stringify({ flags })
  const { rows } = await sql`
    with changed as (
      update activation set flags = ${flags}, row_version = row_version + 1
      where activation_id = ${activationId} and ${effectiveStateAt(at)} <> 'REMOVED'
      returning activation_id, application_id, user_id, ${stateAt(at)} as state
    ), history as (
      ${insertHistoryFrom(sql`changed`, {
        from: sql`state`,
        to: sql`state`,
        reason: sql`'ACTIVATION_FLAGS_UPDATED'`,
        at: sql`${at}::timestamptz`,
      })}
    )
    ${insertAuditFrom(sql`changed`, {
      eventType: sql`'registration_flags_changed'`,
      eventData: sql`${eventData}::text`,
      occurredAt: sql`${at}::timestamptz`,
      verifiedBy: sql`${username ?? null}::text`,
    })}
    returning activation_id`.execute(db)
  return rows.length === 1
}

const CHANGES = defineGivenRows<StateChange & ReturnType<typeof toAuditGiven>>({
  activationId: 'text',
  rowVersion: 'int',
  from: 'text',
  to: 'text',
  reason: 'text',
  externalUserId: 'text',
  at: 'timestamptz',
  ...AUDIT_GIVEN,
})

/**
 * Composes the statement that stores changes with their history and audit rows. `changes` is a table with the columns of CHANGES. `andForget` adds
 * parts to the statement that use its table `moved`.
 */
const composeChanges = (changes: RawBuilder<unknown>, andForget: RawBuilder<unknown> = sql``): RawBuilder<unknown> => sql`
  with moved as (
    update activation a set state = i."to", row_version = a.row_version + 1,
      blocked_reason = case when i."to" = 'BLOCKED' then i.reason end,
      failed_attempts = case when i."to" = 'ACTIVE' then 0 else a.failed_attempts end,
      blocks_in_row = case when i."to" = 'ACTIVE' then 0 else a.blocks_in_row end, block_expires_at = null,
      activation_qr_code = case when i."to" = 'REMOVED' then null else a.activation_qr_code end, otp_hash = null
    from ${changes} as i
    where a.activation_id = i."activationId" and a.row_version = i."rowVersion" and a.state = i."from"
    returning a.activation_id, i."applicationId", i."userId", i."eventType", i."eventData", i."from", i."to", i.reason,
      i."externalUserId", i."verifiedBy", i.at
  ), history as (
    ${insertHistoryFrom(sql`moved`, {
      from: sql`"from"`,
      to: sql`"to"`,
      reason: sql`reason`,
      externalUserId: sql`"externalUserId"`,
      at: sql`at`,
    })}
  )${andForget}
  ${insertAuditFrom(sql`moved`, AUDIT_OF_GIVEN)}
  returning activation_id`

interface AuditedChange {
  readonly change: StateChange
  readonly audit: AuditEvent
}

const defineSharedChange = (andForget?: RawBuilder<unknown>) =>
  defineSharedWrite({
    statement: CHANGES.define((changes) => composeChanges(changes, andForget)),
    toRow: ({ change, audit }: AuditedChange) => ({ ...change, ...toAuditGiven(audit) }),
    idOf: ({ change }) => change.activationId,
    column: 'activation_id',
  })

const move = defineSharedChange()
const remove = defineSharedChange(sql`, forgotten as (
    delete from push_registration p using moved where p.activation_id = moved.activation_id
  ), abandoned as (
    delete from activation_upgrade u using moved where u.activation_id = moved.activation_id
  )`)
