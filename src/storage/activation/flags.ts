// The flags of an activation (cloud §10).
import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { effectiveStateAt, stateAt } from './seen-state.ts'

/** The flags of an activation; none when there is no such activation. */
export async function findActivationFlags(db: Db, activationId: string): Promise<readonly string[]> {
  const row = await db.selectFrom('activation').select('flags').where('activation_id', '=', activationId).executeTakeFirst()
  return row?.flags.split(',').filter(Boolean) ?? []
}

/** Sets the flags of a live activation with history and audit row; false when there is none. `flags`: comma list. */
export async function setActivationFlags(db: Db, activationId: string, flags: string, at: Date): Promise<boolean> {
  const eventData = JSON.stringify({ flags })
  const { rows } = await sql`
    with changed as (
      update activation set flags = ${flags}, row_version = row_version + 1
      where activation_id = ${activationId} and ${effectiveStateAt(at)} <> 'REMOVED'
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
