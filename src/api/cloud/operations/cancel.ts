// DELETE /operations: cancels an operation that waits (cloud §6).
import { Type } from '@sinclair/typebox'
import { cancelOperation, STATE_REFUSALS } from '../../../domain/operation/operation.ts'
import { Ok } from '../../../http/types.ts'
import { applicationOf } from '../application-of.ts'
import { cloudEndpoint } from '../endpoint.ts'
import { OperationId, StatusReason } from '../fields.ts'

export const operationCancel = cloudEndpoint({
  method: 'DELETE',
  path: '/operations',
  operationId: 'cancelOperation',
  summary: 'Cancels an operation that waits',
  errors: ['REGISTRATION_NOT_FOUND', 'OPERATION_NOT_FOUND', ...STATE_REFUSALS],
  roles: ['admin', 'integration'],
  query: Type.Object({ operationId: OperationId, statusReason: StatusReason }),
  response: Ok,
  async handle(call) {
    const { operationId, statusReason } = call.query
    await cancelOperation(call.parts, await applicationOf(call), operationId.toLowerCase(), statusReason ?? null)
    return { status: 'OK' as const }
  },
})
