// Memories that can be looked at: how full each is, and how often what was asked for was there.

interface Watched {
  readonly get: (key: string) => unknown
  readonly size: () => number
}

export interface CacheUse {
  readonly name: string
  readonly entries: number
  readonly entriesMax: number
  /** Since it was made. */
  readonly hits: number
  readonly misses: number
}

export interface Caches {
  /**
   * The same memory; what it is asked for is counted from now on. Names are those of metrics: snake_case. `forgetEnded`, where entries must
   * not outlive a time, lets go of those that ended by `now`, in milliseconds.
   */
  readonly watch: <M extends Watched>(name: string, entriesMax: number, memory: M, forgetEnded?: (now: number) => void) => M
  readonly list: () => readonly CacheUse[]
  /** Has what has ended forgotten every five seconds; the returned function ends that. */
  readonly startForgetting: (clock: () => number) => () => void
}

/** The caches of one server. */
export function createCaches(): Caches {
  const uses: (() => CacheUse)[] = []
  const forgetters: ((now: number) => void)[] = []
  return {
    watch: (name, entriesMax, memory, forgetEnded) => {
      let hits = 0
      let misses = 0
      if (forgetEnded !== undefined) forgetters.push(forgetEnded)
      uses.push(() => ({ name, entries: memory.size(), entriesMax, hits, misses }))
      const get = (key: string): unknown => {
        const value = memory.get(key)
        if (value === undefined) misses += 1
        else hits += 1
        return value
      }
      return { ...memory, get }
    },
    list: () => uses.map((use) => use()),
    startForgetting: (clock) => {
      const timer = setInterval(() => {
        const now = clock()
        for (const forgetEnded of forgetters) forgetEnded(now)
      }, FORGET_MS)
      timer.unref()
      return () => clearInterval(timer)
    },
  }
}

const FORGET_MS = 5_000
