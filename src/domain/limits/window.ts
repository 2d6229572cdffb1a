// Counts events or failures of a key within a minute, and refuses a key that has used up its number. Each process counts in its own memory;
// failures may be counted over all processes (shared-failures.ts).
import { PawlError } from '../../lib/errors.ts'
import { createMemory } from '../../lib/memory.ts'
import type { SharedFailures, Standing } from './shared-failures.ts'

interface WindowOptions {
  /** The number of events or failures that one key may have in a minute. The minute begins with the first one. */
  readonly perMinute: number
  /** Set when the failures of all processes count together. */
  readonly others?: Others | undefined
  /**
   * When true, a key with `perMinute` failures has to wait for a minute. Within an hour after a wait, a quarter of the failures is enough for the
   * next wait, which lasts twice as long, up to sixteen minutes. A success does not end this, because others may share the key.
   */
  readonly backsOff?: boolean
  /** The number of keys that are remembered, 100,000 by default. A key takes 260 bytes of the heap. */
  readonly keysMax?: number
}

/** The counts of all processes. `of` distinguishes the windows in them. */
interface Others {
  readonly shared: SharedFailures
  readonly of: string
}

/** Times are milliseconds of a monotonic clock. At most `keysMax` keys are remembered; the least recently used ones are forgotten first. */
export interface Window {
  /** Takes a place in the minute of `key`. Throws TOO_MANY_REQUESTS when none is left, or while the key has to wait. */
  readonly take: (key: string, now: number) => Taken
  /** The same, but undefined instead of an error. With `weight` it takes so many places, if at least one is left. */
  readonly takeIfLeft: (key: string, now: number, weight?: number) => Taken | undefined
  /** Returns the seconds until a key without a place has one again, at least 1. */
  readonly secondsLeft: (key: string, now: number) => number
  /** Returns the error to throw while `key` has to wait. Taken places do not matter for it. */
  readonly refusal: (key: string, now: number) => PawlError | undefined
  /** Counts a failure for which no place was taken. Returns the seconds of the wait when the failure begins one. */
  readonly fail: (key: string, now: number) => number | undefined
  /** Reads the counts of all processes for `key` and adopts them. Runs no statement when failures are not shared. */
  readonly hear: (key: string, now: number) => Promise<void>
}

/** A place, which counts until it is given back or its minute is over. */
export interface Taken {
  /** Frees the place, which then does not count. */
  readonly giveBack: () => void
  /** Counts the place as a failure, and reports the failure to other processes. */
  readonly keep: () => void
}

export function createWindow({ perMinute, others, backsOff = false, keysMax = KEYS_MAX }: WindowOptions): Window {
  const minutes = createMemory<Minute>({ max: keysMax })

  const minuteAt = (key: string, now: number): Minute => {
    const before = minutes.get(key)
    if (before !== undefined && now < before.endsAt) return before
    const lasting = backsOff && before !== undefined ? before.lasting : { underWay: 0, waits: 0, waitEndsAt: LONG_AGO }
    const minute = { failures: 0, endsAt: now + MINUTE_MS, lasting }
    minutes.set(key, minute)
    return minute
  }

  const allowedAt = ({ lasting }: Minute, now: number): number =>
    waitsAt(lasting, now) === 0 ? perMinute : Math.ceil(perMinute / 4)

  const takeIfLeft: Window['takeIfLeft'] = (key, now, weight = 1) => {
    const minute = minuteAt(key, now)
    const { lasting } = minute
    if (now < lasting.waitEndsAt || minute.failures + lasting.underWay >= allowedAt(minute, now)) return undefined
    lasting.underWay += weight
    return {
      giveBack: () => {
        lasting.underWay -= weight
        // Keys that never fail must not push out those that do. A minute that has taken its place stays.
        if (isAsNew(minute) && minutes.get(key) === minute) minutes.delete(key)
      },
      keep: () => {
        lasting.underWay -= weight
        count(key, minute, weight, now)
      },
    }
  }

  const count = (key: string, minute: Minute, failures: number, now: number): number | undefined => {
    minute.failures += failures
    const isOneTooMany = backsOff && minute.failures >= allowedAt(minute, now)
    const wait = isOneTooMany ? beginWait(minute, now) : undefined
    const { waits, waitEndsAt } = minute.lasting
    const failure = { failures, endsAt: minute.endsAt, waits: isOneTooMany ? waits : 0, waitEndsAt }
    others?.shared.tell(nameOf(others, key), failure, (standing) => adopt(minute, standing, now))
    return wait
  }

  const secondsLeft: Window['secondsLeft'] = (key, now) => {
    const minute = minutes.get(key)
    const end = (backsOff ? minute?.lasting.waitEndsAt : minute?.endsAt) ?? now
    return Math.max(1, Math.ceil((end - now) / SECOND_MS))
  }
  const refuse = (key: string, now: number): PawlError =>
    new PawlError('TOO_MANY_REQUESTS', { retryAfterSeconds: secondsLeft(key, now) })

  return {
    takeIfLeft,
    secondsLeft,
    take: (key, now) => {
      const taken = takeIfLeft(key, now)
      if (taken === undefined) throw refuse(key, now)
      return taken
    },
    refusal: (key, now) => (now < (minutes.get(key)?.lasting.waitEndsAt ?? LONG_AGO) ? refuse(key, now) : undefined),
    fail: (key, now) => {
      const minute = minuteAt(key, now)
      if (now < minute.lasting.waitEndsAt) return undefined
      if (minute.failures === 0) minute.endsAt = now + MINUTE_MS
      return count(key, minute, 1, now)
    },
    hear: async (key, now) => {
      const standing = others && (await others.shared.ask(nameOf(others, key)))
      if (standing) adopt(minuteAt(key, now), standing, now)
    },
  }
}

