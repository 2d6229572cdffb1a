// How many phones a user may have in an application: no two live activations of a user have one slot
// (docs/decisions/0007-one-live-registration.md).
import { type RawBuilder, sql } from 'kysely'
import type { Db, Tx } from '../database/database.ts'

/**
 * The slot of a new activation, for the statement that inserts it: its own id where a user may have several phones, else empty. There the row of
 * the application is read as it is, and kept so until the end of the transaction: a switch to one phone waits for it, and it for the switch.
 */
export const slotOf = (applicationId: RawBuilder<unknown>, activationId: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`coalesce((select ${activationId} from application where application_id = ${applicationId} and is_multi_device for share), '')`

/**
 * Whether a user may have several phones; locked until the end of the transaction, but not for rows that refer to the application. Undefined when
 * there is no such application.
 */
export async function lockMultiDevice(tx: Tx, applicationId: string): Promise<boolean | undefined> {
  const row = await tx
    .selectFrom('application')
    .select('is_multi_device as isMultiDevice')
    .where('application_id', '=', applicationId)
    .forNoKeyUpdate()
    .executeTakeFirst()
  return row?.isMultiDevice
}

/** A user with several live activations, if there is one. Who has none with a slot of its own has one at the most. */
export async function findUserOfSeveral(db: Db, applicationId: string): Promise<string | undefined> {
  const { rows } = await sql<{ userId: string }>`
    select a.user_id as "userId" from activation a
    where a.application_id = ${applicationId} and a.state <> 'REMOVED' and a.device_slot <> '' and exists (
      select from activation b where b.application_id = a.application_id and b.user_id = a.user_id and b.state <> 'REMOVED'
        and b.activation_id <> a.activation_id
    ) limit 1`.execute(db)
  return rows[0]?.userId
}

/** Stores whether a user may have several phones. */
export async function setMultiDevice(tx: Tx, applicationId: string, isMultiDevice: boolean): Promise<void> {
  await tx
    .updateTable('application')
    .set({ is_multi_device: isMultiDevice })
    .where('application_id', '=', applicationId)
    .execute()
}

/**
 * Empties the slots of up to `limit` live activations with ids behind `after`, and gives the last of these ids; undefined when there are no more.
 * Throws a unique violation when a user has got a second live one meanwhile.
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

/** Keeps out until the end of the transaction who would make another registration of this user after the same look. */
export async function lockNewRegistrations(
  tx: Tx,
  { applicationId, userId }: { readonly applicationId: string; readonly userId: string },
): Promise<void> {
  const name = JSON.stringify(['pawl.registration', applicationId, userId])
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`.execute(tx)
}
