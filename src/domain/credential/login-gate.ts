// Decides whether and when a password is checked. Waits after failures come before the slow hash, and hashes run in two lanes.
//
// Failures of all processes count for a user name and its source together, and for the source alone. So nobody can lock out a credential that is
// used from another source. While a pair of user name and source waits, even the right password is refused: otherwise the wait would not stop
// guessing. Pairs that had a right password within the last hour have their own lane, and the wait of their source does not concern them.
import { sourceOf } from '../../lib/address.ts'
import { PawlError } from '../../lib/errors.ts'
import { createFairQueue } from '../../lib/fair-queue.ts'
import { createMemory } from '../../lib/memory.ts'
import type { Events } from '../../log/events.ts'
import type { SharedFailures } from '../limits/shared-failures.ts'
import { createWindow, type Taken } from '../limits/window.ts'
import type { Lane } from './password.ts'

/** One login by user name and password. */
export interface Login {
  readonly username: string
  /** Address of the caller. */
  readonly source: string
  /** Calls `callback` when the caller has disconnected and nobody reads the answer. Returns a function that unsubscribes. */
  readonly onGone: (callback: () => void) => () => void
}

/** Times are milliseconds of a monotonic clock. */
export interface LoginGate {
  /**
   * Throws TOO_MANY_REQUESTS while this user name has to wait at this source. Also throws it while the whole source has to wait, unless the user is
   * known there.
   */
  readonly enter: (login: Login, now: number) => void
  /**
   * Runs `check` with the lane for its hash. Callers at one source with the same `shown` share one check; `shown` stands for user name, password
   * and the credential that they are compared with. Throws TOO_MANY_REQUESTS when too many checks of this key are under way, UNAVAILABLE when there
   * are too many in all. A waiting check is dropped when all its callers have disconnected.
   */
  readonly check: <T>(login: Login, shown: string, now: number, check: (lane: Lane) => Promise<T>) => Promise<T>
  /** Notes a right password: from now on this user is known at this source. */
  readonly pass: (login: Login) => void
  /** Counts a wrong password, and returns the error of the answer. */
  readonly fail: (login: Login, now: number, isKnownUser: boolean) => PawlError
  /** The lane for hashes of the server itself and of administrators. */
  readonly ownLane: Lane
}

/** Creates the gate. A user name at one source has to wait after `failuresPerMinute` failures, a whole source after ten times as many. */
export function createLoginGate(
  events: Events,
  clock: () => number,
  failuresPerMinute: number,
  shared?: SharedFailures,
): LoginGate {
  const open = (perMinute: number, of: string) => createWindow({ perMinute, others: shared && { shared, of }, backsOff: true })
  const pairs = open(failuresPerMinute, 'login')
  const sources = open(failuresPerMinute * 10, 'logins of a source')
  const knownPairs = createMemory<object>({ max: KNOWN_MAX, ttl: KNOWN_MS, clock })
  // One hash at a time in each lane. So two of the four threads of the pool stay free for other work.
  const known = createFairQueue({ atOnce: 1, waitingMax: 200, waitingPerKeyMax: 50 })
  const strangers = createFairQueue({ atOnce: 1, waitingMax: 200, waitingPerKeyMax: 20 })
  const join = createSharedChecks()

  const isKnown = (pair: string): boolean => knownPairs.get(pair) !== undefined

  /** Reserves places among the allowed failures for a running attempt, so that no more attempts run than may fail. */
  const take = (login: Login, now: number): readonly Taken[] => {
    const { pair, source } = keysOf(login)
    const ofPair = pairs.take(pair, now)
    if (isKnown(pair)) return [ofPair]
    try {
      return [ofPair, sources.take(source, now)]
    } catch (error) {
      ofPair.giveBack()
      throw error
    }
  }

  return {
    enter: (login, now) => {
      const { pair, source } = keysOf(login)
      const refused = pairs.refusal(pair, now) ?? (isKnown(pair) ? undefined : sources.refusal(source, now))
      if (refused) throw refused
    },
    check: async (login, shown, now, check) => {
      const { pair, source } = keysOf(login)
      // The hash takes a thousand times as long as this read.
      await Promise.all([pairs.hear(pair, now), sources.hear(source, now)])
      return join(`${source}\0${shown}`, login.onGone, (signal) => {
        const taken = take(login, now)
        const lane: Lane = (work) =>
          isKnown(pair) ? known.run(work, { key: pair, signal }) : strangers.run(work, { key: source, signal })
        return check(lane).finally(() => {
          for (const place of taken) place.giveBack()
        })
      })
    },
    pass: (login) => knownPairs.set(keysOf(login).pair, KNOWN),
    fail: (login, now, isKnownUser) => {
      const { pair, source } = keysOf(login)
      const username = isKnownUser ? login.username : undefined
      const reason = isKnownUser ? 'wrong password, disabled, expired, or not from here' : 'unknown user'
      const refused = pairs.refusal(pair, now)
      const seconds = pairs.fail(pair, now)
      const secondsOfSource = isKnown(pair) ? undefined : sources.fail(source, now)
      if (refused) return refused
      events.credentialRefused({ username, source: login.source, reason })
      if (seconds !== undefined) events.loginsWait({ username, source, seconds })
      if (secondsOfSource !== undefined) events.loginsWait({ username: undefined, source, seconds: secondsOfSource })
      return new PawlError('CREDENTIALS_INVALID')
    },
    ownLane: (work) => known.run(work),
  }
}

function keysOf({ username, source: address }: Login): { readonly pair: string; readonly source: string } {
  const source = sourceOf(address)
  return { pair: `${source}\0${username.slice(0, 255)}`, source }
}

/** Marks a known pair. The object itself has no meaning. */
const KNOWN = {}
const KNOWN_MS = 3_600_000
const KNOWN_MAX = 10_000

/**
 * Joins the running check of `key`, or starts one. `onGone` calls back when the caller disconnects, and returns a function that unsubscribes.
 * The signal of a check aborts when no caller is left.
 */
type JoinCheck = <T>(
  key: string,
  onGone: (callback: () => void) => () => void,
  start: (signal: AbortSignal) => Promise<T>,
) => Promise<T>

function createSharedChecks(): JoinCheck {
  const checks = new Map<string, Check>()

  const begin = (key: string, start: (signal: AbortSignal) => Promise<unknown>): Check => {
    const dropped = new AbortController()
    const result = start(dropped.signal).finally(() => checks.delete(key))
    const check = { result, dropped, askers: 0 }
    checks.set(key, check)
    return check
  }

  return async <T>(key: string, onGone: (callback: () => void) => () => void, start: (signal: AbortSignal) => Promise<T>) => {
    const check = checks.get(key) ?? begin(key, start)
    check.askers += 1
    const stopListening = onGone(() => {
      check.askers -= 1
      if (check.askers === 0) check.dropped.abort(new PawlError('TOO_MANY_REQUESTS', { detail: 'the caller has gone' }))
    })
    try {
      // All callers of one key get the result of one check.
      return (await check.result) as T
    } finally {
      stopListening()
    }
  }
}

interface Check {
  readonly result: Promise<unknown>
  readonly dropped: AbortController
  /** The number of connected callers that wait for the result. */
  askers: number
}
