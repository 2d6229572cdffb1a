// Looking for the counter value of a code (v3 §9.1, v4 §7.4) in bounded work, which leaves room for other requests in between. Whether
// keys are those of an activation or of a decoy makes no difference to it.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ActivationKeys, CodeMatch, CodeToVerify, Protocol } from '../../protocol/protocol.ts'

/** A code, and what it may cover: `readings` are tried one after the other. */
export interface SoughtCode {
  readonly code: CodeToVerify
  /** As Protocol.signedData makes them. */
  readonly readings: readonly Uint8Array[]
}

/**
 * Tries `lookAhead` counter values, or fewer where the readings are so long that as many would take more than 320 KiB; one at least.
 */
export async function findMove<Keys extends ActivationKeys>(
  protocol: Protocol<Keys>,
  keys: Keys,
  ctrData: Uint8Array,
  { code, readings }: SoughtCode,
  lookAhead: number,
): Promise<CodeMatch> {
  const bytes = readings.reduce((sum, { length }) => sum + length, 0)
  const steps = Math.min(lookAhead, Math.max(1, Math.floor(BYTES_MAX / bytes)))
  let isPossessionRight = false
  let sinceTurn = 0
  for (const reading of readings) {
    const stepsAtOnce = Math.max(1, Math.floor(BYTES_AT_ONCE / reading.length))
    let counter = ctrData
    for (let tried = 0; tried < steps; tried += stepsAtOnce) {
      const count = Math.min(stepsAtOnce, steps - tried)
      if (sinceTurn > 0 && sinceTurn + count * reading.length > BYTES_AT_ONCE) {
        await nextTurn()
        sinceTurn = 0
      }
      const { move, ...found } = protocol.verifyAuthenticationCode(keys, counter, reading, code, count)
      if (found.isPossessionRight) isPossessionRight = true
      if (move) return { move: { ...move, steps: tried + move.steps }, isPossessionRight }
      sinceTurn += count * reading.length
      if (tried + count < steps) for (let i = 0; i < count; i += 1) counter = protocol.advanceCounter(counter)
    }
  }
  return { move: undefined, isPossessionRight }
}

// A MAC of version 4.0 over 64 KiB takes 0.2 ms, so that a check takes 1 ms at most and no turn of the event loop much over 1 ms. Bodies
// up to 11 KiB have the whole look-ahead of 20.
const BYTES_MAX = 320 * 1024
const BYTES_AT_ONCE = 256 * 1024
