// A new activation.
import type { Insertable } from 'kysely'
import { type AuditEvent, insertAuditEvent } from '../audit.ts'
import type { Tx } from '../database.ts'
import type { ActivationTable } from '../schema.ts'

/** Inserts a CREATED activation with history and audit row. Throws a unique violation when the user has a live one, or the code exists. */
export async function insertActivation(tx: Tx, row: Insertable<ActivationTable>, audit: AuditEvent): Promise<void> {
  await tx.insertInto('activation').values(row).execute()
  await tx
    .insertInto('activation_history')
    .values({ activation_id: row.activation_id, to_state: row.state, occurred_at: row.created_at })
    .execute()
  await insertAuditEvent(tx, audit)
}
