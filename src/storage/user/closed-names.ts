// The table user_erasure: names of users that are closed, because they are being erased. What names one of them in a table of users' rows is not
// committed; triggers see to that (migrations/0031_user-erasures.ts, docs/decisions/0019-erasure.md).
import { sql } from 'kysely'
import type { Db, Tx } from '../database/database.ts'

export interface Closing {
  readonly erasureId: string
  /** Random: it makes the hash of the name. */
  readonly salt: Uint8Array
}

/** Closes a name, or closes it longer. */
export async function closeName(db: Db, { erasureId, salt }: Closing, userId: string): Promise<void> {
  await sql`
    insert into user_erasure (erasure_id, salt, user_hash, closed_until)
    select g.erasure_id, g.salt, sha256(g.salt || convert_to(${userId}::text, 'UTF8')), ${CLOSED_UNTIL}
    from (select ${erasureId}::text as erasure_id, ${salt}::bytea as salt) as g
    on conflict (erasure_id) do update set closed_until = excluded.closed_until`.execute(db)
}

/**
 * Waits for those who have not seen that a name is closed; afterwards what they wrote can be seen. They are at their commit: who wrote and has not
 * begun to commit is not waited for, and will be refused.
 */
export async function awaitCommits(tx: Tx): Promise<void> {
  await limitWaits(tx)
  await sql`select pg_advisory_xact_lock(hashtextextended('pawl.user_erasure', 0))`.execute(tx)
}

/** Lets no statement of the transaction wait long for a lock, because others wait behind it. */
export async function limitWaits(tx: Tx): Promise<void> {
  await sql`set local lock_timeout = '500ms'`.execute(tx)
}

/** Keeps others from opening a name until the end of the transaction; false when it is not closed any more. */
export async function holdName(tx: Tx, { erasureId }: Closing): Promise<boolean> {
  const { rows } = await sql`
    select from user_erasure where erasure_id = ${erasureId} and closed_until > clock_timestamp() for update`.execute(tx)
  return rows.length === 1
}

/** Opens a name to transactions that begin in `afterMs` or later, whoever closed it. */
export async function openName(db: Db, userId: string, afterMs: number): Promise<void> {
  await sql`
    update user_erasure set closed_until = clock_timestamp() + ${afterMs} * interval '1 millisecond'
    where user_hash = sha256(salt || convert_to(${userId}::text, 'UTF8'))`.execute(db)
}

/** Opens up to `limit` names, which a clock that was set back would keep closed for longer than any is closed, within an hour. */
export async function shortenClosings(db: Db, _at: Date, limit: number): Promise<number> {
  const { rows } = await sql`
    update user_erasure set closed_until = ${CLOSED_UNTIL} where erasure_id in (
      select erasure_id from user_erasure where closed_until > clock_timestamp() + interval '61 minutes' limit ${limit} for update skip locked
    ) returning erasure_id`.execute(db)
  return rows.length
}

/** Deletes up to `limit` names that were opened an hour ago. A transaction may have begun before, and not be over. */
export async function deleteOpenedNames(db: Db, _at: Date, limit: number): Promise<number> {
  const { rows } = await sql`
    delete from user_erasure where erasure_id in (
      select erasure_id from user_erasure where closed_until < clock_timestamp() - interval '1 hour' limit ${limit} for update skip locked
    ) returning erasure_id`.execute(db)
  return rows.length
}

// When the process of an erasure was killed, the name is open again then.
const CLOSED_UNTIL = sql`clock_timestamp() + interval '1 hour'`
