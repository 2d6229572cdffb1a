// A bound on how often something may fail for one key within a minute, counted in the memory of this process.
import { createMemory } from '../../lib/memory.ts'

/** One attempt that was let through. */
export interface Attempt {
  /** To be called when it did not fail: its place in the budget is free again. */
  readonly giveBack: () => void
}

export interface FailureBudget {
  /**
   * Takes the place of one failure of `key` at `now` (ms), or of `weight`; undefined when its minute has none left. Attempts at once have a
   * place each.
   */
  readonly take: (key: string, now: number, weight?: number) => Attempt | undefined
  /** Seconds until `key` has failures again, at least 1. */
  readonly secondsLeft: (key: string, now: number) => number
}

/** Up to `perMinute` failures of one key in a minute that begins with its first. Keys beyond 100,000 are forgotten, oldest first. */
export function createFailureBudget(perMinute: number): FailureBudget {
  const minutes = createMemory<Minute>({ max: KEYS_MAX })
  return {
    take: (key, now, weight = 1) => {
      const before = minutes.get(key)
      const minute = before && before.until > now ? before : { failures: 0, until: now + MINUTE_MS }
      if (minute.failures >= perMinute) return undefined
      minute.failures += weight
      if (minute !== before) minutes.set(key, minute)
      return {
        giveBack: () => {
          minute.failures -= weight
        },
      }
    },
    secondsLeft: (key, now) => Math.max(1, Math.ceil(((minutes.get(key)?.until ?? now) - now) / 1000)),
  }
}

interface Minute {
  failures: number
  readonly until: number
}

const KEYS_MAX = 100_000
const MINUTE_MS = 60_000
