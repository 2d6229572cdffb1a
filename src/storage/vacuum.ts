// Vacuums and analyzes tables that autovacuum reaches too late or not at all. The embedded database has no autovacuum: deleted and updated rows
// keep their space until the table is vacuumed.
import { sql } from 'kysely'
import { runEach } from '../lib/rounds.ts'
import { type Db, isAnswered } from './database/database.ts'

/**
 * Vacuums the table with the most dead rows, if these are more than 1,000 and a fifth of its live rows. Only one table, because all other
 * statements wait.
 */
export async function vacuumFullest(db: Db): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_stat_user_tables where n_dead_tup > 1000 + n_live_tup / 5 order by n_dead_tup desc limit 1`.execute(
    db,
  )
  for (const { name } of rows) await sql`vacuum (analyze) ${sql.table(name)}`.execute(db)
}

/**
 * Analyzes the three smallest of the tables that have doubled since their last analysis. A plan that was made for an empty table reads all of an
 * application's activations to find one by its code. Such a plan is kept until the analysis: for a minute on PostgreSQL, for ever in the embedded
 * database.
 *
 * A table that was never analyzed counts by its size: after `pg_upgrade` PostgreSQL has neither statistics nor counts of rows, and autovacuum leaves
 * the table alone until a tenth of it has changed. The smaller tables come first, because the database may end the analysis of a large one that is
 * not in memory. The other tables are analyzed also after that. `onFailure` is called with each failure but the first, which is thrown at the end.
 *
 * A table whose deleted rows are more than half of its live rows is analyzed only once. Such a table, for example audit_pending, would double after
 * each vacuum, and each analysis makes all connections plan all statements on it anew.
 */
export async function analyzeGrown(db: Db, onFailure: (err: unknown) => void): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select s.relname as name from pg_stat_user_tables s join pg_class c on c.oid = s.relid
    where s.schemaname = current_schema()
      and (s.n_live_tup > 200 + 2 * greatest(c.reltuples, 0) or (c.reltuples < 0 and pg_relation_size(c.oid) > ${sql.lit(COUNTED_BYTES)}))
      and (2 * s.n_tup_del <= s.n_live_tup or (s.last_analyze is null and s.last_autoanalyze is null))
      and pg_has_role(c.relowner, 'USAGE')
    order by pg_relation_size(c.oid) limit 3`.execute(db)
  // Without skip_locked, this statement and all later ones would wait behind a session that builds an index for an hour.
  const analyze = (name: string) => async () => sql`analyze (skip_locked) ${sql.table(name)}`.execute(db)
  const tasks = rows.map(({ name }) => analyze(name))
  await runEach(tasks, { goesOn: isAnswered, onFailure })
}

// The size of a table of a few hundred rows.
const COUNTED_BYTES = 131_072
