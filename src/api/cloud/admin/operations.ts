// GET /admin/applications/{id}/operations: searches operations. The contract does not have this endpoint (cloud §10).
import { type Static, type TObject, Type } from '@sinclair/typebox'
import { requireApplication } from '../../../domain/application/application.ts'
import { statusAt } from '../../../domain/operation/operation.ts'
import { requestRefused } from '../../../lib/errors.ts'
import type { Db } from '../../../storage/database/database.ts'
import { type OperationSearch, searchOperations, searchOperationsWith } from '../../../storage/operation/operations.ts'
import { adminRead } from '../endpoint.ts'
import {
  Cursor,
  cutPage,
  NextCursor,
  nextCursorAt,
  OfId,
  OperationId,
  OptionalTime,
  PageLimit,
  parseCursor,
  Status,
  Time,
  UserId,
  UserIdPart,
  UserIdPrefix,
} from '../fields.ts'
import { OPERATION_MEMBERS } from '../operations.ts'

/** The place where the page begins. Callers that do not know `cursor` name the last operation of the previous page by the two others. */
const PLACE = { cursor: Cursor, beforeTimestamp: OptionalTime, beforeOperationId: Type.Optional(OperationId) }

const ListedOperation = Type.Object({
  operationId: Type.String(),
  userId: Type.Optional(Type.String()),
  registrationId: Type.Optional(Type.String({ description: 'the only device that is shown it and decides it' })),
  applicationFlag: Type.Optional(Type.String({ description: 'what a device must carry to approve it' })),
  status: Status,
  statusReason: Type.Optional(Type.String()),
  template: Type.String(),
  operationType: Type.String(),
  failureCount: OPERATION_MEMBERS.failureCount,
  maxFailureCount: OPERATION_MEMBERS.maxFailureCount,
  timestampCreated: Time,
  timestampExpires: Time,
})
export type ListedOperation = Static<typeof ListedOperation>

export const operationsSearch = adminRead({
  route: 'GET /admin/applications/:id/operations',
  operationId: 'searchOperations',
  summary: 'Searches operations of an application',
  description:
    'The newest first. A search by `userIdPart` looks at 50,000 records. Where `nextCursor` is there it goes on behind them, also after an empty page. ' +
    'A search for EXPIRED finds an operation some seconds after its end, when that is stored.',
  errors: ['ADMINISTRATION_REFUSED'],
  params: OfId,
  query: Type.Object({
    userId: Type.Optional(UserId),
    /** Matches users who have or had a registration. */
    userIdPrefix: UserIdPrefix,
    userIdPart: UserIdPart,
    status: Type.Optional(Status),
    limit: PageLimit(1_000, 100),
    ...PLACE,
  }),
  response: Type.Object({ operations: Type.Array(ListedOperation), nextCursor: NextCursor }),
  async handle({ params: { id }, query, parts }) {
    const after = placeOf(query)
    await requireApplication(parts.db, id)
    const { userId, userIdPrefix, userIdPart, status, limit } = query
    const now = parts.platform.now()
    const state = status === 'PENDING' ? { pendingAt: new Date(now) } : { status }
    const search = { userId, userIdPrefix, ...state, after }
    const { rows, next } =
      userIdPart === undefined
        ? await readPage(parts.db, id, search, limit)
        : await searchOperationsWith(parts.db, id, { ...search, limit }, userIdPart)
    return {
      operations: rows.map((row) => ({
        operationId: row.operationId,
        ...(row.userId !== null && { userId: row.userId }),
        ...(row.activationId !== null && { registrationId: row.activationId }),
        ...(row.activationFlag !== null && { applicationFlag: row.activationFlag }),
        status: statusAt(row, now),
        ...(row.statusReason !== null && { statusReason: row.statusReason }),
        template: row.templateName,
        operationType: row.operationType,
        failureCount: row.failureCount,
        maxFailureCount: row.maxFailureCount,
        timestampCreated: row.createdAt.getTime(),
        timestampExpires: row.expiresAt.getTime(),
      })),
      ...nextCursorAt(next),
    }
  },
})

async function readPage(db: Db, applicationId: string, search: Omit<OperationSearch, 'limit'>, limit: number) {
  const { page, last } = cutPage(await searchOperations(db, applicationId, { ...search, limit: limit + 1 }), limit)
  return { rows: page, next: last && { createdAt: last.createdAt, id: last.operationId } }
}

/** The place where the page begins; undefined for the first page. Throws REQUEST_INVALID for an incomplete place, and for two places. */
function placeOf({ cursor, beforeTimestamp, beforeOperationId }: Static<TObject<typeof PLACE>>): OperationSearch['after'] {
  const given = [cursor, beforeTimestamp, beforeOperationId].filter((value) => value !== undefined)
  if (given.length === 0) return undefined
  if (cursor !== undefined && given.length === 1) {
    const { createdAt, id } = parseCursor(cursor)
    return { createdAt, operationId: id }
  }
  if (cursor === undefined && beforeTimestamp !== undefined && beforeOperationId !== undefined)
    return { createdAt: new Date(beforeTimestamp), operationId: beforeOperationId }
  if (cursor !== undefined) throw requestRefused('cursor', 'must stand alone')
  throw requestRefused('beforeTimestamp', 'must stand together with beforeOperationId')
}
