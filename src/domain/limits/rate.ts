// A bound on how often one caller may do something, counted in the memory of this process.
import { PawlError } from '../../lib/errors.ts'
import { createMemory } from '../../lib/memory.ts'

export interface RateLimit {
  /** Counts one call of `key` at `now` (ms, of a clock that nobody sets); a TOO_MANY_REQUESTS to throw when the minute has had its number. */
  readonly count: (key: string, now: number) => PawlError | undefined
  /** The same, and throws it. */
  readonly take: (key: string, now: number) => void
}

/** Up to `perMinute` calls of one key in a minute that begins with its first. */
export function createRateLimit(perMinute: number): RateLimit {
  const minutes = createMemory<{ count: number; readonly until: number }>({ max: KEYS_MAX })
  const count: RateLimit['count'] = (key, now) => {
    const before = minutes.get(key)
    const minute = before && before.until > now ? before : { count: 0, until: now + 60_000 }
    if (minute === before && minute.count >= perMinute)
      return new PawlError('TOO_MANY_REQUESTS', { retryAfterSeconds: Math.max(1, Math.ceil((minute.until - now) / 1000)) })
    minute.count += 1
    if (minute !== before) minutes.set(key, minute)
    return undefined
  }
  return {
    count,
    take: (key, now) => {
      const refusal = count(key, now)
      if (refusal) throw refusal
    },
  }
}

const KEYS_MAX = 100_000
