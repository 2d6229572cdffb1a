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
  /** The same memory; what it is asked for is counted from now on. Names are those of metrics: snake_case. */
  readonly watch: <M extends Watched>(name: string, entriesMax: number, memory: M) => M
  readonly list: () => readonly CacheUse[]
}

/** The caches of one server. */
export function createCaches(): Caches {
  const uses: (() => CacheUse)[] = []
  return {
    watch: (name, entriesMax, memory) => {
      let hits = 0
      let misses = 0
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
  }
}
