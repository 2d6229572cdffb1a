// Runs slow work, a limited number of pieces at once. A limited number of pieces waits, and their keys take turns, so that a caller who asks often
// delays only itself.
import { PawlError } from './errors.ts'

export interface FairQueue {
  /**
   * Runs work when the turn of `key` comes. All work without a key has one key in common. Throws TOO_MANY_REQUESTS when too much work of this key
   * waits. When the whole queue is full, a key with at least two pieces less than the longest line takes the place of the last piece there. The
   * dropped piece throws UNAVAILABLE, and so does work that finds no such place. Work that has not begun when `signal` aborts rejects with the reason
   * of the signal.
   */
  readonly run: <T>(work: () => Promise<T>, turn?: Turn) => Promise<T>
}

export interface Turn {
  readonly key?: string
  readonly signal?: AbortSignal
}

export interface FairQueueLimits {
  /** Pieces of work that run at the same time. */
  readonly atOnce: number
  readonly waitingMax: number
  /** Without it, only `waitingMax` limits the work of a key. */
  readonly waitingPerKeyMax?: number
}

export function createFairQueue({ atOnce, waitingMax, waitingPerKeyMax = Infinity }: FairQueueLimits): FairQueue {
  // Keys in the order of their turns. No list is empty.
  const waiting = new Map<string, Waiter[]>()
  let running = 0
  let total = 0

  const leave = (key: string, waiter: Waiter): void => {
    const line = waiting.get(key)
    const at = line?.indexOf(waiter) ?? -1
    if (line === undefined || at < 0) return
    line.splice(at, 1)
    total -= 1
    if (line.length === 0) waiting.delete(key)
  }

  const startNext = (): void => {
    const [first] = waiting
    if (first === undefined) {
      running -= 1
      return
    }
    const [key, line] = first
    const [waiter] = line
    if (waiter === undefined) throw new TypeError('a key without work stood in the queue')
    leave(key, waiter)
    if (line.length > 0) {
      waiting.delete(key)
      waiting.set(key, line)
    }
    waiter.start()
  }

  const wait = async (key: string, signal: AbortSignal | undefined): Promise<void> => {
    const own = waiting.get(key)?.length ?? 0
    if (own >= waitingPerKeyMax)
      throw new PawlError('TOO_MANY_REQUESTS', { detail: 'too many waiting of one source', retryAfterSeconds: 1 })
    if (total >= waitingMax) makeRoom(own)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter: Waiter = { start: resolve, refuse: reject }
    waiting.set(key, [...(waiting.get(key) ?? []), waiter])
    total += 1
    const drop = (): void => {
      leave(key, waiter)
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', drop)
    await promise.finally(() => signal?.removeEventListener('abort', drop))
  }

  /** Drops the last piece of the longest line, for a key that has `own` pieces waiting. Throws if no line is longer by two. */
  const makeRoom = (own: number): void => {
    const [longest] = [...waiting].toSorted(([, a], [, b]) => b.length - a.length)
    const last = longest?.[1].at(-1)
    if (longest === undefined || last === undefined || longest[1].length <= own + 1) throw queueFull()
    leave(longest[0], last)
    last.refuse(queueFull())
  }

  return {
    run: async (work, { key = '', signal } = {}) => {
      signal?.throwIfAborted()
      if (running >= atOnce) await wait(key, signal)
      else running += 1
      try {
        return await work()
      } finally {
        startNext()
      }
    },
  }
}

interface Waiter {
  readonly start: () => void
  readonly refuse: (error: PawlError) => void
}

const queueFull = (): PawlError => new PawlError('UNAVAILABLE', { detail: 'queue full', retryAfterSeconds: 1 })
