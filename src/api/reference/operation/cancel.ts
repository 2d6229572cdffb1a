// operation/cancel: the bank takes an operation back (cloud §15.2).
import { Type } from '@sinclair/typebox'
import { cancelOperation, readOperation, STATE_REFUSALS } from '../../../domain/operation/operation.ts'
import { AnyMembers, OptionalOrNull } from '../../../http/types.ts'
import { OperationId, StatusReason } from '../../cloud/fields.ts'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, referenceEndpoint } from '../endpoint.ts'
import { requireNoData } from '../members.ts'
import { OperationView, viewOperation } from './view.ts'

export const operationCancel = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'operation/cancel',
    operationId: 'referenceCancelOperation',
    summary: 'Cancels an operation that waits',
    errors: ['OPERATION_NOT_FOUND', ...STATE_REFUSALS],
    roles: BANK_ROLES,
    request: Type.Object({
      operationId: OperationId,
      statusReason: OptionalOrNull(StatusReason),
      additionalData: OptionalOrNull(AnyMembers),
    }),
    response: OperationView(dialect),
    async handle(call) {
      const { parts, applicationId, request } = call
      const operationId = request.operationId.toLowerCase()
      requireNoData(request.additionalData)
      await cancelOperation(parts, applicationId, operationId, request.statusReason ?? null)
      return await viewOperation(dialect, call, await readOperation(parts, applicationId, operationId))
    },
  })
