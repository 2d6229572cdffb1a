// Finds the existing name that a misspelt name probably means.

/** The known name with the fewest differing characters, the first of several. Undefined if even that differs in more than `distanceMax`. */
export function findNearest(name: string, known: readonly string[], distanceMax: number): string | undefined {
  const [nearest] = known.map((one) => ({ one, distance: editDistance(name, one) })).toSorted((a, b) => a.distance - b.distance)
  return nearest !== undefined && nearest.distance <= distanceMax ? nearest.one : undefined
}

/** The number of characters to insert, delete, replace or swap with their neighbour until the texts are equal. */
function editDistance(from: string, to: string): number {
  let last: number[] = []
  let row = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1)
      const isSwap = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      next[j] = Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, isSwap ? (last[j - 2] ?? 0) + 1 : replaced)
    }
    last = row
    row = next
  }
  return row[to.length] ?? 0
}
