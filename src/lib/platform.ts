// The two things a server takes from outside: time and randomness. Passed in, so that tests decide both.
import { randomBytes, randomUUID } from 'node:crypto'

export interface Platform {
  /** Milliseconds since 1970-01-01 UTC. */
  readonly now: () => number
  /** Milliseconds since some moment, which go on evenly whatever the clock is set to: for what waits or ends within this process. */
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
