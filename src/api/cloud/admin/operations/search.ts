// GET /admin/applications/{id}/operations: search with paging, beyond the contract (cloud §10).
import { Type } from '@sinclair/typebox'
import { requireApplication } from '../../../../domain/application/application.ts'
import { statusAt } from '../../../../domain/operation/operation.ts'
import { searchOperations } from '../../../../storage/operations.ts'
import type { OperationStatus } from '../../../../storage/schema.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { Identifier, OperationId, UserId } from '../../fields.ts'

const STATUSES = ['PENDING', 'APPROVED', 'REJECTED', 'CANCELED', 'EXPIRED', 'FAILED']

const Status = Type.Unsafe<OperationStatus>(Type.String({ enum: STATUSES }))

export const operationsSearch = cloudEndpoint({
  method: 'GET',
  path: '/admin/applications/:id/operations',
  operationId: 'searchOperations',
  summary: 'Searches operations of an application',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: Type.Object({ id: Identifier }),
  query: Type.Object({
    userId: Type.Optional(UserId),
    status: Type.Optional(Status),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 100 })),
    /** Both of the last operation of the page before. */
    beforeTimestamp: Type.Optional(Type.Integer({ minimum: 0, maximum: 253_402_300_799_999 })),
    beforeOperationId: Type.Optional(OperationId),
  }),
  response: Type.Object({
    operations: Type.Array(
      Type.Object({
        operationId: Type.String(),
        userId: Type.Optional(Type.String()),
        status: Status,
        statusReason: Type.Optional(Type.String()),
        template: Type.String(),
        operationType: Type.String(),
        failureCount: Type.Integer(),
        maxFailureCount: Type.Integer(),
        timestampCreated: Type.Integer(),
        timestampExpires: Type.Integer(),
      }),
    ),
  }),
  async handle({ params: { id }, query, parts }) {
    await requireApplication(parts.db, id)
    const { userId, status, limit = 100, beforeTimestamp, beforeOperationId } = query
    const after =
      beforeTimestamp === undefined || beforeOperationId === undefined
        ? undefined
        : { createdAt: new Date(beforeTimestamp), operationId: beforeOperationId.toLowerCase() }
    const rows = await searchOperations(parts.db, id, { userId, status, after, limit })
    const now = parts.platform.now()
    return {
      operations: rows.map((row) => ({
        operationId: row.operationId,
        ...(row.userId !== null && { userId: row.userId }),
        status: statusAt(row, now),
        ...(row.statusReason !== null && { statusReason: row.statusReason }),
        template: row.templateName,
        operationType: row.operationType,
        failureCount: row.failureCount,
        maxFailureCount: row.maxFailureCount,
        timestampCreated: row.createdAt.getTime(),
        timestampExpires: row.expiresAt.getTime(),
      })),
    }
  },
})
