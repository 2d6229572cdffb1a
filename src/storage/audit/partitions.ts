// Makes and drops the partitions of the table audit_log, which divide it by the time of sealing. Only the sealer inserts rows and makes partitions,
// under its lock, so a row always has a partition.
import { sql } from 'kysely'
import type { Db, Tx } from '../database/database.ts'

export interface AuditPartition {
  readonly name: string
  /** Exclusive. */
  readonly endsAt: Date
}

/** Lists the partitions, oldest first. Throws when another program has attached a partition without an end: its age could not be judged. */
export async function findPartitions(db: Db): Promise<AuditPartition[]> {
  // PostgreSQL writes the bound as text and parses it in the same session, so time zone and DateStyle do not matter.
  const { rows } = await sql<{ name: string; endsAt: Date | null }>`
    select name, ends_at as "endsAt" from (
      select c.relname as name, substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \\(''([^'']+)''\\)')::timestamptz as ends_at
      from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'audit_log'::regclass
    ) as partition
    order by ends_at`.execute(db)
  return rows.map(({ name, endsAt }) => {
    if (endsAt === null) throw new TypeError(`the partition ${name} of audit_log has no end that can be read; detach it`)
    return { name, endsAt }
  })
}

/**
 * Adds a partition from the end of the newest one to a later time; the first partition, without `from`, takes all older rows. The table is made
 * separately and then attached, so that it neither waits for readers of the log nor makes them wait.
 */
export async function addPartition(tx: Tx, from: Date | undefined, to: Date): Promise<void> {
  const name = `audit_log_until_${to.toISOString().replaceAll(/\D/g, '').slice(0, 17)}`
  await sql`create table ${sql.table(name)} (like audit_log including all)`.execute(tx)
  await sql`alter table audit_log attach partition ${sql.table(name)}
    for values from (${from === undefined ? sql`minvalue` : sql.lit(from.toISOString())}) to (${sql.lit(to.toISOString())})`.execute(
    tx,
  )
  // When another role runs migrations, a partition owned by this role would keep the other from changing the log.
  const { rows } = await sql<{ owner: string }>`
    select relowner::regrole::text as owner from pg_class where oid = 'audit_log'::regclass`.execute(tx)
  for (const { owner } of rows) await sql`alter table ${sql.table(name)} owner to ${sql.raw(owner)}`.execute(tx)
}

/**
 * Drops a partition with its rows. Gives up after 500 ms (SQLSTATE 55P03) while another session reads the log, because later statements would wait.
 */
export async function dropPartition(tx: Tx, name: string): Promise<void> {
  await sql`set local lock_timeout = '500ms'`.execute(tx)
  await sql`drop table ${sql.table(name)}`.execute(tx)
}
