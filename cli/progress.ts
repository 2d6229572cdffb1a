// Prints how far a long command has come.

const EVERY_MS = 5_000

/** Tells a line that is made when it is time for one: five seconds after the start or the one before. */
export function tellNowAndThen(note: (line: string) => void): (say: () => string) => void {
  let toldAt = performance.now()
  return (say) => {
    if (performance.now() - toldAt < EVERY_MS) return
    toldAt = performance.now()
    note(say())
  }
}

/** Does the work; as long as it lasts, a line on stderr every five seconds says that and for how long. */
export async function withProgress<T>(note: (line: string) => void, doing: string, work: () => Promise<T>): Promise<T> {
  const start = performance.now()
  const timer = setInterval(() => note(`${doing}, ${Math.round((performance.now() - start) / 1000)} s so far`), EVERY_MS)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}
