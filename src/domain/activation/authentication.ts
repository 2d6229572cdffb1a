// Decides how one checked authentication code changes an activation: counting, resetting, blocking (v3 §10.5).
import type { ActivationState } from '../../storage/database/schema.ts'

export interface AuthenticationState {
  readonly state: ActivationState
  readonly failedAttempts: number
  readonly maxFailedAttempts: number
  /** Blocks by failed attempts since the last success that was counted. */
  readonly blocksInRow: number
}

export interface AuthenticationAttempt {
  /** Whether the code matched a counter value. */
  readonly valid: boolean
  /** Whether the code changes the count of failures: a right code of two factors resets it, a wrong one counts if it is a guess. */
  readonly isCounted: boolean
  /** Whether a PENDING_COMMIT activation is judged like an ACTIVE one. It is never blocked; at the maximum its codes are refused (v4 §9.6). */
  readonly isPendingAccepted?: boolean
}

export interface AuthenticationDecision {
  readonly valid: boolean
  readonly state: ActivationState
  readonly failedAttempts: number
  readonly blocksInRow: number
  /** Set when this attempt blocks the activation. */
  readonly blockedReason?: 'MAX_FAILED_ATTEMPTS'
}

/** Decides by rules 3, 4, 6 and 7 of v3 §10.5. A pure function: the caller stores the outcome under the row version that it has read. */
export function decideAuthentication(current: AuthenticationState, attempt: AuthenticationAttempt): AuthenticationDecision {
  const { state, failedAttempts, maxFailedAttempts, blocksInRow } = current
  const isPending = state === 'PENDING_COMMIT' && attempt.isPendingAccepted === true
  const stay = { valid: false, state, failedAttempts, blocksInRow }
  if (state !== 'ACTIVE' && !isPending) return stay
  if (failedAttempts >= maxFailedAttempts) return isPending ? stay : block(current, failedAttempts)
  // Before the commit wrong OTPs are counted in the same place, and a confirmation must not give more of them.
  const isForgotten = attempt.isCounted && !isPending
  if (attempt.valid) return { ...stay, valid: true, ...(isForgotten && { failedAttempts: 0, blocksInRow: 0 }) }
  if (!attempt.isCounted) return stay
  const counted = failedAttempts + 1
  return counted >= maxFailedAttempts && !isPending ? block(current, counted) : { ...stay, failedAttempts: counted }
}

const block = ({ blocksInRow }: AuthenticationState, failedAttempts: number): AuthenticationDecision => ({
  valid: false,
  state: 'BLOCKED',
  failedAttempts,
  blocksInRow: blocksInRow + 1,
  blockedReason: 'MAX_FAILED_ATTEMPTS',
})
