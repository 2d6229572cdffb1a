// The two things a server takes from outside: time and randomness. Passed in, so that tests decide both.
import { randomBytes, randomFillSync, randomUUID } from 'node:crypto'

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
  randomBytes: (length) => (length <= DRAWN_MAX ? draw(length) : randomBytes(length)),
  uuid: () => randomUUID(),
}

// A call of OpenSSL's generator for each nonce takes 4 µs, a part of what was drawn ahead 0.3.
const DRAWN_MAX = 64
const ahead = new Uint8Array(4096)
let next = ahead.length

/** Bytes that were drawn ahead. They are handed out once, and nothing of them stays here. */
function draw(length: number): Uint8Array {
  if (next + length > ahead.length) {
    randomFillSync(ahead)
    next = 0
  }
  const bytes = ahead.slice(next, next + length)
  ahead.fill(0, next, next + length)
  next += length
  return bytes
}
