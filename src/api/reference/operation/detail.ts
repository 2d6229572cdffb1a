// operation/detail: one operation (cloud §15.2).
import { Type } from '@sinclair/typebox'
import { readOperation } from '../../../domain/operation/operation.ts'
import { OperationId } from '../../cloud/fields.ts'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, referenceEndpoint } from '../endpoint.ts'
import { OperationView, viewOperation } from './view.ts'

export const operationDetail = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'operation/detail',
    operationId: 'referenceOperation',
    summary: 'State of an operation',
    errors: ['OPERATION_NOT_FOUND'],
    roles: BANK_ROLES,
    request: Type.Object({ operationId: OperationId }),
    response: OperationView(dialect),
    async handle(call) {
      const { parts, applicationId, request } = call
      return await viewOperation(dialect, call, await readOperation(parts, applicationId, request.operationId.toLowerCase()))
    },
  })
