// A bound on how often something may fail for one key within a minute, counted in the memory of this process, and with others where they are.
import { createMemory } from '../../lib/memory.ts'
import type { SharedFailures } from './shared-failures.ts'

/** One attempt that was let through. */
export interface Attempt {
  /** To be called when it did not fail: its place in the budget is free again. */
  readonly giveBack: () => void
  /** To be called when it failed: other processes are told. */
  readonly keep: () => void
}

/** The failures of other processes; `of` tells budgets apart. */
export interface Others {
  readonly shared: SharedFailures
  readonly of: string
}

export interface FailureBudget {
  /**
   * Takes the place of one failure of `key` at `now` (ms, of a clock that nobody sets), or of `weight`; undefined when its minute has none left. Attempts at once have a
   * place each.
   */
  readonly take: (key: string, now: number, weight?: number) => Attempt | undefined
  /** Seconds until `key` has failures again, at least 1. */
  readonly secondsLeft: (key: string, now: number) => number
}

/** Up to `perMinute` failures of one key in a minute that begins with its first. Keys beyond 100,000 are forgotten, oldest first. */
export function createFailureBudget(perMinute: number, others?: Others): FailureBudget {
  const minutes = createMemory<Minute>({ max: KEYS_MAX })
  return {
    take: (key, now, weight = 1) => {
      const before = minutes.get(key)
      const minute = before && before.until > now ? before : { failures: 0, told: 0, elsewhere: 0, until: now + MINUTE_MS }
      if (minute.failures + minute.elsewhere >= perMinute) return undefined
      minute.failures += weight
      if (minute !== before) minutes.set(key, minute)
      return {
        giveBack: () => {
          minute.failures -= weight
        },
        keep: () => {
          if (others === undefined) return
          minute.told += weight
          const failure = { failures: weight, endsAt: minute.until, waits: 0, waitEndsAt: 0 }
          others.shared.tell(`${others.of}\0${key}`, failure, (standing) => {
            minute.elsewhere = Math.max(0, standing.failures - minute.told)
            // The minute of all began with the first failure of any.
            minute.until = Math.min(minute.until, standing.endsAt)
          })
        },
      }
    },
    secondsLeft: (key, now) => Math.max(1, Math.ceil(((minutes.get(key)?.until ?? now) - now) / 1000)),
  }
}

interface Minute {
  /** Of this process, attempts under way included. */
  failures: number
  /** Those of them that the others were told of. */
  told: number
  elsewhere: number
  until: number
}

const KEYS_MAX = 100_000
const MINUTE_MS = 60_000
