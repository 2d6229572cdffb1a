// Provides the two inputs of a server from outside: time and randomness. They are passed in, so that tests control both.
import { randomBytes, randomUUID } from 'node:crypto'

export interface Platform {
  /** Milliseconds since 1970-01-01 UTC. */
  readonly now: () => number
  /** Milliseconds since some moment. They go on evenly when the clock is set. For waiting times and ends within this process. */
  readonly monotonic: () => number
  /** `length` bytes of a cryptographically strong generator. */
  readonly randomBytes: (length: number) => Uint8Array
  /** UUID version 4, lower case. */
  readonly uuid: () => string
}

/** The clock and the generator of the operating system. */
export const systemPlatform: Platform = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  randomBytes: (length) => randomBytes(length),
  uuid: () => randomUUID(),
}
