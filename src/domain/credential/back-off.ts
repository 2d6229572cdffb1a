// Longer and longer waits for a key that fails too often, counted in the memory of this process, and with others where they are.
import { PawlError } from '../../lib/errors.ts'
import { createMemory } from '../../lib/memory.ts'
import type { Others } from '../limits/failure-budget.ts'
import type { Standing } from '../limits/shared-failures.ts'

export interface BackOff {
  /** What to throw while `key` has to wait, at `now` (ms, of a clock that nobody sets). */
  readonly refusal: (key: string, now: number) => PawlError | undefined
  /**
   * Begins an attempt, which `end` ends. Returns what to throw instead when `key` has to wait, or would have to if the attempts under way
   * failed.
   */
  readonly begin: (key: string, now: number) => PawlError | undefined
  readonly end: (key: string) => void
  /** Counts a failure; returns the seconds to wait when it is one too many. */
  readonly fail: (key: string, now: number) => number | undefined
  /** Takes over what other processes have counted for `key`; no statement where there are none. */
  readonly hear: (key: string, now: number) => Promise<void>
}

/**
 * After `failures` in a minute a wait of a minute. For an hour after a wait a quarter of the failures is enough for the next, which lasts
 * twice as long, up to sixteen minutes. Success changes nothing: others may share the key.
 */
export function createBackOff(failures: number, others?: Others): BackOff {
  const keys = createMemory<State>({ max: KEYS_MAX })

  const stateAt = (key: string, now: number): State => {
    const known = keys.get(key)
    const state = known ?? { failures: 0, minuteEnds: LONG_AGO, underWay: 0, waits: 0, waitEnds: LONG_AGO }
    if (known === undefined) keys.set(key, state)
    if (now >= state.waitEnds + MEMORY_MS) state.waits = 0
    if (now >= state.minuteEnds) state.failures = 0
    return state
  }
  const allowed = ({ waits }: State): number => (waits === 0 ? failures : Math.ceil(failures / 4))

  const refusal: BackOff['refusal'] = (key, now) => {
    const state = keys.get(key)
    return state === undefined || now >= state.waitEnds ? undefined : refuse(state.waitEnds - now)
  }

  const adopt = (key: string, standing: Standing, now: number): void => {
    const state = stateAt(key, now)
    // What ends later than it could is of a time before the database's clock was set back.
    const mayEnd = (end: number, msMax: number): boolean => end <= now + msMax + MINUTE_MS
    const { waits, waitEndsAt } = standing
    if (waits > 0 && waitEndsAt > state.waitEnds && mayEnd(waitEndsAt, waitAfter(waits - 1))) {
      state.waits = Math.max(state.waits, waits)
      state.waitEnds = waitEndsAt
      state.failures = 0
    }
    if (standing.endsAt > now && mayEnd(standing.endsAt, MINUTE_MS) && standing.failures > state.failures) {
      state.failures = standing.failures
      state.minuteEnds = standing.endsAt
    }
  }
  const tell = (key: string, { minuteEnds: endsAt, waits, waitEnds: waitEndsAt }: State, now: number): void =>
    others?.shared.tell(`${others.of}\0${key}`, { failures: 1, endsAt, waits, waitEndsAt }, (standing) =>
      adopt(key, standing, now),
    )

  return {
    refusal,
    hear: async (key, now) => {
      if (others === undefined) return
      const name = `${others.of}\0${key}`
      const standing = (await others.shared.ask([name])).get(name)
      if (standing) adopt(key, standing, now)
    },
    begin: (key, now) => {
      const refused = refusal(key, now)
      if (refused) return refused
      const state = stateAt(key, now)
      if (state.failures + state.underWay >= allowed(state)) return refuse(SECOND_MS)
      state.underWay += 1
      return undefined
    },
    end: (key) => {
      const state = keys.get(key)
      if (state !== undefined && state.underWay > 0) state.underWay -= 1
    },
    fail: (key, now) => {
      const state = stateAt(key, now)
      if (now < state.waitEnds) return undefined
      if (state.failures === 0) state.minuteEnds = now + MINUTE_MS
      state.failures += 1
      if (state.failures < allowed(state)) {
        tell(key, { ...state, waits: 0 }, now)
        return undefined
      }
      const wait = waitAfter(state.waits)
      state.waits += 1
      state.waitEnds = now + wait
      state.failures = 0
      tell(key, state, now)
      return wait / SECOND_MS
    },
  }
}

interface State {
  failures: number
  minuteEnds: number
  underWay: number
  /** Waits in a row; an hour without one starts anew. */
  waits: number
  waitEnds: number
}

/** How long the next wait is after so many. */
const waitAfter = (waits: number): number => MINUTE_MS * 2 ** Math.min(waits, DOUBLINGS_MAX)

const refuse = (ms: number): PawlError =>
  new PawlError('TOO_MANY_REQUESTS', { retryAfterSeconds: Math.max(1, Math.ceil(ms / SECOND_MS)) })

const SECOND_MS = 1_000
const LONG_AGO = Number.NEGATIVE_INFINITY
const MINUTE_MS = 60_000
const MEMORY_MS = 3_600_000
const DOUBLINGS_MAX = 4
const KEYS_MAX = 100_000
