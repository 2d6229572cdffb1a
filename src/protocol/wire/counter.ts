// The walk along the hash-based counter (v3 §9.1, v4 §7.4).
import type { CodeMatch } from '../protocol.ts'

/** How a code compares with what one counter value makes: all components are right, the first alone, or not even that. */
type Comparison = 'RIGHT' | 'POSSESSION_ONLY' | 'WRONG'

/**
 * Compares a code with `lookAhead` counter values; the first that it is RIGHT at gives the move it causes. `advance` gives the value after
 * one.
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
