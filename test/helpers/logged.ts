// What the servers of a test file log, for a test that fails: the answer to a refused request does not say why.

interface Followed {
  readonly lines: readonly string[]
  taken: number
}

const followed = new Set<Followed>()

/** Follows the lines of a server; what is returned ends that. */
export function followLog(lines: readonly string[]): () => void {
  const log = { lines, taken: 0 }
  followed.add(log)
  return () => void followed.delete(log)
}

/** What was logged since the last call. */
export const takeLogged = (): readonly string[] =>
  [...followed].flatMap((log) => {
    const lines = log.lines.slice(log.taken)
    log.taken = log.lines.length
    return lines
  })
