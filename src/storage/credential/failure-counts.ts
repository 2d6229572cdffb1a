// Counts recent failures in the table failure_count, for all processes together. Only failures write to it.
import { sql } from 'kysely'
import type { Db } from '../database/database.ts'
import { defineGivenRows, deleteBatch } from '../database/bulk-statement.ts'

export interface FailureCountRow {
  readonly failureKey: Uint8Array
  readonly failures: number
  /** End of the window in which the failures are counted. */
  readonly endsAt: Date
  /** The number of waits in a row, and the end of the last one; without a wait 0 and any past time. */
  readonly waits: number
  readonly waitEndsAt: Date
}

const given = defineGivenRows<FailureCountRow>({
  failureKey: 'bytea',
  failures: 'int',
  endsAt: 'timestamptz',
  waits: 'int',
  waitEndsAt: 'timestamptz',
})

// A window lasts a minute. A window that is over is replaced, and so is a window or a wait that ends later than possible, because a clock was set
// back. A row that begins a wait resets the failures that led to it. Rows are written in order of keys, so that two processes do not deadlock.
const IS_SAME_WINDOW = sql`f.ends_at > excluded.ends_at - interval '1 minute' and f.ends_at < excluded.ends_at + interval '2 minutes'`
const IS_WAIT_KNOWN = sql`f.wait_ends_at > excluded.ends_at - interval '61 minutes'
  and f.wait_ends_at < excluded.ends_at + interval '20 minutes'`
const ADD = given.define(
  (table) => sql`
    insert into failure_count as f (failure_key, failures, ends_at, waits, wait_ends_at)
    select "failureKey", "failures", "endsAt", "waits", "waitEndsAt" from ${table} as given order by "failureKey"
    on conflict (failure_key) do update set
      failures = case when excluded.waits > 0 then 0
        when ${IS_SAME_WINDOW} then f.failures + excluded.failures
        else excluded.failures end,
      ends_at = case when ${IS_SAME_WINDOW} then f.ends_at else excluded.ends_at end,
      waits = case when ${IS_WAIT_KNOWN} then greatest(f.waits, excluded.waits) else excluded.waits end,
      wait_ends_at = case when ${IS_WAIT_KNOWN} then greatest(f.wait_ends_at, excluded.wait_ends_at) else excluded.wait_ends_at end
    returning failure_key as "failureKey", failures, ends_at as "endsAt", waits, wait_ends_at as "waitEndsAt"`,
)

/** Adds failures, each key once. Returns the counts of all processes for these keys. */
export async function addFailures(db: Db, rows: readonly FailureCountRow[]): Promise<readonly FailureCountRow[]> {
  const found = await db.executeQuery(ADD(rows))
  return found.rows as FailureCountRow[]
}

/** Finds the count for a key; none without failures. */
export async function findFailures(db: Db, key: Uint8Array): Promise<readonly FailureCountRow[]> {
  const { rows } = await sql<FailureCountRow>`
    select failure_key as "failureKey", failures, ends_at as "endsAt", waits, wait_ends_at as "waitEndsAt"
    from failure_count where failure_key = ${key}`.execute(db)
  return rows
}

/** Deletes up to `limit` counts that have no effect any more: an hour after a wait the next one is as short as the first. */
export function deleteOldFailureCounts(db: Db, now: Date, limit: number): Promise<number> {
  const which = sql`ends_at < ${now} and wait_ends_at < ${new Date(now.getTime() - HOUR_MS)}`
  return deleteBatch(db, { table: 'failure_count', key: ['failure_key'] }, which, limit)
}

const HOUR_MS = 3_600_000
