// How an activation is seen at a time (cloud §3.4): a temporary block is over when its end has come, whether or not that is stored.
// All who read the state of an activation read it through here.
import { sql } from 'kysely'
import type { ActivationState } from '../schema.ts'

/** What a block leaves visible. */
export interface BlockColumns {
  /** The end of a temporary block that lasts. */
  readonly blockExpiresAt: Date | null
  /** The block is over and still stored: a writer that moves the activation stores its end first. */
  readonly isBlockOver: boolean
}

/** The one place that says when a block is over; a time follows. A lasting block has no end, so it is null then. */
export const BLOCK_ENDS = `state = 'BLOCKED' and block_expires_at <=`

// Each rule once, as text around the time it asks for. A block without an end compares to null, and `case` takes null for false.
type Rule = (at: string) => string
const isOver: Rule = (at) => `coalesce(${BLOCK_ENDS} ${at}, false)`
const state: Rule = (at) => `case when ${BLOCK_ENDS} ${at} then 'ACTIVE' else state end`
const failedAttempts: Rule = (at) =>
  `case when ${BLOCK_ENDS} ${at} then least(failed_attempts, max_failed_attempts - 1) else failed_attempts end`
const blockExpires: Rule = (at) => `case when state = 'BLOCKED' and block_expires_at > ${at} then block_expires_at end`

/** The columns of an activation that a block changes, for statements of constant text; `at`: a placeholder or column. */
export function composeSeenColumns(at: string): string {
  const time = `${at}::timestamptz`
  return `${state(time)} as state,
  ${failedAttempts(time)} as "failedAttempts",
  ${blockExpires(time)} as "blockExpiresAt",
  ${isOver(time)} as "isBlockOver"`
}

const MARK = '@at'

/** A rule as a part of a statement that is built. */
const bind =
  <T>(rule: Rule) =>
  (at: Date) =>
    sql<T>`${sql.join(
      rule(MARK)
        .split(MARK)
        .map((text) => sql.raw(text)),
      sql`${at}::timestamptz`,
    )}`

/** Whether a temporary block is over. */
export const isBlockOver = bind<boolean>(isOver)

/** The state. */
export const stateAt = bind<ActivationState>(state)

/** Whether it is ACTIVE; written so that PostgreSQL can use the index of live activations. */
export const isActiveAt = bind<boolean>((at) => `(state = 'ACTIVE' or ${BLOCK_ENDS} ${at})`)

/** Why it is blocked. */
export const blockedReasonAt = bind<string | null>((at) => `case when ${BLOCK_ENDS} ${at} then null else blocked_reason end`)

/** The end of a temporary block that lasts. */
export const blockExpiresAt = bind<Date | null>(blockExpires)

/** Failed attempts: when a block ends, one is left. */
export const failedAttemptsAt = bind<number>(failedAttempts)

/** The state, in which those that waited too long are REMOVED as well, whether or not that is stored. */
export const effectiveStateAt = (at: Date) =>
  sql`case when state in ('CREATED', 'PENDING_COMMIT') and expires_at <= ${at}::timestamptz then 'REMOVED' else ${stateAt(at)} end`
