// The table stranger_count: codes for activations that do not exist, one row a minute and source network, so that strangers cannot fill
// the audit log (cloud §7).
import { sql } from 'kysely'
import type { Db } from '../database/database.ts'

/** Counts a code from a network in the minute of `at`. */
export async function countStranger(db: Db, network: string, at: Date): Promise<void> {
  const minute = new Date(Math.floor(at.getTime() / MINUTE_MS) * MINUTE_MS)
  await sql`
    insert into stranger_count (minute, network, codes) values (${minute}, ${network}, 1)
    on conflict (minute, network) do update set codes = stranger_count.codes + 1`.execute(db)
}

/** Deletes up to `limit` counts of minutes before `before`, oldest first. */
export async function deleteOldStrangerCounts(db: Db, before: Date, limit: number): Promise<number> {
  const { rows } = await sql`
    delete from stranger_count where (minute, network) in (
      select minute, network from stranger_count where minute < ${before} order by minute limit ${limit} for update skip locked
    ) returning minute`.execute(db)
  return rows.length
}

const MINUTE_MS = 60_000
