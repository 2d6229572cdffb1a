// Collects the logs of the servers of a test file, for a test that fails, because the answer to a refused request does not say why.

interface Followed {
  readonly lines: readonly string[]
  taken: number
}

const followed = new Set<Followed>()

/** Follows the log lines of a server. The returned function ends that. */
export function followLog(lines: readonly string[]): () => void {
  const log = { lines, taken: 0 }
  followed.add(log)
  return () => void followed.delete(log)
}

/** The lines that were logged since the last call. */
export const takeLogged = (): readonly string[] =>
  [...followed].flatMap((log) => {
    const lines = log.lines.slice(log.taken)
    log.taken = log.lines.length
    return lines
  })
