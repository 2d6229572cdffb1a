// A new activation.
import { type Insertable, sql } from 'kysely'
import { type AuditEvent, insertAuditEvent } from '../audit.ts'
import type { Tx } from '../database.ts'
import type { ActivationTable } from '../schema.ts'
import { insertHistoryFrom } from './history.ts'

/** Inserts a CREATED activation with history and audit row. Throws a unique violation when the user has a live one, or the code exists. */
export async function insertActivation(tx: Tx, row: Insertable<ActivationTable>, audit: AuditEvent): Promise<void> {
  await tx.insertInto('activation').values(row).execute()
  await insertHistoryFrom(sql`(select ${row.activation_id}::text as activation_id) as created`, {
    to: sql`${row.state}::text`,
    at: sql`${row.created_at}::timestamptz`,
  }).execute(tx)
  await insertAuditEvent(tx, audit)
}
