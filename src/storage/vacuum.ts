// Room in the embedded database, which has no autovacuum: what is deleted or updated stays in its files until a table is vacuumed.
import { sql } from 'kysely'
import type { Db } from './database.ts'

/** Vacuums the table with the most dead rows when it has as many as autovacuum would act on; one at a time, because all else waits. */
export async function vacuumFullest(db: Db): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_stat_user_tables where n_dead_tup > 1000 + n_live_tup / 5 order by n_dead_tup desc limit 1`.execute(
    db,
  )
  for (const { name } of rows) await sql`vacuum (analyze) ${sql.table(name)}`.execute(db)
}
