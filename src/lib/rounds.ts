// Work that a process repeats in the background: one round at a time, and a stop that waits for the round that runs.

/** One round; `signal` says that the process wants to end. */
export type Round = (signal: AbortSignal) => Promise<void>

export interface RoundOptions {
  readonly onFailure: (err: unknown) => void
  /** Told of every round that did not fail. */
  readonly onDone?: (ms: number) => void
  /** Asked before each round; none begins while it says no. */
  readonly mayRun?: () => boolean
}

interface EachOptions {
  /** Whether the other tasks run after such a failure. */
  readonly goesOn: (error: unknown) => boolean
  /** Told of each failure but the one that is thrown. */
  readonly onFailure: (err: unknown) => void
  /** None begins once it is aborted. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Runs the tasks of a round one after the other, so that one which always fails keeps none of the others from running. Throws the first failure
 * after the last task, and one after which it does not go on at once.
 */
export async function runEach(
  tasks: readonly (() => Promise<unknown>)[],
  { goesOn, onFailure, signal }: EachOptions,
): Promise<void> {
  const failures: unknown[] = []
  for (const task of tasks) {
    if (signal?.aborted === true) break
    await task().catch((error: unknown) => {
      if (goesOn(error)) return failures.push(error)
      for (const err of failures) onFailure(err)
      throw error
    })
  }
  const [first, ...others] = failures
  for (const err of others) onFailure(err)
  if (first !== undefined) throw first
}

/**
 * Runs a round every `intervalMs`, the first one after that time, unless one is running. The returned function stops that, and waits for a round
 * that runs.
 */
export function startRounds(
  run: Round,
  intervalMs: number,
  { onFailure, onDone, mayRun = () => true }: RoundOptions,
): () => Promise<void> {
  const stopped = new AbortController()
  let round: Promise<void> = Promise.resolve()
  let isRunning = false
  const timer = setInterval(() => {
    if (isRunning || !mayRun()) return
    isRunning = true
    const startedAt = performance.now()
    round = run(stopped.signal)
      .then(() => onDone?.(performance.now() - startedAt))
      .catch(onFailure)
      .finally(() => {
        isRunning = false
      })
  }, intervalMs)
  timer.unref()
  return async () => {
    clearInterval(timer)
    stopped.abort()
    await round
  }
}
