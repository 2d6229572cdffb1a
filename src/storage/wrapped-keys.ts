// The table wrapped_key: random keys of the installation, sealed under the master key.
import type { Db } from './database.ts'

/** The sealed key of a purpose. */
export async function findWrappedKey(db: Db, purpose: string): Promise<Buffer | undefined> {
  const row = await db.selectFrom('wrapped_key').select('wrapped_key').where('purpose', '=', purpose).executeTakeFirst()
  return row?.wrapped_key
}

/** Stores a sealed key; false when the purpose has one already (another process may start at the same time, whose transaction is awaited). */
export async function insertWrappedKey(db: Db, purpose: string, wrappedKey: Uint8Array, at: Date): Promise<boolean> {
  const inserted = await db
    .insertInto('wrapped_key')
    .values({ purpose, wrapped_key: wrappedKey, created_at: at })
    .onConflict((conflict) => conflict.column('purpose').doNothing())
    .returning('purpose')
    .executeTakeFirst()
  return inserted !== undefined
}
