// Runs a check once for all callers who ask for the same one at the same time, as long as one of them is still connected.
import { PawlError } from '../../lib/errors.ts'

/**
 * Joins the running check of `key`, or starts one. `onGone` calls back when the caller disconnects, and returns a function that unsubscribes.
 * The signal of a check aborts when no caller is left.
 */
type JoinCheck = <T>(
  key: string,
  onGone: (callback: () => void) => () => void,
  start: (signal: AbortSignal) => Promise<T>,
) => Promise<T>

export function createSharedChecks(): JoinCheck {
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
      // The same key is the same check, with the same result.
      return (await check.result) as T
    } finally {
      stopListening()
    }
  }
}

interface Check {
  readonly result: Promise<unknown>
  readonly dropped: AbortController
  /** How many connected callers wait for the result. */
  askers: number
}
