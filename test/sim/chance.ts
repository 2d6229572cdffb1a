// Makes all random decisions of a simulation: the same seed makes the same decisions in the same order.

export interface Chance {
  /** 0 to `count` - 1. */
  readonly below: (count: number) => number
  /** True in `share` (0 to 1) of the cases. */
  readonly happens: (share: number) => boolean
  /** Throws when there is nothing to choose from. */
  readonly pick: <T>(list: readonly T[]) => T
  readonly bytes: (length: number) => Uint8Array
}

/** The generator mulberry32: 32 bits of state, more than the few thousand decisions of a run need. */
export function createChance(seed: number): Chance {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (count: number): number => Math.floor(next() * count)
  return {
    below,
    happens: (share) => next() < share,
    pick: (list) => {
      if (list.length === 0) throw new RangeError('nothing to choose from')
      return list[below(list.length)] as (typeof list)[number]
    },
    bytes: (length) => Uint8Array.from({ length }, () => below(256)),
  }
}
