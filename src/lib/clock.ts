// The time of a process: that of its database, which all processes on it share (docs/decisions/0027-time.md). Whatever ends, is deleted or
// sealed goes by it, so a machine whose own clock is wrong ends nothing before its time.
import type { Platform } from './platform.ts'

export interface Clock {
  /** Milliseconds since 1970-01-01 UTC as the database has them; the process's own where nothing was heard of another. */
  readonly now: () => number
  /** Asks for the database's time, in milliseconds, and follows it. Rejects as `read` does; the time then goes on as it was. */
  readonly hear: (read: () => Promise<number>) => Promise<void>
  /** By how many milliseconds the process's own clock is ahead of the database's, as last heard; undefined before. */
  readonly difference: () => number | undefined
  /** False while the two differ by more than a minute. */
  readonly isAgreed: () => boolean
}

/** For work in the background, none of which begins while the two clocks differ. */
export interface Clocked {
  readonly clock: Pick<Clock, 'isAgreed'>
}

type ClockPlatform = Pick<Platform, 'now' | 'monotonic'>
interface ClockEvents {
  readonly clockDiffers: (fields: { seconds: number }) => void
  readonly clockAgrees: () => void
}

/** A clock that runs by what was heard last and the time that has passed since, whatever is done to the process's own. */
export function createClock({ now, monotonic }: ClockPlatform, events: ClockEvents): Clock {
  /** By how many milliseconds the database's time is ahead of the monotonic one; undefined before it was heard. */
  let offset: number | undefined
  let difference: number | undefined
  let isAgreed = true

  return {
    now: () => (offset === undefined ? now() : Math.floor(offset + monotonic())),
    hear: async (read) => {
      const askedAt = monotonic()
      const time = await read()
      const answeredAt = monotonic()
      // The database looked at its clock somewhere between the two.
      const slack = (answeredAt - askedAt) / 2
      difference = now() - slack - time
      const isRight = Math.abs(difference) + slack <= TOLERANCE_MS
      const isWrong = Math.abs(difference) - slack > TOLERANCE_MS
      const [earliest, latest] = [time - answeredAt, time - askedAt]
      const heard = offset === undefined ? (earliest + latest) / 2 : Math.min(Math.max(offset, earliest), latest)
      // One that jumps away from its own time and from the process's clock is not followed.
      if (!isWrong || offset === undefined || Math.abs(heard - offset) <= TOLERANCE_MS) offset = heard
      // An answer that took long may say neither.
      if (isAgreed && isWrong) events.clockDiffers({ seconds: Math.round(difference / 1000) })
      if (!isAgreed && isRight) events.clockAgrees()
      if (isRight || isWrong) isAgreed = isRight
    },
    difference: () => difference,
    isAgreed: () => isAgreed,
  }
}

/** More than phones and people notice, and far less than anything is kept for. */
const TOLERANCE_MS = 60_000
