// Batches the statements of concurrent requests (docs/decisions/0003-shared-trips.md). Within a transaction each statement runs for itself.
import type { GivenStatement } from './bulk-statement.ts'
import { addCallers } from './failure.ts'
import { type Db, isPool, isRolledBack, type Pool } from './database.ts'
import { type BatcherOptions, createRequestBatcher } from './request-batcher.ts'

type SharedTripOptions<Item> = Pick<BatcherOptions<Item>, 'keyOf' | 'onTrip'>

/**
 * Returns a function that takes one item. Items of concurrent calls share one call of `run`, which returns one result for each item, in the same
 * order. When a shared statement was rolled back, each item is tried alone.
 */
export const createSharedTrip = <Item, Result>(
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
  options: SharedTripOptions<Item> = {},
): ((item: Item) => Promise<Result>) => {
  const share = createRequestBatcher(run, { ...options, itemsMax: ITEMS_MAX, isUndone: isRolledBack })
  return (item) => share(item).catch(addCallers)
}

/** Like createSharedTrip, but for any database: calls on a Pool share a statement, and a call within a transaction runs alone. */
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

/** A statement that writes each row only where its condition holds, and returns the ids of the written rows. */
interface SharedWrite<Item, Row> {
  readonly statement: GivenStatement<Row>
  readonly toRow: (item: Item) => Row
  readonly idOf: (item: Item) => string
  /** The id of the activation that the statement locks for an item; idOf when left out. */
  readonly lockOf?: (item: Item) => string
  /** The column in which the statement returns an id. */
  readonly column: string
}

/**
 * Returns a function that resolves to true when it wrote the row of its item. Items with the same id never share a statement, because a returned id
 * would count for each of them.
 */
export const defineSharedWrite = <Item, Row>({ statement, toRow, idOf, lockOf = idOf, column }: SharedWrite<Item, Row>) =>
  defineSharedTrip(
    async (db, items: readonly Item[]): Promise<readonly boolean[]> => {
      // All processes write in the same order. Two that write the same rows would otherwise deadlock, and block all other writers.
      const ordered = items.toSorted((one, other) => (lockOf(one) < lockOf(other) ? -1 : 1))
      const { rows } = await db.executeQuery<Readonly<Record<string, string>>>(statement(ordered.map(toRow)))
      const written = new Set(rows.map((row) => row[column]))
      return items.map((item) => written.has(idOf(item)))
    },
    { keyOf: idOf },
  )

const ITEMS_MAX = 64
