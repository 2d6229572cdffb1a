// Declares schemas of members that several endpoints share, with the limits of cloud §1.3.
import { Type } from '@sinclair/typebox'
import { OneOf, OptionalOrNull, withExample } from '../../http/types.ts'
import { requestRefused } from '../../lib/errors.ts'
import { forPaths, IDENTIFIER, USERNAME } from '../../lib/identifier.ts'
import type { Platform } from '../../lib/platform.ts'
import type { ActivationState, OperationStatus } from '../../storage/database/schema.ts'

/** Identifiers: 1 to 255 UTF-16 code units, not blank, no control characters. They are compared without any conversion. */
export const Identifier = Type.String({ minLength: 1, ...IDENTIFIER, examples: ['my-app'] })

/** The identifier of a new thing whose name occurs in paths of URLs. */
export const NewIdentifier = Type.String({ minLength: 1, ...forPaths(IDENTIFIER), examples: ['my-app'] })

export const OfId = Type.Object({ id: Identifier })

/**
 * An id that pawl made: of a registration, an operation, a message. In either case, because databases of banks have UUIDs with capitals. The
 * validator makes it the lower case in which it is stored. Imported webhooks and tokens keep the ids of their source, so theirs is an Identifier.
 */
export const MadeId = Type.String({
  minLength: 1,
  ...IDENTIFIER,
  lowerCase: true,
  examples: ['3f2504e0-4f89-41d3-9a0c-0305e82c3301'],
})

export const OfMadeId = Type.Object({ id: MadeId })

export const OfName = Type.Object({ name: Identifier })

export const UserId = withExample(Identifier, 'alice')

/** The state of a registration (v3 §8.1). */
export const State = OneOf<ActivationState>(['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED'])

/** The status of an operation (cloud §6). */
export const Status = OneOf<OperationStatus>(['PENDING', 'CANCELED', 'EXPIRED', 'APPROVED', 'REJECTED', 'FAILED'])

/** For searches: the beginning of user ids. The letters A to Z match in either case. */
export const UserIdPrefix = Type.Optional(withExample(Identifier, 'ali'))

/**
 * For searches: a part of user ids. The letters A to Z match in either case. One answer covers 50,000 records, and `nextCursor` leads to the next
 * ones.
 */
export const UserIdPart = Type.Optional(withExample(Identifier, 'lic'))

/** Free text up to 255 UTF-16 code units; null counts as absent. */
export const OptionalText = OptionalOrNull(
  Type.String({ pattern: '^[^\\u0000]{0,255}$', description: 'must be at most 255 characters' }),
)

export const Username = Type.String({ ...USERNAME, examples: ['bank'] })

/** A name that only paths of URLs contain: the key of a configuration item, the id of an OpenID provider. */
export const WordOfPath = Type.String(
  forPaths({ pattern: '^[A-Za-z0-9_.-]{1,64}$', description: 'must be 1 to 64 letters, digits, `_`, `.` or `-`' }),
)

/** A flag of a registration. Templates and doors may demand it. */
export const Flag = Type.String({
  pattern: '^[A-Z0-9_]{1,64}$',
  description: 'must be 1 to 64 of the characters A-Z, 0-9 and _',
  examples: ['VERIFIED'],
})

export const Flags = Type.Array(Flag, { uniqueItems: true, maxItems: 64 })

/** The id of the registration, needed when a user has several. */
export const OfSeveral = Type.Optional({
  ...MadeId,
  description: 'must be the id of a registration, of 1 to 255 characters; needed where the user has several',
})

export const ChosenPassword = Type.String({
  pattern: '^[^\\u0000-\\u001F\\u007F]{12,255}$',
  description: 'must be 12 to 255 characters without control characters',
  examples: ['a password of my own'],
})

/** A UUID in either case, as MadeId. */
export const OperationId = Type.String({
  pattern: '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$',
  description: 'must be a UUID',
  lowerCase: true,
  examples: ['3f2504e0-4f89-41d3-9a0c-0305e82c3301'],
})

/** The id of a registration, which is that of its activation. A UUID in either case. */
export const RegistrationId = withExample(OperationId, '7f0c2f5e-6d0c-4f55-8a53-3f1a2f6b1c11')

/** A machine-readable reason that the phone may show. */
export const StatusReason = Type.Optional(
  Type.String({
    pattern: '^[^\\u0000-\\u001F\\u007F]{1,32}$',
    description: 'must be 1 to 32 characters without control characters',
  }),
)

/** Seconds since 1970-01-01 UTC, to the end of year 9999. */
export const Seconds = Type.Integer({ minimum: 0, maximum: 253_402_300_799, description: 'seconds since 1970-01-01 UTC' })

export const toSeconds = (time: Date): number => Math.floor(time.getTime() / 1000)

export const Time = Type.Integer({ description: 'milliseconds since 1970-01-01 UTC' })

/** A time in a query or a body, up to the year 9999. */
export const GivenTime = Type.Integer({
  minimum: 0,
  maximum: 253_402_300_799_999,
  description: 'milliseconds since 1970-01-01 UTC',
})
export const OptionalTime = Type.Optional(GivenTime)

/** The time at which something ends; undefined if none is given. Throws REQUEST_INVALID, which names `member`, for a time in the past. */
export function readEnd(
  { platform }: { readonly platform: Platform },
  time: number | null | undefined,
  member = 'expiresAt',
): Date | undefined {
  if (time === null || time === undefined) return undefined
  if (time > platform.now()) return new Date(time)
  throw requestRefused(member, 'must be in the future', String(time))
}

/** The seconds for which a password or secret stays valid beside its successor: at most 30 days. */
export const KeepPreviousSeconds = Type.Optional(
  Type.Integer({ minimum: 0, maximum: 2_592_000, description: 'how long the previous one stays good beside it; 0 without it' }),
)

/** For queries: the maximum of items on a page; `usual` if absent. */
export const PageLimit = (max: number, usual: number) =>
  Type.Integer({ minimum: 1, maximum: max, default: usual, description: 'how many there are at the most' })

/** One page of `rows`. The caller has read up to one row more than `limit`. `last` is the last row of the page if another page follows it. */
export function cutPage<Row>(
  rows: readonly Row[],
  limit: number,
): { readonly page: readonly Row[]; readonly last: Row | undefined } {
  const page = rows.slice(0, limit)
  return { page, last: rows.length > limit ? page.at(-1) : undefined }
}

/** The member of an answer with the place where the next page begins. Empty on the last page. */
export const nextCursorAt = (next: { readonly createdAt: Date; readonly id: string } | undefined): { nextCursor?: string } =>
  next === undefined ? {} : { nextCursor: `${next.createdAt.getTime()}_${next.id}` }

// With 14 digits, both databases and JavaScript can represent the time.
const CURSOR = /^(\d{1,14})_([0-9a-f-]{36})$/

/** For queries of a list that is ordered by time of creation and id: the `nextCursor` of the previous page. */
export const Cursor = Type.Optional(
  Type.String({
    pattern: CURSOR.source,
    description: 'must be the nextCursor of an answer',
    examples: ['1767225600000_3f2504e0-4f89-41d3-9a0c-0305e82c3301'],
  }),
)

/** The schema of the member that nextCursorAt composes. */
export const NextCursor = Type.Optional(Type.String({ description: 'leads to the next page; absent on the last one' }))

export function parseCursor(cursor: string): { readonly createdAt: Date; readonly id: string } {
  const [, time = '', id = ''] = CURSOR.exec(cursor) ?? []
  return { createdAt: new Date(Number(time)), id }
}
