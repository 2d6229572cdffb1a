// Members that endpoints about registrations share: those of a new one, and those of its history.
import { type Static, Type } from '@sinclair/typebox'
import { PawlError } from '../../lib/errors.ts'
import type { HistoryRow } from '../../storage/activation/history.ts'
import type { CommitPhase } from '../../storage/database/schema.ts'
import { Identifier, Time, UserId } from './fields.ts'

export const Phase = Type.Unsafe<CommitPhase>(Type.String({ enum: ['ON_COMMIT', 'ON_KEY_EXCHANGE'] }))

/** What is said of a new one. */
export const NEW_REGISTRATION = {
  userId: UserId,
  otp: Type.Optional(Identifier),
  otpPhase: Type.Optional(Phase),
  commitPhase: Type.Optional(Phase),
}

/**
 * Where the registration is committed is where its OTP is demanded: an explicit phase of the OTP decides both, and so does an explicit
 * commit phase. Both at once are refused (v3 §8.5).
 */
export function toCommitRules({ otp, otpPhase, commitPhase }: CommitWords) {
  const refuse = (hint: string) => {
    const violations = [{ fieldName: 'otpPhase', hint }]
    return new PawlError('REQUEST_INVALID', { detail: `otpPhase ${hint}`, violations })
  }
  if (otpPhase !== undefined && commitPhase !== undefined) throw refuse('must not be given together with commitPhase')
  if (otpPhase !== undefined && otp === undefined) throw refuse('must not be given without otp')
  return { otp: otp ?? null, commitPhase: otpPhase ?? commitPhase ?? ('ON_COMMIT' as const) }
}

interface CommitWords {
  readonly otp?: string
  readonly otpPhase?: CommitPhase
  readonly commitPhase?: CommitPhase
}

export const HistoryEntry = Type.Object({
  /** Absent in the entry of the creation. */
  from: Type.Optional(Type.String()),
  to: Type.String(),
  reason: Type.Optional(Type.String()),
  externalUserId: Type.Optional(Type.String()),
  timestamp: Time,
})

/** A change of a registration as it is answered. */
export const toHistoryEntry = ({
  fromState,
  toState,
  reason,
  externalUserId,
  occurredAt,
}: HistoryRow): Static<typeof HistoryEntry> => ({
  ...(fromState !== null && { from: fromState }),
  to: toState,
  ...(reason !== null && { reason }),
  ...(externalUserId !== null && { externalUserId }),
  timestamp: occurredAt.getTime(),
})
