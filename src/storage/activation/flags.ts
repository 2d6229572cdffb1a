// The flags of an activation (cloud §10).
import { sql } from 'kysely'
import { insertAuditFrom } from '../audit/audit.ts'
import { toList } from '../database/columns.ts'
import type { Db, Tx } from '../database/database.ts'
import { insertHistoryFrom } from './history.ts'
import { effectiveStateAt, stateAt } from './seen-state.ts'

/** The flags of an activation; none when there is no such activation. */
export async function findActivationFlags(db: Db, activationId: string): Promise<readonly string[]> {
  const row = await selectFlags(db, activationId).executeTakeFirst()
  return toList(row?.flags ?? '')
}

/** The same, locked until the end of the transaction. */
export async function lockActivationFlags(tx: Tx, activationId: string): Promise<readonly string[]> {
  const row = await selectFlags(tx, activationId).forUpdate().executeTakeFirst()
  return toList(row?.flags ?? '')
}

const selectFlags = (db: Db, activationId: string) =>
  db.selectFrom('activation').select('flags').where('activation_id', '=', activationId)

/**
 * Sets the flags of a live activation with history and audit row; false when there is none. `username`: of the credential, where no audit row of
 * administrators names it.
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
