// What one checked authentication code does to an activation: counting, resetting, blocking (v3 §10.5).
import type { ActivationState } from '../storage/schema.ts'

export interface AuthenticationState {
  readonly state: ActivationState
  readonly failedAttempts: number
  readonly maxFailedAttempts: number
}

export interface AuthenticationAttempt {
  /** The code matched a counter value. */
  readonly valid: boolean
  /** False for possession alone: its failures are never counted, its successes never reset the count. */
  readonly isCounted: boolean
  /** A PENDING_COMMIT activation is judged like an ACTIVE one; it is never blocked, its codes just stop being good (v4 §9.6). */
  readonly isPendingAccepted?: boolean
}

export interface AuthenticationDecision {
  readonly valid: boolean
  readonly state: ActivationState
  readonly failedAttempts: number
  /** Set when this attempt blocks the activation. */
  readonly blockedReason?: 'MAX_FAILED_ATTEMPTS'
}

/** Decides by rules 3, 4, 6 and 7 of v3 §10.5. Pure: the caller stores the outcome under the row version it has read. */
export function decideAuthentication(current: AuthenticationState, attempt: AuthenticationAttempt): AuthenticationDecision {
  const { state, failedAttempts, maxFailedAttempts } = current
  const isPending = state === 'PENDING_COMMIT' && attempt.isPendingAccepted === true
  if (state !== 'ACTIVE' && !isPending) return { valid: false, state, failedAttempts }
  if (failedAttempts >= maxFailedAttempts) return isPending ? { valid: false, state, failedAttempts } : blocked(failedAttempts)
  if (attempt.valid) return { valid: true, state, failedAttempts: attempt.isCounted ? 0 : failedAttempts }
  if (!attempt.isCounted) return { valid: false, state, failedAttempts }
  const counted = failedAttempts + 1
  return counted >= maxFailedAttempts && !isPending ? blocked(counted) : { valid: false, state, failedAttempts: counted }
}

const blocked = (failedAttempts: number): AuthenticationDecision => ({
  valid: false,
  state: 'BLOCKED',
  failedAttempts,
  blockedReason: 'MAX_FAILED_ATTEMPTS',
})
