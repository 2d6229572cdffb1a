// A bound on how often one caller may do something, counted in the memory of this process.
import { LRUCache } from 'lru-cache'
import { PawlError } from '../lib/errors.ts'

export interface RateLimit {
  /** Counts one call of `key` at `now` (ms). Throws TOO_MANY_REQUESTS when the minute has had its number. */
  readonly take: (key: string, now: number) => void
}

/** Up to `perMinute` calls of one key in a minute that begins with its first. */
export function createRateLimit(perMinute: number): RateLimit {
  const minutes = new LRUCache<string, { count: number; readonly until: number }>({ max: KEYS_MAX })
  return {
    take: (key, now) => {
      const before = minutes.get(key)
      const minute = before && before.until > now ? before : { count: 0, until: now + 60_000 }
      if (minute === before && minute.count >= perMinute)
        throw new PawlError('TOO_MANY_REQUESTS', { retryAfterSeconds: Math.max(1, Math.ceil((minute.until - now) / 1000)) })
      minute.count += 1
      if (minute !== before) minutes.set(key, minute)
    },
  }
}

const KEYS_MAX = 100_000
