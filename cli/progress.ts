// Prints how far a long command has come.

const EVERY_MS = 5_000

/** Returns a function that prints the line of `say`, but no sooner than five seconds after the start or the line before. */
export function tellNowAndThen(note: (line: string) => void): (say: () => string) => void {
  let toldAt = performance.now()
  return (say) => {
    if (performance.now() - toldAt < EVERY_MS) return
    toldAt = performance.now()
    note(say())
  }
}

/** Runs `work`. While it lasts, prints a line to stderr every five seconds, with the time so far. */
export async function withProgress<T>(note: (line: string) => void, doing: string, work: () => Promise<T>): Promise<T> {
  const start = performance.now()
  const timer = setInterval(() => note(`${doing}, ${Math.round((performance.now() - start) / 1000)} s so far`), EVERY_MS)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}
