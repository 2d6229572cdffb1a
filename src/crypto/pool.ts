// Work for libuv's thread pool: operations that would keep the event loop from other requests for half a millisecond or more.
import { availableParallelism } from 'node:os'
import { createSemaphore } from '../lib/semaphore.ts'

// libuv has one pool a process, so the limit is one a process too. One core stays free for the event loop; a queue of a thousand
// is worked off in less than a second.
const enter = createSemaphore(Math.max(1, availableParallelism() - 1), 1000)

/** Starts `work` with a callback of Node's when there is room. Throws UNAVAILABLE when too many wait. */
export const inPool = <T>(work: (done: (error: Error | null, result: T) => void) => void): Promise<T> =>
  enter(() => new Promise((resolve, reject) => work((error, result) => (error ? reject(error) : resolve(result)))))
