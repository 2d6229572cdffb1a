// Walks along the hash-based counter to find the value of a code (v3 §9.1, v4 §7.4).
import type { CodeMatch } from '../protocol.ts'

/** The result of comparing a code with one counter value: all components are right, only the first, or not even that. */
type Comparison = 'RIGHT' | 'POSSESSION_ONLY' | 'WRONG'

/**
 * Compares a code with `lookAhead` counter values. The first one with the result RIGHT gives the move. `advance` returns the counter value after a
 * given one.
 */
export function findCounter(
  ctrData: Uint8Array,
  lookAhead: number,
  advance: (ctrData: Uint8Array) => Uint8Array,
  compare: (counter: Uint8Array) => Comparison,
): CodeMatch {
  let isPossessionRight = false
  let counter = ctrData
  for (let i = 0; i < lookAhead; i += 1) {
    const next = advance(counter)
    const compared = compare(counter)
    if (compared !== 'WRONG') isPossessionRight = true
    if (compared === 'RIGHT') return { move: { steps: i + 1, ctrData: next }, isPossessionRight }
    counter = next
  }
  return { move: undefined, isPossessionRight }
}
