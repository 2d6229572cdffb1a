// The table unique_value: nonces that may be used once (v3 §14).
import { sql } from 'kysely'
import { type Db, isUniqueViolation, type Pool } from './database.ts'

export interface UniqueValue {
  /** SHA-256, 32 bytes. */
  readonly valueHash: Uint8Array
  readonly expiresAt: Date
}

/** True when one of the values was used before. */
export async function anyUniqueValueUsed(db: Db, values: readonly UniqueValue[]): Promise<boolean> {
  for (const value of values) {
    const row = await db
      .selectFrom('unique_value')
      .select('value_hash')
      .where('value_hash', '=', Buffer.from(value.valueHash))
      .executeTakeFirst()
    if (row !== undefined) return true
  }
  return false
}

/** Uses up all values, or none of them when one was used before: one statement, so a refused request burns nothing. */
export async function useUniqueValues(db: Pool, values: readonly UniqueValue[]): Promise<boolean> {
  if (values.length === 0) return true
  // In one order: two requests with the same values would otherwise wait for each other, each for the one it lacks.
  const ordered = values.toSorted((one, other) => Buffer.compare(one.valueHash, other.valueHash))
  try {
    await db
      .insertInto('unique_value')
      .values(ordered.map((value) => ({ value_hash: value.valueHash, expires_at: value.expiresAt })))
      .execute()
    return true
  } catch (error) {
    if (isUniqueViolation(error)) return false
    throw error
  }
}

/** Deletes up to `limit` values whose window has passed. */
export async function deleteExpiredUniqueValues(db: Db, at: Date, limit: number): Promise<number> {
  const { rows } = await sql`
    delete from unique_value where value_hash in (
      select value_hash from unique_value where expires_at <= ${at} order by expires_at limit ${limit} for update skip locked
    ) returning value_hash`.execute(db)
  return rows.length
}
