// Reads and decides again when another request changed the row between a read and its conditional write.
import { PawlError } from './errors.ts'

/**
 * Runs `attempt` until it returns a value. Undefined means that another request changed the row first. Throws UNAVAILABLE after 128 rounds; nothing
 * was decided then, and nothing counted. `what` names the row, for the log. `round` counts from 0.
 */
export async function untilSettled<T>(what: string, attempt: (round: number) => Promise<T | undefined>): Promise<T> {
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const settled = await attempt(round)
    if (settled !== undefined) return settled
  }
  throw new PawlError('UNAVAILABLE', { detail: `lost too many races for one ${what}`, retryAfterSeconds: 1 })
}

// A round is lost only to a write that changed the same row, and such writes are few: wrong codes end at the maximum of failed attempts, and right
// codes come from one phone.
const ROUNDS_MAX = 128
