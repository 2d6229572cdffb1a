// At most so many at once; the rest wait in order, up to a bound.
import { PawlError } from './errors.ts'

/** Runs work with at most `concurrency` at a time and `waitingMax` waiting; beyond that throws UNAVAILABLE. */
export function createSemaphore(concurrency: number, waitingMax: number): <T>(work: () => Promise<T>) => Promise<T> {
  let running = 0
  const waiting: (() => void)[] = []
  return async (work) => {
    if (running >= concurrency) {
      if (waiting.length >= waitingMax) throw new PawlError('UNAVAILABLE', { detail: 'queue full', retryAfterSeconds: 1 })
      await new Promise<void>((resolve) => waiting.push(resolve))
    } else {
      running += 1
    }
    try {
      return await work()
    } finally {
      // The place passes to the next in line, so that nobody can overtake it.
      const next = waiting.shift()
      if (next) next()
      else running -= 1
    }
  }
}
