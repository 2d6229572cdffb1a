// Selects the state of an activation as seen at a time (cloud §3.4): a temporary block is over when its end is past, whether or not that is stored.
// Every query for the state of an activation uses this file.
import { type RawBuilder, sql } from 'kysely'
import type { ActivationState } from '../database/schema.ts'

/** The columns about the block of an activation. */
export interface BlockColumns {
  /** The end of a temporary block that is not over. */
  readonly blockExpiresAt: Date | null
  /** True when the block is over but still stored. A request that moves the activation stores the end of the block first. */
  readonly isBlockOver: boolean
}

/** The time at which an activation is seen: a value, or in a statement of constant text the placeholder or column that holds it. */
export type SeenAt = Date | RawBuilder<unknown>

const timeOf = (at: SeenAt): RawBuilder<unknown> => sql`${at}::timestamptz`

/** True when a temporary block is over; the only definition of that. A block without an end gives null, which counts as false. */
export const blockEnds = (at: SeenAt): RawBuilder<boolean | null> => sql`state = 'BLOCKED' and block_expires_at <= ${timeOf(at)}`

/** True when a temporary block is over. */
export const isBlockOver = (at: SeenAt): RawBuilder<boolean> => sql`coalesce(${blockEnds(at)}, false)`

/** The state, where an ended block is ACTIVE. */
export const stateAt = (at: SeenAt): RawBuilder<ActivationState> => sql`case when ${blockEnds(at)} then 'ACTIVE' else state end`

/** True when the activation is ACTIVE, or its block is over. Written so that PostgreSQL can use the index of live activations. */
export const isActiveAt = (at: SeenAt): RawBuilder<boolean> => sql`(state = 'ACTIVE' or ${blockEnds(at)})`

/** The reason of the block; null when the block is over. */
export const blockedReasonAt = (at: SeenAt): RawBuilder<string | null> =>
  sql`case when ${blockEnds(at)} then null else blocked_reason end`

/** The end of a temporary block that is not over. */
export const blockExpiresAt = (at: SeenAt): RawBuilder<Date | null> =>
  sql`case when state = 'BLOCKED' and block_expires_at > ${timeOf(at)} then block_expires_at end`

/** The failed attempts after a temporary block: one attempt is left. */
export const FAILED_ATTEMPTS_AFTER_BLOCK: RawBuilder<number> = sql`least(failed_attempts, max_failed_attempts - 1)`

/** The failed attempts as seen at a time. */
export const failedAttemptsAt = (at: SeenAt): RawBuilder<number> =>
  sql`case when ${blockEnds(at)} then ${FAILED_ATTEMPTS_AFTER_BLOCK} else failed_attempts end`

/** True when an activation waited too long for its key exchange or its commit. */
export const hasWaitedTooLong = (at: SeenAt): RawBuilder<boolean> =>
  sql`state in ('CREATED', 'PENDING_COMMIT') and expires_at <= ${timeOf(at)}`

/** The state, where activations that waited too long are REMOVED, whether or not that is stored. */
export const effectiveStateAt = (at: SeenAt): RawBuilder<ActivationState> =>
  sql`case when ${hasWaitedTooLong(at)} then 'REMOVED' else ${stateAt(at)} end`
