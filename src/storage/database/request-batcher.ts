// Batches the statements of concurrent requests. What is asked for in one turn of the event loop shares a statement, and so does what is
// asked for while a statement is on its way, unless that takes long.
import { currentScope, type RequestScope, runForAll } from '../../lib/trace.ts'

export interface BatcherOptions<Item> {
  readonly itemsMax: number
  /** Items with the same key never share a batch; later ones wait for the next. Without it any may. */
  readonly keyOf?: (item: Item) => string
  /** Whether a failed batch has certainly changed nothing, so that its items may be tried alone. */
  readonly isUndone: (error: unknown) => boolean
  /** Told of each batch before it is run. */
  readonly onTrip?: (items: number) => void
  /** For how many milliseconds a batch that waits for a lock holds up the next one, 40 if left out. */
  readonly lateMs?: number
}

/**
 * Returns a function that gives one item's result out of `run`, which takes several items and answers in their order. When a batch of
 * several fails and is undone, each item is tried alone, so that no item suffers for another; otherwise all of them fail.
 */
export function createRequestBatcher<Item, Result>(
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
  { itemsMax, keyOf, isUndone, onTrip, lateMs = LATE_MS }: BatcherOptions<Item>,
): (item: Item) => Promise<Result> {
  let waiting: Waiting<Item, Result>[] = []
  let isRunning = false

  const runAll = async (): Promise<void> => {
    while (waiting.length > 0) {
      // The other requests that have arrived are handled in this turn; an idle loop comes round in microseconds.
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
