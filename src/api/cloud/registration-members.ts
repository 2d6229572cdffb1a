// Declares members that endpoints about registrations share: of a new registration, of its state, and of its history.
import { type Static, type TObject, Type } from '@sinclair/typebox'
import { OneOf, withExample } from '../../http/types.ts'
import { requestRefused } from '../../lib/errors.ts'
import { type HistoryRow, listActivationHistory } from '../../storage/activation/history.ts'
import type { Db } from '../../storage/database/database.ts'
import type { CommitPhase } from '../../storage/database/schema.ts'
import type { ListedRegistrationRow, RegistrationDetailRow } from '../../storage/activation/search.ts'
import { cutPage, Identifier, OptionalText, State, Time, UserId } from './fields.ts'

export const Phase = OneOf<CommitPhase>(['ON_COMMIT', 'ON_KEY_EXCHANGE'])

/** The members of every registration, without its id. */
export const REGISTERED = {
  userId: Type.String(),
  state: State,
  name: Type.Optional(Type.String()),
  platform: Type.Optional(Type.String()),
  deviceInfo: Type.Optional(Type.String()),
  protocolVersion: Type.Optional(Type.Integer({ description: 'generation, from the key exchange on: 3 or 4' })),
}
/** What a registration says of wrong codes and of its commit. */
export const ATTEMPTS_AND_COMMIT = {
  failedAttempts: Type.Integer({ description: 'wrong codes in a row until now' }),
  maxFailedAttempts: Type.Integer({ description: 'wrong codes in a row that block the phone' }),
  commitPhase: Phase,
  isOtpDemanded: Type.Boolean({ description: 'whether an OTP is still to be given' }),
}
export const Expires = Type.Optional(
  Type.Integer({ description: 'milliseconds since 1970-01-01 UTC, in the states CREATED and PENDING_COMMIT' }),
)

export const QR_TEXT = 'VVVVV-VVVVV-VVVVV-VTFVA#MEUCIQDcPHNjYPjLQ7iYoQ=='

/** The one-time password that makes a registration ACTIVE. */
export const ActivationOtp = withExample(Identifier, '246810')

/** Bodies for a new registration. One made of all members would be refused, because two of them exclude each other. */
export const NEW_REGISTRATIONS = [{ userId: 'alice' }, { userId: 'alice', otp: '246810', otpPhase: 'ON_KEY_EXCHANGE' }]

export const NEW_REGISTRATION = {
  userId: UserId,
  otp: Type.Optional(ActivationOtp),
  otpPhase: Type.Optional({ ...Phase, description: 'when `otp` is asked for; excludes `commitPhase`' }),
  commitPhase: Type.Optional({
    ...Phase,
    description: 'when the registration becomes ACTIVE, and an `otp` is asked for; ON_COMMIT without either phase',
  }),
}

/**
 * The phase of the commit and the phase in which the OTP is demanded, from whichever of the two members is given. Throws REQUEST_INVALID when both
 * are given, and for a phase of an OTP without the OTP (v3 §8.5).
 */
export function toCommitRules({ otp, otpPhase, commitPhase }: Static<TObject<typeof NEW_REGISTRATION>>) {
  if (otpPhase !== undefined && commitPhase !== undefined)
    throw requestRefused('otpPhase', 'must not be given together with commitPhase')
  if (otpPhase !== undefined && otp === undefined) throw requestRefused('otpPhase', 'must not be given without otp')
  return { otp: otp ?? null, commitPhase: otpPhase ?? commitPhase ?? ('ON_COMMIT' as const) }
}

/** The members of a registration in lists and details, except its id. */
export const listedMembers = (row: ListedRegistrationRow) => ({
  userId: row.userId,
  state: row.state,
  ...(row.name !== null && { name: row.name }),
  ...(row.platform !== null && { platform: row.platform }),
  ...(row.deviceInfo !== null && { deviceInfo: row.deviceInfo }),
  ...(row.protocolVersion !== null && { protocolVersion: row.protocolVersion }),
  ...(row.algorithm !== null && { algorithm: row.algorithm }),
  timestampCreated: row.createdAt.getTime(),
  ...(row.lastUsedAt !== null && { timestampLastUsed: row.lastUsedAt.getTime() }),
})

export const detailMembers = (row: RegistrationDetailRow) => ({
  ...listedMembers(row),
  ...(row.blockedReason !== null && { blockReason: row.blockedReason }),
  ...(row.blockExpiresAt !== null && { timestampBlockExpire: row.blockExpiresAt.getTime() }),
  flags: [...row.flags],
  failedAttempts: row.failedAttempts,
  maxFailedAttempts: row.maxFailedAttempts,
  commitPhase: row.commitPhase,
  isOtpDemanded: row.hasOtp && row.state !== 'REMOVED',
  ...((row.state === 'CREATED' || row.state === 'PENDING_COMMIT') && { timestampExpires: row.expiresAt.getTime() }),
})

/** A change, without the registrations that it applies to. */
export const CHANGE = {
  change: OneOf(['BLOCK', 'UNBLOCK', 'REMOVE']),
  externalUserId: OptionalText,
  blockReason: OptionalText,
}

/** For queries: the place where a history continues. */
export const BeforeEntry = Type.Optional(
  Type.String({ pattern: '^[0-9]{1,18}$', description: 'must be the next of another answer', examples: ['100'] }),
)

const HistoryEntry = Type.Object({
  from: Type.Optional(Type.String({ description: 'absent in the entry of the creation' })),
  to: Type.String(),
  reason: Type.Optional(Type.String()),
  externalUserId: Type.Optional(Type.String()),
  timestamp: Time,
})

/** A page of a history, in an answer. */
export const HISTORY = {
  history: Type.Array(HistoryEntry, { description: 'the newest first' }),
  next: Type.Optional(Type.String({ description: 'leads to older entries; absent when there are none' })),
}

/** Reads the values of HISTORY. */
export async function readHistory(db: Db, activationId: string, limit: number, before: string | null = null) {
  const { page, last } = cutPage(await listActivationHistory(db, activationId, { limit: limit + 1, before }), limit)
  return { history: page.map(toHistoryEntry), ...(last && { next: last.sequence }) }
}

const toHistoryEntry = ({ fromState, toState, reason, externalUserId, occurredAt }: HistoryRow): Static<typeof HistoryEntry> => ({
  ...(fromState !== null && { from: fromState }),
  to: toState,
  ...(reason !== null && { reason }),
  ...(externalUserId !== null && { externalUserId }),
  timestamp: occurredAt.getTime(),
})