interface Minute {
  /** The failures of all processes, as far as this one knows. */
  failures: number
  endsAt: number
  /** The state of the key over several minutes if it may have to wait; else the state of this minute. */
  readonly lasting: Lasting
}

interface Lasting {
  /** The number of places that are neither given back nor kept. */
  underWay: number
  /** The number of waits in a row. `waitEndsAt` is the end of the last one. */
  waits: number
  waitEndsAt: number
}

/** Whether a minute that begins anew would say the same. */
const isAsNew = ({ failures, lasting: { underWay, waits } }: Minute): boolean => failures + underWay + waits === 0

const nameOf = ({ of }: Others, key: string): string => `${of}\0${key}`

/** The number of waits in a row. An hour after the end of a wait it is 0 again. */
const waitsAt = ({ waits, waitEndsAt }: Lasting, now: number): number => (now < waitEndsAt + MEMORY_MS ? waits : 0)

/** The milliseconds of the next wait after so many waits in a row. */
const waitAfter = (waits: number): number => MINUTE_MS * 2 ** Math.min(waits, DOUBLINGS_MAX)

/** Begins a wait and returns its length in seconds. */
function beginWait(minute: Minute, now: number): number {
  const { lasting } = minute
  const waits = waitsAt(lasting, now)
  lasting.waits = waits + 1
  lasting.waitEndsAt = now + waitAfter(waits)
  minute.failures = 0
  return waitAfter(waits) / SECOND_MS
}

/** Adopts the counts of all processes. */
function adopt(minute: Minute, { failures, endsAt, waits, waitEndsAt }: Standing, now: number): void {
  const { lasting } = minute
  // A time that is too far away was stored before the clock of the database was set back.
  const mayEnd = (end: number, msMax: number): boolean => end <= now + msMax + MINUTE_MS
  if (waits > 0 && waitEndsAt > lasting.waitEndsAt && mayEnd(waitEndsAt, waitAfter(waits - 1))) {
    lasting.waits = Math.max(waitsAt(lasting, now), waits)
    lasting.waitEndsAt = waitEndsAt
    minute.failures = 0
  }
  if (endsAt <= now || !mayEnd(endsAt, MINUTE_MS)) return
  minute.failures = Math.max(minute.failures, failures)
  // The shared minute began with the first failure in any process.
  minute.endsAt = Math.min(minute.endsAt, endsAt)
}

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
const MEMORY_MS = 3_600_000
const LONG_AGO = Number.NEGATIVE_INFINITY
const DOUBLINGS_MAX = 4
const KEYS_MAX = 100_000
