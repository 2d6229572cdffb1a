// Takes over rows from the table audit_event, into which versions before migration 0019 wrote. That migration has copied the rows that have a row
// in audit_seal.
import { sql } from 'kysely'
import type { Db } from '../database/database.ts'

/**
 * Takes up to `limit` rows out of the table, newest first, because processes of the previous version may still write. Copied rows are deleted with
 * their old seals; the others become waiting rows. Returns the number of rows taken.
 */
export async function takeOverEvents(db: Db, limit: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    with taken as (
      delete from audit_event where sequence in (select sequence from audit_event order by sequence desc limit ${sql.lit(limit)})
      returning *
    ), copied as (
      delete from audit_seal s using taken t, audit_chain c
      where c.name = coalesce('application:' || t.application_id, 'no-application') and s.chain_id = c.chain_id
        and s.sequence = t.sequence
      returning s.sequence
    ), waiting as (
      insert into audit_pending (sequence, occurred_at, activation_id, application_id, user_id, event_type, event_data)
      select sequence, occurred_at, activation_id, application_id, user_id, event_type, event_data from taken
      where sequence not in (select sequence from copied)
    )
    select count(*)::int as count from taken`.execute(db)
  return rows[0]?.count ?? 0
}
