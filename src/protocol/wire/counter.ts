// The walk along the hash-based counter (v3 §9.1, v4 §7.4).
import type { CounterMove } from '../protocol.ts'

/** The first of `lookAhead` counter values that `isMatch` accepts, as the move it causes. `advance` gives the value after one. */
export function findCounter(
  ctrData: Uint8Array,
  lookAhead: number,
  advance: (ctrData: Uint8Array) => Uint8Array,
  isMatch: (counter: Uint8Array) => boolean,
): CounterMove | undefined {
  let counter = ctrData
  for (let i = 0; i < lookAhead; i += 1) {
    const next = advance(counter)
    if (isMatch(counter)) return { steps: i + 1, ctrData: next }
    counter = next
  }
  return undefined
}
