// Limits how many phones a user may have in an application: no two live activations of a user have the same slot
// (docs/decisions/0007-one-live-registration.md).
import { type RawBuilder, sql } from 'kysely'
import type { Db, Tx } from '../database/database.ts'

/**
 * Composes the slot of a new activation for the inserting statement: its own id where a user may have several phones, else empty. With several
 * phones the row of the application is share-locked until the end of the transaction, so that the insert and a switch to one phone wait for each
 * other.
 */
export const slotOf = (applicationId: RawBuilder<unknown>, activationId: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`coalesce((select ${activationId} from application where application_id = ${applicationId} and is_multi_device for share), '')`

/**
 * Reads whether a user may have several phones, and locks the row until the end of the transaction; rows that refer to the application can still be
 * inserted. Undefined when there is no such application.
 */
export async function lockMultiDevice(tx: Tx, applicationId: string): Promise<boolean | undefined> {
  const { rows } = await sql<{ isMultiDevice: boolean }>`
    select is_multi_device as "isMultiDevice" from application where application_id = ${applicationId} for no key update`.execute(
    tx,
  )
  return rows[0]?.isMultiDevice
}

/**
 * Finds a user with several live activations. It reads each live activation of the application once, whatever the statistics of the table say: a
 * join of the table with itself took the time of all pairs where the planner expected few rows.
 */
export async function findUserOfSeveral(db: Db, applicationId: string): Promise<string | undefined> {
  const { rows } = await sql<{ userId: string }>`
    select user_id as "userId" from activation where application_id = ${applicationId} and state <> 'REMOVED'
    group by user_id having count(*) > 1 limit 1`.execute(db)
  return rows[0]?.userId
}

/** Stores whether a user may have several phones. */
export async function setMultiDevice(tx: Tx, applicationId: string, isMultiDevice: boolean): Promise<void> {
  await sql`update application set is_multi_device = ${isMultiDevice} where application_id = ${applicationId}`.execute(tx)
}

/**
 * Empties the slots of up to `limit` live activations with ids after `after`, in order of id. Returns the last of these ids; undefined when no more
 * are left. Throws a unique violation when a user has got a second live activation meanwhile.
 */
export async function emptySlots(tx: Tx, applicationId: string, after: string, limit: number): Promise<string | undefined> {
  const { rows } = await sql<{ last: string | null }>`
    with taken as (
      select activation_id from activation
      where application_id = ${applicationId} and state <> 'REMOVED' and device_slot <> '' and activation_id > ${after}
      order by activation_id limit ${limit} for no key update
    ), emptied as (
      update activation a set device_slot = '' from taken where a.activation_id = taken.activation_id
    )
    select max(activation_id) as last from taken`.execute(tx)
  return rows[0]?.last ?? undefined
}

/**
 * Locks the creation of registrations for this user until the end of the transaction. Another request could otherwise read the same rows, and
 * create a registration too.
 */
export async function lockNewRegistrations(
  tx: Tx,
  { applicationId, userId }: { readonly applicationId: string; readonly userId: string },
): Promise<void> {
  const name = JSON.stringify(['pawl.registration', applicationId, userId])
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`.execute(tx)
}
