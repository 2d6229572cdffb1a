// Decides how one checked authentication code changes an activation: counting, resetting, blocking (v3 §10.5). A block by failed attempts may end
// by itself, and each one in a row then lasts twice as long (cloud §3.4).
import { endTemporaryBlock } from '../../storage/activation/expiry.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { DomainParts } from '../secrets/secrets.ts'

/** `blocksInRow` are the blocks by failed attempts since the last success that was counted. */
export type AuthenticationState = Pick<ActivationRow, 'state' | 'failedAttempts' | 'maxFailedAttempts' | 'blocksInRow'>

export interface AuthenticationAttempt {
  /** Whether the code matched a counter value. */
  readonly valid: boolean
  /** Whether the code changes the count of failures. A right code of two factors resets it. A wrong code counts if it is a guess. */
  readonly isCounted: boolean
  /** Whether a PENDING_COMMIT activation is judged like an ACTIVE one. It is never blocked; at the maximum its codes are refused (v4 §9.6). */
  readonly isPendingAccepted?: boolean
}

export interface AuthenticationDecision extends Omit<AuthenticationState, 'maxFailedAttempts'> {
  readonly valid: boolean
  /** Set when this attempt blocks the activation. */
  readonly blockedReason?: 'MAX_FAILED_ATTEMPTS'
}

/**
 * Decides by rules 3, 4, 6 and 7 of v3 §10.5. The function has no effects: its caller stores the decision, on the condition of the row version that
 * it read.
 */
export function decideAuthentication(current: AuthenticationState, attempt: AuthenticationAttempt): AuthenticationDecision {
  const { state, failedAttempts, maxFailedAttempts, blocksInRow } = current
  const isPending = state === 'PENDING_COMMIT' && attempt.isPendingAccepted === true
  const stay = { valid: false, state, failedAttempts, blocksInRow }
  if (state !== 'ACTIVE' && !isPending) return stay
  if (failedAttempts >= maxFailedAttempts) return isPending ? stay : block(current, failedAttempts)
  // Before the commit, wrong OTPs are counted in the same column. A right code must not reset it, because that would allow more wrong OTPs.
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

/** The end of the `blocksInRow`-th block in a row; null when `firstSeconds` is 0, because then blocks have no end. */
export function composeBlockEnd(firstSeconds: number, blocksInRow: number, at: Date): Date | null {
  if (firstSeconds === 0) return null
  const seconds = Math.min(firstSeconds * 2 ** (blocksInRow - 1), TEMPORARY_BLOCK_SECONDS_MAX)
  return new Date(at.getTime() + seconds * 1000)
}

/**
 * Stores the end of a temporary block that is over. Returns true when there was one; the caller then reads the activation again. Every writer that
 * changes an activation calls this first, so that history, audit log and webhooks have the end as an event of its own.
 */
export async function endBlockIfOver(
  { db, platform, events }: Omit<DomainParts, 'recordKeys'>,
  { activationId, isBlockOver }: { readonly activationId: string; readonly isBlockOver: boolean },
): Promise<boolean> {
  if (!isBlockOver) return false
  const isStored = await endTemporaryBlock(db, activationId, new Date(platform.now()))
  if (isStored) events.registrationChanged({ activationId, from: 'BLOCKED', to: 'ACTIVE', reason: 'BLOCK_EXPIRED' })
  return true
}

// 30 days, so that the number cannot grow without end. A thief of a phone then has a dozen guesses a year.
const TEMPORARY_BLOCK_SECONDS_MAX = 2_592_000
