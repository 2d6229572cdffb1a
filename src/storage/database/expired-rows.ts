// Deleting rows whose time is over, a batch at a time, so that no statement holds many locks.
import { sql } from 'kysely'
import type { Db } from './database.ts'
import type { Schema } from './schema.ts'

/** Deletes up to `limit` rows of a table whose `expires_at` has come, the oldest first; `key`: the columns of its primary key. */
export const defineExpiry =
  (table: keyof Schema, ...key: readonly string[]) =>
  async (db: Db, at: Date, limit: number): Promise<number> => {
    const names = sql.join(key.map((column) => sql.ref(column)))
    const { rows } = await sql`
    delete from ${sql.table(table)} where (${names}) in (
      select ${names} from ${sql.table(table)} where expires_at <= ${at} order by expires_at limit ${limit} for update skip locked
    ) returning 1`.execute(db)
    return rows.length
  }
