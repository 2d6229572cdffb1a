// Work that a process repeats in the background: one round at a time, and a stop that waits for the round that runs.

/** One round; `signal` says that the process wants to end. */
export type Round = (signal: AbortSignal) => Promise<void>

/** Runs a round every `intervalMs` unless one is running; the returned function stops it and waits. A failed round goes to `onFailure`, any other to `onDone`. */
export function startRounds(
  run: Round,
  intervalMs: number,
  { onFailure, onDone }: { readonly onFailure: (err: unknown) => void; readonly onDone?: (ms: number) => void },
): () => Promise<void> {
  const stopped = new AbortController()
  let round: Promise<void> = Promise.resolve()
  let isRunning = false
  const timer = setInterval(() => {
    if (isRunning) return
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
