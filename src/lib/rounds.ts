// Work that a process repeats in the background: one round at a time, and a stop that waits for the round that runs.

/** One round; `signal` says that the process wants to end. */
export type Round = (signal: AbortSignal) => Promise<void>

/** Runs a round every `intervalMs` unless one is running; the returned function stops it and waits. A failed round goes to `onFailure`. */
export function startRounds(run: Round, intervalMs: number, onFailure: (err: unknown) => void): () => Promise<void> {
  const stopped = new AbortController()
  let round: Promise<void> = Promise.resolve()
  let isRunning = false
  const timer = setInterval(() => {
    if (isRunning) return
    isRunning = true
    round = run(stopped.signal)
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
