// Batches the statements of concurrent requests. Items of one turn of the event loop share a statement. Items that arrive while a statement is
// running share the next one, which is sent early when the running one takes long.
import { currentScope, type RequestScope, runForAll } from '../../lib/trace.ts'

export interface BatcherOptions<Item> {
  readonly itemsMax: number
  /** Items with the same key never share a batch; later ones wait for the next. Without it any items may share one. */
  readonly keyOf?: (item: Item) => string
  /** True when a failed batch has certainly changed nothing, so that its items may be tried alone. */
  readonly isUndone: (error: unknown) => boolean
  /** Called with the number of items before each batch runs. */
  readonly onTrip?: (items: number) => void
  /** How many milliseconds a running batch, for example one that waits for a lock, holds up the next; default 40. */
  readonly lateMs?: number
}

/**
 * Returns a function that takes one item and resolves to its result. `run` takes several items and returns their results in the same order. When a
 * batch of several fails and is undone, each item is tried alone, so that one bad item does not fail the others. Otherwise all its items fail.
 */
export function createRequestBatcher<Item, Result>(
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
  { itemsMax, keyOf, isUndone, onTrip, lateMs = LATE_MS }: BatcherOptions<Item>,
): (item: Item) => Promise<Result> {
  let waiting: Waiting<Item, Result>[] = []
  let isRunning = false

  const runAll = async (): Promise<void> => {
    while (waiting.length > 0) {
      // Waits one turn, in which the other requests that have arrived are handled; an idle event loop takes microseconds for it.
      await new Promise(setImmediate)
      const batch = takeBatch()
      const settled = runBatch(batch).catch(async (error: unknown) => {
        if (batch.length > 1 && isUndone(error)) await Promise.all(batch.map((one) => runBatch([one]).catch(one.reject)))
        else for (const one of batch) one.reject(error)
      })
      await untilSettledOrLate(settled, lateMs)
    }
    isRunning = false
  }

  const takeBatch = (): Waiting<Item, Result>[] => {
    const keys = new Set<string>()
    const batch: Waiting<Item, Result>[] = []
    const rest: Waiting<Item, Result>[] = []
    for (const one of waiting) {
      const key = keyOf?.(one.item)
      const isFit = batch.length < itemsMax && (key === undefined || !keys.has(key))
      if (key !== undefined) keys.add(key)
      if (isFit) batch.push(one)
      else rest.push(one)
    }
    waiting = rest
    return batch
  }

  const runBatch = async (batch: readonly Waiting<Item, Result>[]): Promise<void> => {
    onTrip?.(batch.length)
    const scopes = batch.map(({ scope }) => scope)
    const results = await runForAll(scopes, () => run(batch.map(({ item }) => item)))
    batch.forEach((one, i) => one.resolve(results[i] as Result))
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, scope: currentScope(), resolve, reject })
      if (isRunning) return
      isRunning = true
      void runAll()
    })
}

const LATE_MS = 40

async function untilSettledOrLate(settled: Promise<void>, lateMs: number): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, lateMs)
  await Promise.race([settled, late.promise])
  clearTimeout(timer)
}

interface Waiting<Item, Result> {
  readonly item: Item
  readonly scope: RequestScope | undefined
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}
