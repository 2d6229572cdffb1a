// Stores random keys of the installation, sealed under the master key, in the table wrapped_key.
import { sql } from 'kysely'
import { type Db, writesRow } from '../database/database.ts'

/** True when the table exists; an empty database has none. */
export async function hasWrappedKeys(db: Db): Promise<boolean> {
  const { rows } = await sql<{ isThere: boolean }>`select to_regclass('wrapped_key') is not null as "isThere"`.execute(db)
  return rows[0]?.isThere === true
}

/** Finds the sealed key of a purpose. */
export async function findWrappedKey(db: Db, purpose: string): Promise<Buffer | undefined> {
  const { rows } = await sql<{ wrappedKey: Buffer }>`
    select wrapped_key as "wrappedKey" from wrapped_key where purpose = ${purpose}`.execute(db)
  return rows[0]?.wrappedKey
}

/** Stores a sealed key. False when the purpose has one; when another process inserts one at the same time, its transaction is awaited. */
export const insertWrappedKey = (db: Db, purpose: string, wrappedKey: Uint8Array, at: Date): Promise<boolean> =>
  writesRow(
    db,
    sql`insert into wrapped_key (purpose, wrapped_key, created_at) values (${purpose}, ${wrappedKey}, ${at})
      on conflict (purpose) do nothing`,
  )
