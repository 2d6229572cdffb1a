// Runs slow work, a bounded number of pieces at once. A bounded number of others waits, and their keys take turns, so that a caller who asks often
// delays only itself.
import { PawlError } from './errors.ts'

export interface FairQueue {
  /**
   * Runs work when it is the turn of `key`; all work without one has one key in common. Throws TOO_MANY_REQUESTS when this key has too much
   * work waiting. When all keys together have, the key with the most gives up the last of its work to a key that has at least two pieces less;
   * what gives way, or finds no such key, throws UNAVAILABLE. Work that has not begun when `signal` aborts rejects with its reason.
   */
  readonly run: <T>(work: () => Promise<T>, turn?: Turn) => Promise<T>
}

export interface Turn {
  readonly key?: string
  readonly signal?: AbortSignal
}

export interface FairQueueLimits {
  /** Pieces of work that run at a time. */
  readonly atOnce: number
  readonly waitingMax: number
  /** By default only `waitingMax` bounds the work of a key. */
  readonly waitingPerKeyMax?: number
}

/** An empty queue. */
export function createFairQueue({ atOnce, waitingMax, waitingPerKeyMax = Infinity }: FairQueueLimits): FairQueue {
  // In the order of their turns; no list is empty.
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

  /** The last of the longest line gives way to somebody who has fewer waiting. */
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
