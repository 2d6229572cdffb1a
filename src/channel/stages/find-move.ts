// Looking for the counter value of a code (v3 §9.1, v4 §7.4) in bounded work. Whether keys are those of an activation or of a decoy makes no
// difference to it.
import type { ActivationKeys, CodeMatch, CodeToVerify, Protocol } from '../../protocol/protocol.ts'

/** A code, and what it may cover: `readings` are tried one after the other. */
export interface SoughtCode {
  readonly code: CodeToVerify
  /** As Protocol.signedData makes them. */
  readonly readings: readonly Uint8Array[]
}

/**
 * Tries `lookAhead` counter values, or fewer where the readings are so long that as many would take more than 192 KiB; two at least, so that
 * one lost request never stops a phone.
 */
export function findMove<Keys extends ActivationKeys>(
  protocol: Protocol<Keys>,
  keys: Keys,
  ctrData: Uint8Array,
  { code, readings }: SoughtCode,
  lookAhead: number,
): CodeMatch {
  const bytes = readings.reduce((sum, { length }) => sum + length, 0)
  const steps = Math.min(lookAhead, Math.max(2, Math.floor(BYTES_MAX / bytes)))
  let isPossessionRight = false
  for (const reading of readings) {
    const found = protocol.verifyAuthenticationCode(keys, ctrData, reading, code, steps)
    isPossessionRight ||= found.isPossessionRight
    if (found.move) return { move: found.move, isPossessionRight }
  }
  return { move: undefined, isPossessionRight }
}

// A MAC of version 4.0 over 64 KiB takes 0.2 ms, so that a check of 64 KiB takes 0.5 ms. Bodies up to 7 KiB have the whole look-ahead of 20.
const BYTES_MAX = 192 * 1024
