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
