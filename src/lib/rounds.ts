// Repeats work in the background: one round at a time. A stop waits for the round that runs.

/** One round of work. `signal` aborts when the process wants to end. */
export type Round = (signal: AbortSignal) => Promise<void>

export interface RoundOptions {
  readonly onFailure: (err: unknown) => void
  /** Called after each round that did not fail, with its milliseconds. */
  readonly onDone?: (ms: number) => void
  /** Asked before each round. No round begins while it returns false. */
  readonly mayRun?: () => boolean
}

interface EachOptions {
  /** Whether the other tasks run after such a failure. */
  readonly goesOn: (error: unknown) => boolean
  /** Called with each failure but the one that is thrown. */
  readonly onFailure: (err: unknown) => void
  /** No task begins once it is aborted. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Runs the tasks of a round one after the other, also after one has failed, so that a task which always fails does not block the others. Throws the
 * first failure after the last task. A failure for which `goesOn` is false is thrown at once.
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
 * Runs a round every `intervalMs`, the first one after that time. A round does not begin while another runs. The returned function stops the rounds,
 * and waits for a round that runs.
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
