// Members that several endpoints of the reference's back-end API share. Its clients send null for what is absent.
import { type Static, Type } from '@sinclair/typebox'
import { OptionalOrNull, withExample } from '../../http/types.ts'
import { FACTOR_COMBINATIONS, type Factors } from '../../protocol/protocol.ts'
import type { RegistrationDetailRow } from '../../storage/activation/search.ts'
import type { ActivationState, OperationStatus } from '../../storage/database/schema.ts'
import { refuse } from '../door/members.ts'

/** A short text that must be there; what is in it is checked where it is used. */
export const Given = Type.String({ minLength: 1, maxLength: 1024, pattern: '^[^\\u0000-\\u001F\\u007F]*$' })
export const Optional = OptionalOrNull(Type.String({ maxLength: 255, pattern: '^[^\\u0000]*$' }))
export const ActivationId = withExample(Given, '3f2504e0-4f89-41d3-9a0c-0305e82c3301')

export const StateName = Type.Unsafe<ActivationState>(
  Type.String({ enum: ['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED'] }),
)
export const OperationStatusName = Type.Unsafe<OperationStatus>(
  Type.String({ enum: ['PENDING', 'CANCELED', 'EXPIRED', 'APPROVED', 'REJECTED', 'FAILED'] }),
)
export const FactorNames = Type.Unsafe<Factors>(Type.String({ enum: [...FACTOR_COMBINATIONS] }))
export const Names = Type.Array(Type.String())

/** A list of texts in a request. */
export const NamesGiven = Type.Array(Given, { maxItems: 1000 })

const PAGE_SIZE = 500

/** Numbers of a page, from 0, and how many items it has. */
export const PAGE = {
  pageNumber: OptionalOrNull(Type.Integer({ minimum: 0, maximum: 100_000 })),
  pageSize: OptionalOrNull(Type.Integer({ minimum: 1, maximum: PAGE_SIZE })),
}

/** Which items of a list a page has. */
export function placeOf({ pageNumber, pageSize }: { pageNumber?: number | null; pageSize?: number | null }): {
  readonly limit: number
  readonly offset: number
} {
  const limit = pageSize ?? PAGE_SIZE
  return { limit, offset: (pageNumber ?? 0) * limit }
}

/** A time in a request, as the published clients write it. */
export const TimeGiven = OptionalOrNull(
  Type.Integer({ minimum: 0, maximum: 253_402_300_799_999, description: 'milliseconds since 1970-01-01 UTC' }),
)

/** The time of a member, if it has one. */
export const toTime = (given: Static<typeof TimeGiven> | undefined): Date | null =>
  given === null || given === undefined ? null : new Date(given)

/** Throws REQUEST_INVALID for data that nothing would keep. */
export function requireNoData(additionalData: object | null | undefined): void {
  if (Object.keys(additionalData ?? {}).length > 0) throw refuse('additionalData', 'is not offered')
}

/** A time in an answer: ISO 8601. */
export const Iso = Type.String({ examples: ['2026-01-01T00:00:00.000Z'] })

/** An activation in lists and by itself. */
export const ACTIVATION = {
  activationId: Type.String(),
  activationStatus: StateName,
  blockedReason: Type.Optional(Type.String()),
  activationName: Type.Optional(Type.String()),
  userId: Type.Optional(Type.String()),
  applicationId: Type.Optional(Type.String()),
  protocol: Type.Literal('powerauth'),
  platform: Type.Optional(Type.String()),
  deviceInfo: Type.Optional(Type.String()),
  extras: Type.Optional(Type.String()),
  externalId: Type.Optional(Type.String()),
  activationFlags: Names,
  failedAttempts: Type.Integer(),
  maxFailedAttempts: Type.Integer(),
  timestampCreated: Type.Optional(Iso),
  timestampLastUsed: Type.Optional(Iso),
  version: Type.Integer({ description: 'generation of the protocol; 0 before the key exchange' }),
}

/** An activation as it is answered. */
export function toActivation(row: RegistrationDetailRow, applicationId: string) {
  const { blockedReason, name, platform, deviceInfo, extras, externalId, lastUsedAt } = row
  return {
    activationId: row.activationId,
    activationStatus: row.state,
    ...(blockedReason !== null && { blockedReason }),
    ...(name !== null && { activationName: name }),
    userId: row.userId,
    applicationId,
    protocol: 'powerauth' as const,
    ...(platform !== null && { platform }),
    ...(deviceInfo !== null && { deviceInfo }),
    ...(extras !== null && { extras }),
    ...(externalId !== null && { externalId }),
    activationFlags: [...row.flags],
    failedAttempts: row.failedAttempts,
    maxFailedAttempts: row.maxFailedAttempts,
    timestampCreated: row.createdAt.toISOString(),
    // As the reference has it.
    timestampLastUsed: (lastUsedAt ?? row.createdAt).toISOString(),
    version: row.protocolVersion ?? 0,
  }
}
