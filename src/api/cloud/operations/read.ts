// GET /operations: the state of an operation (cloud §6).
import { Type } from '@sinclair/typebox'
import { readOperation } from '../../../domain/operation/operation.ts'
import { applicationOf } from '../application-of.ts'
import { cloudEndpoint } from '../endpoint.ts'
import { OperationId } from '../fields.ts'
import { Operation, toOperation } from './operation.ts'

export const operationRead = cloudEndpoint({
  method: 'GET',
  path: '/operations',
  operationId: 'readOperation',
  summary: 'State of an operation',
  errors: ['REGISTRATION_NOT_FOUND', 'OPERATION_NOT_FOUND'],
  roles: ['admin', 'integration', 'read-only'],
  query: Type.Object({ operationId: OperationId }),
  response: Operation,
  async handle(call) {
    const operation = await readOperation(call.parts, await applicationOf(call), call.query.operationId.toLowerCase())
    const { proximityOtp, ...shown } = toOperation(call.parts, operation)
    // A caller who may only read does not get the password for an approval.
    return proximityOtp === undefined || call.caller.role === 'read-only' ? shown : { ...shown, proximityOtp }
  },
})
