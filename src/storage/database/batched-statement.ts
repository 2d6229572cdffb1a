// Batches the statements of concurrent requests (docs/decisions/0003-shared-trips.md). Within a transaction each statement runs for itself.
import type { GivenStatement } from './bulk-statement.ts'
import { addCallers } from './failure.ts'
import { type Db, isPool, isRolledBack, type Pool } from './database.ts'
import { type BatcherOptions, createRequestBatcher } from './request-batcher.ts'

type SharedTripOptions<Item> = Pick<BatcherOptions<Item>, 'keyOf' | 'onTrip'>

/**
 * A function for one item of a statement over several, `run`, which answers in their order. Callers of one moment share a statement. Where
 * one that several share was rolled back, each is tried alone.
 */
export const createSharedTrip = <Item, Result>(
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
  options: SharedTripOptions<Item> = {},
): ((item: Item) => Promise<Result>) => {
  const share = createRequestBatcher(run, { ...options, itemsMax: ITEMS_MAX, isUndone: isRolledBack })
  return (item) => share(item).catch(addCallers)
}

/** The same for every database: on the database itself its callers share, within a transaction each runs for itself. */
export function defineSharedTrip<Item, Result>(
  run: (db: Db, items: readonly Item[]) => Promise<readonly Result[]>,
  options: SharedTripOptions<Item> = {},
): (db: Db, item: Item) => Promise<Result> {
  const shared = new WeakMap<Pool, (item: Item) => Promise<Result>>()
  const shareOn = (db: Pool): ((item: Item) => Promise<Result>) => {
    const known = shared.get(db)
    if (known !== undefined) return known
    const made = createSharedTrip((items: readonly Item[]) => run(db, items), options)
    shared.set(db, made)
    return made
  }
  return async (db, item) => {
    if (isPool(db)) return shareOn(db)(item)
    const [result] = await run(db, [item])
    return result as Result
  }
}

/** A statement that writes each row only where its condition holds, and returns the ids of those that it wrote. */
interface SharedWrite<Item, Row> {
  readonly statement: GivenStatement<Row>
  readonly toRow: (item: Item) => Row
  readonly idOf: (item: Item) => string
  /** Of the activation that the statement locks for an item; the same as idOf if left out. */
  readonly lockOf?: (item: Item) => string
  /** In which the statement returns an id. */
  readonly column: string
}

/** A function that tells whether the row of an item was written. Two items of one id never share a statement: each would be told so. */
export const defineSharedWrite = <Item, Row>({ statement, toRow, idOf, lockOf = idOf, column }: SharedWrite<Item, Row>) =>
  defineSharedTrip(
    async (db, items: readonly Item[]): Promise<readonly boolean[]> => {
      // In one order: two processes that write the same rows would otherwise wait for each other, and all others with them.
      const ordered = items.toSorted((one, other) => (lockOf(one) < lockOf(other) ? -1 : 1))
      const { rows } = await db.executeQuery<Readonly<Record<string, string>>>(statement(ordered.map(toRow)))
      const written = new Set(rows.map((row) => row[column]))
      return items.map((item) => written.has(idOf(item)))
    },
    { keyOf: idOf },
  )

const ITEMS_MAX = 64
