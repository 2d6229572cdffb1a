// Vacuums what autovacuum does too late or not at all. The embedded database has none: what is deleted or updated stays in its files until
// a table is vacuumed.
import { sql } from 'kysely'
import type { Db } from './database/database.ts'

/**
 * Vacuums the table with the most dead rows, once they are more than a fifth of its live ones and 1,000 beside. One table at a time, because all
 * else waits.
 */
export async function vacuumFullest(db: Db): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_stat_user_tables where n_dead_tup > 1000 + n_live_tup / 5 order by n_dead_tup desc limit 1`.execute(
    db,
  )
  for (const { name } of rows) await sql`vacuum (analyze) ${sql.table(name)}`.execute(db)
}

/**
 * Has the planner look again at tables that have doubled since it last did. A plan that was made for an empty table reads all of an application's
 * activations to find one by its code, and is kept until then: on PostgreSQL a minute, in the embedded database for ever.
 *
 * A table is looked at once when more than half of what it holds was deleted. One whose rows come and go, as those that wait for their seal,
 * doubles after each vacuum, and each analysis has all connections plan all statements on that table anew.
 */
export async function analyzeGrown(db: Db): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select s.relname as name from pg_stat_user_tables s join pg_class c on c.oid = s.relid
    where s.schemaname = current_schema() and s.n_live_tup > 200 + 2 * greatest(c.reltuples, 0)
      and (2 * s.n_tup_del <= s.n_live_tup or (s.last_analyze is null and s.last_autoanalyze is null))
      and pg_has_role(c.relowner, 'USAGE')
    order by s.n_live_tup desc limit 3`.execute(db)
  // Behind somebody who makes an index for an hour it would wait for its limit of time, and all that follows with it.
  for (const { name } of rows) await sql`analyze (skip_locked) ${sql.table(name)}`.execute(db)
}
