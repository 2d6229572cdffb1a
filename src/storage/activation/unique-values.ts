// Uses up nonces, which may be used once, in the table unique_value (v3 §14).
import { type RawBuilder, sql } from 'kysely'
import { type Db, isUniqueViolation, type Pool } from '../database/database.ts'
import { defineExpiry, defineGivenRows } from '../database/bulk-statement.ts'
import { createSharedTrip } from '../database/batched-statement.ts'

export interface UniqueValue {
  /** SHA-256, 32 bytes. */
  readonly valueHash: Uint8Array
  readonly expiresAt: Date
}

/** Uses up all values in one statement. False when one was used before; then none is used up. */
export async function useUniqueValues(db: Pool, values: readonly UniqueValue[]): Promise<boolean> {
  try {
    await insertValues(db, values)
    return true
  } catch (error) {
    if (isUniqueViolation(error)) return false
    throw error
  }
}

/**
 * Makes a function like useUniqueValues whose concurrent calls share a statement. When one value of a shared statement was used before, the
 * statement is undone, and each call is tried alone.
 */
export function createUniqueValueStore(db: Pool): (values: readonly UniqueValue[]) => Promise<boolean> {
  const use = createSharedTrip(async (lists: readonly (readonly UniqueValue[])[]) => {
    const [first = []] = lists
    if (lists.length === 1) return [await useUniqueValues(db, first)]
    await insertValues(db, lists.flat())
    return lists.map(() => true)
  })
  return async (values) => values.length === 0 || use(values)
}

async function insertValues(db: Db, values: readonly UniqueValue[]): Promise<void> {
  // Sorted, because two requests with the same values would otherwise deadlock.
  await db.executeQuery(INSERT(values.toSorted((one, other) => Buffer.compare(one.valueHash, other.valueHash))))
}

/**
 * Composes the part of a statement that uses up the value of each row of `rows` that has one, from the columns `value` and "valueExpiresAt". Values
 * are inserted in the order of their bytes, as in every statement.
 */
export const insertValuesFrom = (
  rows: RawBuilder<unknown>,
): RawBuilder<unknown> => sql`insert into unique_value (value_hash, expires_at)
    select value, "valueExpiresAt" from ${rows} where value is not null order by value`

/** Like insertValuesFrom, for up to two values of a row, with the columns "secondValue" and "secondValueExpiresAt" as well. */
export const insertTwoValuesFrom = (
  rows: RawBuilder<unknown>,
): RawBuilder<unknown> => sql`insert into unique_value (value_hash, expires_at)
    select v.value_hash, v.expires_at
    from ${rows} cross join lateral (values (value, "valueExpiresAt"), ("secondValue", "secondValueExpiresAt")) as v (value_hash, expires_at)
    where v.value_hash is not null order by v.value_hash`

/**
 * Composes the condition that a value, the hash of 32 bytes of a row of a query, was used before. `exists` would have the planner read all values
 * into memory while the table is small, or was when it planned.
 */
export const isValueUsed = (valueHash: RawBuilder<unknown>): RawBuilder<boolean> =>
  sql`(select true from unique_value u where u.value_hash = ${valueHash}) is true`

/** The columns that insertTwoValuesFrom reads. */
export const VALUE_COLUMNS = {
  value: 'bytea',
  valueExpiresAt: 'timestamptz',
  secondValue: 'bytea',
  secondValueExpiresAt: 'timestamptz',
} as const

/** Converts up to two values to these columns; a missing value gives null. */
export const toValueColumns = ([first, second]: readonly (UniqueValue | undefined)[]) => ({
  value: first?.valueHash ?? null,
  valueExpiresAt: first?.expiresAt ?? null,
  secondValue: second?.valueHash ?? null,
  secondValueExpiresAt: second?.expiresAt ?? null,
})

/** Selects up to two values as a row for insertTwoValuesFrom. */
export const selectValues = (values: readonly UniqueValue[]): RawBuilder<unknown> => {
  const { value, valueExpiresAt, secondValue, secondValueExpiresAt } = toValueColumns(values)
  return sql`select ${value}::bytea as value, ${valueExpiresAt}::timestamptz as "valueExpiresAt",
          ${secondValue}::bytea as "secondValue", ${secondValueExpiresAt}::timestamptz as "secondValueExpiresAt"`
}

/** Deletes expired values. */
export const deleteExpiredUniqueValues = defineExpiry('unique_value', 'value_hash')

const INSERT = defineGivenRows<UniqueValue>({ valueHash: 'bytea', expiresAt: 'timestamptz' }).define(
  (values) => sql`
  insert into unique_value (value_hash, expires_at) select i."valueHash", i."expiresAt" from ${values} as i`,
)
