// Entries that are numbers below a maximum: which was used when, and which has a key of some hash. Both are arrays of integers beside the heap.

/** What answers where there is no entry. */
export const NONE = -1

/** Which of up to `max` numbered entries was used when: a list in both directions, and a list of the numbers that are free. */
export function createOrder(max: number) {
  const older = new Int32Array(max)
  const newer = new Int32Array(max)
  let oldest = NONE
  let newest = NONE
  let firstFree = NONE
  let given = 0
  let size = 0

  const append = (entry: number): void => {
    older[entry] = newest
    newer[entry] = NONE
    if (newest === NONE) oldest = entry
    else newer[newest] = entry
    newest = entry
  }
  const unlink = (entry: number): void => {
    const before = older[entry] as number
    const after = newer[entry] as number
    if (before === NONE) oldest = after
    else newer[before] = after
    if (after === NONE) newest = before
    else older[after] = before
  }
  return {
    size: () => size,
    oldest: () => oldest,
    /** A number for another entry, of which there are fewer than `max`. */
    add: (): number => {
      const entry = firstFree === NONE ? given : firstFree
      if (firstFree === NONE) given += 1
      else firstFree = newer[entry] as number
      size += 1
      append(entry)
      return entry
    },
    use: (entry: number): void => {
      if (entry === newest) return
      unlink(entry)
      append(entry)
    },
    remove: (entry: number): void => {
      unlink(entry)
      newer[entry] = firstFree
      firstFree = entry
      size -= 1
    },
  }
}

/** Finds up to `max` numbered entries by a hash: a table that is half empty at least, of which the next free place is taken (linear probing). */
export function createIndex(max: number) {
  const mask = 2 ** Math.ceil(Math.log2(2 * max)) - 1
  /** The entry's number and one; zero where there is none. */
  const places = new Int32Array(mask + 1)
  const hashes = new Int32Array(max)
  const homeOf = (place: number): number => (hashes[(places[place] as number) - 1] as number) & mask

  return {
    /** The entry of this hash for which `isIt` is true, or none. */
    find: (hash: number, isIt: (entry: number) => boolean): number => {
      for (let place = hash & mask; places[place] !== 0; place = (place + 1) & mask) {
        const entry = (places[place] as number) - 1
        if (hashes[entry] === hash && isIt(entry)) return entry
      }
      return NONE
    },
    add: (hash: number, entry: number): void => {
      let place = hash & mask
      while (places[place] !== 0) place = (place + 1) & mask
      places[place] = entry + 1
      hashes[entry] = hash
    },
    remove: (entry: number): void => {
      let hole = (hashes[entry] as number) & mask
      while (places[hole] !== entry + 1) hole = (hole + 1) & mask
      // Those behind it move up where the hole is not before their own place, so that no search ends at it early.
      for (let place = (hole + 1) & mask; places[place] !== 0; place = (place + 1) & mask) {
        if (((place - homeOf(place)) & mask) < ((place - hole) & mask)) continue
        places[hole] = places[place] as number
        hole = place
      }
      places[hole] = 0
    },
  }
}
