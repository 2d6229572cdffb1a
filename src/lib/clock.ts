// Gives a process the time of its database, which all processes on that database share (docs/decisions/0027-time.md). Ends of validity, deletions and
// seals go by it, so a machine whose own clock is wrong ends nothing too early.
import type { Platform } from './platform.ts'

export interface Clock {
  /** Milliseconds since 1970-01-01 UTC by the clock of the database, or by the process's own clock until `hear` was called. */
  readonly now: () => number
  /** Asks `read` for the database's time in milliseconds, and follows it. Rejects when `read` rejects; the time then goes on as before. */
  readonly hear: (read: () => Promise<number>) => Promise<void>
  /** Milliseconds by which the process's own clock was ahead of the database's at the last answer; undefined before the first. */
  readonly difference: () => number | undefined
  /** False while the two clocks differ by more than a minute. */
  readonly isAgreed: () => boolean
}

/** Parameters of background work. No round of it begins while the two clocks differ. */
export interface Clocked {
  readonly clock: Pick<Clock, 'isAgreed'>
}

type ClockPlatform = Pick<Platform, 'now' | 'monotonic'>
interface ClockEvents {
  readonly clockDiffers: (fields: { seconds: number }) => void
  readonly clockAgrees: () => void
}

/** A clock that runs by the last time heard and the monotonic time since then. Changes to the process's own clock do not affect it. */
export function createClock({ now, monotonic }: ClockPlatform, events: ClockEvents): Clock {
  /** Milliseconds by which the database's time is ahead of the monotonic time; undefined before the first answer. */
  let offset: number | undefined
  let difference: number | undefined
  let isAgreed = true

  return {
    now: () => (offset === undefined ? now() : Math.floor(offset + monotonic())),
    hear: async (read) => {
      const askedAt = monotonic()
      const time = await read()
      const answeredAt = monotonic()
      // The database read its clock at some moment between question and answer.
      const slack = (answeredAt - askedAt) / 2
      difference = now() - slack - time
      const isRight = Math.abs(difference) + slack <= TOLERANCE_MS
      const isWrong = Math.abs(difference) - slack > TOLERANCE_MS
      const [earliest, latest] = [time - answeredAt, time - askedAt]
      const heard = offset === undefined ? (earliest + latest) / 2 : Math.min(Math.max(offset, earliest), latest)
      // A database time that jumps is not followed if it is also far from the process's own clock.
      if (!isWrong || offset === undefined || Math.abs(heard - offset) <= TOLERANCE_MS) offset = heard
      // An answer that took long may prove neither that the clock is right nor that it is wrong.
      if (isAgreed && isWrong) events.clockDiffers({ seconds: Math.round(difference / 1000) })
      if (!isAgreed && isRight) events.clockAgrees()
      if (isRight || isWrong) isAgreed = isRight
    },
    difference: () => difference,
    isAgreed: () => isAgreed,
  }
}

/** More than phones and people notice, and far less than the shortest time that rows are kept. */
const TOLERANCE_MS = 60_000
