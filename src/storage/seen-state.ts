// How an activation is seen at a time (cloud §3.4): a temporary block is over when its end has come, whether or not that is stored.
// All who read the state of an activation read it through here.
import { sql } from 'kysely'
import type { ActivationState } from './schema.ts'

/** What a block leaves visible. */
export interface BlockColumns {
  /** The end of a temporary block that lasts. */
  readonly blockExpiresAt: Date | null
  /** The block is over and still stored: who wants to move the activation stores its end first. */
  readonly isBlockOver: boolean
}

/** The columns of an activation that a block changes, as they are at `at`: a placeholder or column. */
export const composeSeenColumns = (at: string): string => {
  const isOver = `${BLOCK_ENDS} ${at}::timestamptz`
  return `case when ${isOver} then 'ACTIVE' else state end as state,
  case when ${isOver} then least(failed_attempts, max_failed_attempts - 1) else failed_attempts end as "failedAttempts",
  case when state = 'BLOCKED' and block_expires_at > ${at}::timestamptz then block_expires_at end as "blockExpiresAt",
  coalesce(${isOver}, false) as "isBlockOver"`
}

/** Whether a temporary block is over. */
export const isBlockOver = (at: Date) => sql<boolean>`coalesce(${sql.raw(BLOCK_ENDS)} ${at}::timestamptz, false)`

/** The state. */
export const stateAt = (at: Date) => sql<ActivationState>`case when ${isBlockOver(at)} then 'ACTIVE' else state end`

/** Whether it is ACTIVE; so written that an index of live activations serves. */
export const isActiveAt = (at: Date) => sql`(state = 'ACTIVE' or ${sql.raw(BLOCK_ENDS)} ${at}::timestamptz)`

/** Why it is blocked. */
export const blockedReasonAt = (at: Date) => sql<string | null>`case when ${isBlockOver(at)} then null else blocked_reason end`

/** The end of a temporary block that lasts. */
export const blockExpiresAt = (at: Date) =>
  sql<Date | null>`case when state = 'BLOCKED' and block_expires_at > ${at}::timestamptz then block_expires_at end`

/** Failed attempts: when a block ends, one is left. */
export const failedAttemptsAt = (at: Date) =>
  sql<number>`case when ${isBlockOver(at)} then least(failed_attempts, max_failed_attempts - 1) else failed_attempts end`

/** The one place that says when a block is over; a time follows. A lasting block has no end, so it is null then. */
export const BLOCK_ENDS = `state = 'BLOCKED' and block_expires_at <=`
