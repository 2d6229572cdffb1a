// Helps tests of the audit log: writes rows, seals until all rows are sealed, and undoes changes of the database.
import type { Context } from '../../src/context.ts'
import { createAuditSealer } from '../../src/domain/audit/seal.ts'
import { insertAuditEvent } from '../../src/storage/audit/audit.ts'
import { AUDIT_LOGS } from '../../src/storage/audit/chain.ts'
import { findUnsealed } from '../../src/storage/audit/rows.ts'
import { type Db, inTransaction, type Pool, type Tx } from '../../src/storage/database/database.ts'

/** Writes one audit row. */
export async function writeRow(context: Context, db: Db, applicationId: string | null, text: string): Promise<void> {
  await insertAuditEvent(db, {
    applicationId,
    userId: 'alice',
    activationId: 'a-1',
    eventType: 'test_row',
    eventData: text,
    occurredAt: new Date(context.platform.now()),
  })
}

/** Seals until every row of both tables is sealed, whatever the server's own sealer does meanwhile. It never ends on a broken chain. */
export async function sealAll(context: Context, seal = createAuditSealer(context)): Promise<void> {
  do await seal()
  while (await isUnsealed(context.db))
}

/** Runs `act` and `look` in a transaction, rolls it back, and returns the result of `look`. */
export async function lookAndUndo<T>(db: Pool, act: (tx: Tx) => Promise<void>, look: (tx: Tx) => Promise<T>): Promise<T> {
  const undone = new Error('undone')
  let seen: { value: T } | undefined
  await inTransaction(db, async (tx) => {
    await act(tx)
    seen = { value: await look(tx) }
    throw undone
  }).catch((error: unknown) => {
    if (error !== undone) throw error
  })
  if (seen === undefined) throw new Error('nothing was seen')
  return seen.value
}

async function isUnsealed(db: Db): Promise<boolean> {
  const rows = await Promise.all(AUDIT_LOGS.map((log) => findUnsealed(db, log, 1, [])))
  return rows.flat().length > 0
}
