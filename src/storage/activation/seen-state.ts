// Selects the state of an activation as it is seen at a time (cloud §3.4): a temporary block is over when its end has come, whether or not
// that is stored. All who read the state of an activation read it through here.
import { type RawBuilder, sql } from 'kysely'
import type { ActivationState } from '../database/schema.ts'

/** What a block leaves visible. */
export interface BlockColumns {
  /** The end of a temporary block that lasts. */
  readonly blockExpiresAt: Date | null
  /** The block is over and still stored: a writer that moves the activation stores its end first. */
  readonly isBlockOver: boolean
}

/** The time at which an activation is seen: a value, or in a statement of constant text the placeholder or column that holds it. */
export type SeenAt = Date | RawBuilder<unknown>

const timeOf = (at: SeenAt): RawBuilder<unknown> => sql`${at}::timestamptz`

/** The one place that says when a block is over. A lasting block has no end: the answer for it is null, which counts as no. */
export const blockEnds = (at: SeenAt): RawBuilder<boolean | null> => sql`state = 'BLOCKED' and block_expires_at <= ${timeOf(at)}`

/** Whether a temporary block is over. */
export const isBlockOver = (at: SeenAt): RawBuilder<boolean> => sql`coalesce(${blockEnds(at)}, false)`

/** The state. */
export const stateAt = (at: SeenAt): RawBuilder<ActivationState> => sql`case when ${blockEnds(at)} then 'ACTIVE' else state end`

/** Whether it is ACTIVE; written so that PostgreSQL can use the index of live activations. */
export const isActiveAt = (at: SeenAt): RawBuilder<boolean> => sql`(state = 'ACTIVE' or ${blockEnds(at)})`

/** Why it is blocked. */
export const blockedReasonAt = (at: SeenAt): RawBuilder<string | null> =>
  sql`case when ${blockEnds(at)} then null else blocked_reason end`

/** The end of a temporary block that lasts. */
export const blockExpiresAt = (at: SeenAt): RawBuilder<Date | null> =>
  sql`case when state = 'BLOCKED' and block_expires_at > ${timeOf(at)} then block_expires_at end`

/** Failed attempts when a block has ended: one is left. */
export const FAILED_ATTEMPTS_AFTER_BLOCK: RawBuilder<number> = sql`least(failed_attempts, max_failed_attempts - 1)`

/** Failed attempts. */
export const failedAttemptsAt = (at: SeenAt): RawBuilder<number> =>
  sql`case when ${blockEnds(at)} then ${FAILED_ATTEMPTS_AFTER_BLOCK} else failed_attempts end`

/** Whether it waited too long for its key exchange or its commit. */
export const hasWaitedTooLong = (at: SeenAt): RawBuilder<boolean> =>
  sql`state in ('CREATED', 'PENDING_COMMIT') and expires_at <= ${timeOf(at)}`

/** The state, in which those that waited too long are REMOVED, whether or not that is stored. */
export const effectiveStateAt = (at: SeenAt): RawBuilder<ActivationState> =>
  sql`case when ${hasWaitedTooLong(at)} then 'REMOVED' else ${stateAt(at)} end`
