// Joins what is asked for at the same time: requests of one turn of the event loop share a trip, and so do those that come while it is
// on its way, unless it takes long. While the event loop is busy a trip also waits for some of those it can expect, and for trips of other batches.
import { isLoopBusy } from './loop-load.ts'
import { currentScope, type RequestScope } from './request-scope.ts'
import { runForAll } from './trace.ts'

export interface BatchOptions<Item> {
  readonly itemsMax: number
  /** Items with the same key never share a trip; later ones wait for the next. Without it any may. */
  readonly keyOf?: (item: Item) => string
  /** Whether a failed trip has certainly changed nothing, so that its items may be tried alone. */
  readonly isUndone: (error: unknown) => boolean
  /** Told of each trip before it is taken. */
  readonly onTrip?: (items: number) => void
  /** While the event loop is busy, trips of batches with the same line leave one after the other. */
  readonly line?: Line
  /** Whether the event loop is busy. */
  readonly isBusy?: () => boolean
}

/**
 * Returns a function that gives one item's result out of `run`, which takes several items and answers in their order. When a trip of
 * several fails and is undone, each item is tried alone, so that no item suffers for another; otherwise all of them fail.
 */
export function createBatch<Item, Result>(
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
  { itemsMax, keyOf, isUndone, onTrip, line = createLine(), isBusy = isLoopBusy }: BatchOptions<Item>,
): (item: Item) => Promise<Result> {
  let waiting: Waiting<Item, Result>[] = []
  let isRunning = false
  // Half of what trips have had lately. To wait for all of it would bring requests into step, so that server and clients wait for each other.
  let enough = 0
  let onCompany: (() => void) | undefined

  const runAll = async (): Promise<void> => {
    while (waiting.length > 0) {
      // The other requests that have arrived are handled in this turn; an idle loop comes round in microseconds.
      await new Promise(setImmediate)
      const leaveLine = isBusy() ? await waitForOthers() : undefined
      const trip = takeTrip()
      enough = Math.max(trip.length, enough) / 2
      const settled = runTrip(trip).catch(async (error: unknown) => {
        if (trip.length > 1 && isUndone(error)) await Promise.all(trip.map((one) => runTrip([one]).catch(one.reject)))
        else for (const one of trip) one.reject(error)
      })
      await untilSettledOrLate(settled, TRIP_MS_MAX)
      leaveLine?.()
    }
    isRunning = false
  }

  /** Until enough items wait, or for some milliseconds; then until it is this batch's turn. */
  const waitForOthers = async (): Promise<() => void> => {
    if (waiting.length < enough) {
      const company = Promise.withResolvers<void>()
      onCompany = company.resolve
      await untilSettledOrLate(company.promise, COMPANY_MS_MAX)
      onCompany = undefined
    }
    return line.enter()
  }

  const takeTrip = (): Waiting<Item, Result>[] => {
    const keys = new Set<string>()
    const trip: Waiting<Item, Result>[] = []
    const rest: Waiting<Item, Result>[] = []
    for (const one of waiting) {
      const key = keyOf?.(one.item)
      const isFit = trip.length < itemsMax && (key === undefined || !keys.has(key))
      if (key !== undefined) keys.add(key)
      if (isFit) trip.push(one)
      else rest.push(one)
    }
    waiting = rest
    return trip
  }

  const runTrip = async (trip: readonly Waiting<Item, Result>[]): Promise<void> => {
    onTrip?.(trip.length)
    const scopes = trip.map(({ scope }) => scope)
    const results = await runForAll(scopes, () => run(trip.map(({ item }) => item)))
    trip.forEach((one, i) => one.resolve(results[i] as Result))
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, scope: currentScope(), resolve, reject })
      if (waiting.length >= enough) onCompany?.()
      if (isRunning) return
      isRunning = true
      void runAll()
    })
}

/** Where batches wait for each other, in the order in which they come. */
export interface Line {
  /** Resolves when all that came before have left, with the function by which this one leaves. */
  readonly enter: () => Promise<() => void>
}

export function createLine(): Line {
  let last = Promise.resolve()
  return {
    enter: async () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      const before = last
      last = promise
      await before
      return resolve
    },
  }
}

/** A trip that waits for a lock holds up the next one for no longer than this. */
const TRIP_MS_MAX = 40
/** What a trip of a busy process waits at most for half as many items as trips have had lately. */
const COMPANY_MS_MAX = 10

async function untilSettledOrLate(settled: Promise<void>, milliseconds: number): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, milliseconds)
  await Promise.race([settled, late.promise])
  clearTimeout(timer)
}

interface Waiting<Item, Result> {
  readonly item: Item
  readonly scope: RequestScope | undefined
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}
