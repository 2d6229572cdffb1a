// Declares members that several endpoints of the reference's back-end API share. Its clients send null for absent members.
import { type Static, Type } from '@sinclair/typebox'
import { AnyMembers, OneOf, OptionalOrNull, withExample } from '../../http/types.ts'
import { requestRefused } from '../../lib/errors.ts'
import { FACTOR_COMBINATIONS, type Factors } from '../../protocol/protocol.ts'
import { GivenTime } from '../cloud/fields.ts'

/** A short text that must be present. The endpoint checks its content. */
export const Given = Type.String({ minLength: 1, maxLength: 1024, pattern: '^[^\\u0000-\\u001F\\u007F]*$' })
export const Optional = OptionalOrNull(Type.String({ maxLength: 255, pattern: '^[^\\u0000]*$' }))
/** In either case, as MadeId. */
export const ActivationId = { ...withExample(Given, '3f2504e0-4f89-41d3-9a0c-0305e82c3301'), lowerCase: true }

export const FactorNames = OneOf<Factors>(FACTOR_COMBINATIONS)
export const Names = Type.Array(Type.String())

export const CHANGE_ERRORS = ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'] as const

/** A list of texts in a request. */
export const NamesGiven = Type.Array(Given, { maxItems: 1000 })

const PAGE_SIZE = 500

/** The number of a page, counted from 0, and the number of its items. */
export const PAGE = {
  pageNumber: OptionalOrNull(Type.Integer({ minimum: 0, maximum: 100_000 })),
  pageSize: OptionalOrNull(Type.Integer({ minimum: 1, maximum: PAGE_SIZE })),
}

export function placeOf({ pageNumber, pageSize }: { pageNumber?: number | null; pageSize?: number | null }): {
  readonly limit: number
  readonly offset: number
} {
  const limit = pageSize ?? PAGE_SIZE
  return { limit, offset: (pageNumber ?? 0) * limit }
}

/** A time in a request, in the form of the published clients. */
export const TimeGiven = OptionalOrNull(GivenTime)

/** The time of a member; null without one. */
export const toTime = (given: Static<typeof TimeGiven> | undefined): Date | null =>
  given === null || given === undefined ? null : new Date(given)

/** Data that the published clients may send, and pawl does not store. */
export const AdditionalData = OptionalOrNull(AnyMembers)

/** Throws REQUEST_INVALID for data that pawl would not store. */
export function requireNoData(additionalData: object | null | undefined): void {
  if (Object.keys(additionalData ?? {}).length > 0) throw requestRefused('additionalData', 'is not offered')
}

/** A time in an answer: ISO 8601. */
export const Iso = Type.String({ examples: ['2026-01-01T00:00:00.000Z'] })
