// Reads and writes the table record_binding, which has a row as long as sealed records without an owner may exist (domain/secrets/binding.ts).
import { type RawBuilder, sql } from 'kysely'
import { BOUND_FORM } from '../../lib/sealed-value.ts'
import type { Db } from '../database/database.ts'
import type { BindingStage } from '../database/schema.ts'
import { OWNED_TABLES } from './sealed-columns.ts'

interface BindingRow {
  readonly stage: BindingStage
  readonly mac: Buffer | null
  /** True when the binding began so long ago, by the clock of the database, that all processes have read it. */
  readonly isSettled: boolean
}

/** Reads the row; undefined when the binding has ended, or was never needed. */
export async function findBinding(db: Db, settleSeconds: number): Promise<BindingRow | undefined> {
  const { rows } = await sql<BindingRow>`
    select stage, mac, coalesce(begun_at <= clock_timestamp() - make_interval(secs => ${settleSeconds}), false) as "isSettled"
    from record_binding`.execute(db)
  return rows[0]
}

/** Stores the MAC of a row that a migration inserted. */
export async function signBinding(db: Db, mac: Uint8Array): Promise<void> {
  await sql`update record_binding set mac = ${mac} where stage = 'OPEN' and mac is null`.execute(db)
}

/** Moves the stage from OPEN to BEGUN, at the time of the database. */
export async function beginBinding(db: Db, mac: Uint8Array): Promise<void> {
  await sql`update record_binding set stage = 'BEGUN', begun_at = clock_timestamp(), mac = ${mac} where stage = 'OPEN'`.execute(
    db,
  )
}

/** Deletes the row when the stage is BEGUN; false when another process has done so. */
export async function endBinding(db: Db): Promise<boolean> {
  const { rows } = await sql`delete from record_binding where stage = 'BEGUN' returning 1 as ended`.execute(db)
  return rows.length === 1
}

/** True when any record is bound to its owner. May read every row, so it needs a patient connection. */
export async function hasBoundRecords(db: Db): Promise<boolean> {
  const found = OWNED_TABLES.flatMap(({ table, boundColumns }) =>
    boundColumns.map(
      (column) => sql`exists (select from ${sql.table(table)} where ${formOf(column)} = ${Uint8Array.of(BOUND_FORM)})`,
    ),
  )
  const { rows } = await sql<{ isFound: boolean }>`select ${sql.join(found, sql` or `)} as "isFound"`.execute(db)
  return rows[0]?.isFound === true
}

/** Counts the rows with a record that is bound to no owner. Reads every row, so it needs a patient connection. */
export async function countUnbound(db: Db): Promise<number> {
  const counts = OWNED_TABLES.map(({ table, boundColumns }) => {
    const isUnbound = boundColumns.map((column) => sql`${formOf(column)} <> ${Uint8Array.of(BOUND_FORM)}`)
    return sql`(select count(*) from ${sql.table(table)} where ${sql.join(isUnbound, sql` or `)})`
  })
  const { rows } = await sql<{ left: string }>`select ${sql.join(counts, sql` + `)} as left`.execute(db)
  return Number(rows[0]?.left)
}

/** The first byte of a sealed value; no byte of one that somebody made empty, for which get_byte is an error. */
const formOf = (column: string): RawBuilder<unknown> => sql`substring(${sql.ref(column)} from 1 for 1)`
