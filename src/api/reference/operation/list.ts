// operation/list, operation/list/pending: the operations of a user (cloud §15.2).
import type { AnyCloudEndpoint } from '../../cloud/endpoint.ts'
import { Type } from '@sinclair/typebox'
import { searchOperations } from '../../../storage/operation/operations.ts'
import { refuse } from '../../door/members.ts'
import type { Dialect } from '../dialect.ts'
import { BANK_ROLES, foreignApplication, referenceEndpoint } from '../endpoint.ts'
import { Given, NamesGiven, Optional, PAGE, placeOf } from '../members.ts'
import { OperationView, viewOperations } from './view.ts'

const listOf =
  (path: string, operationId: string, summary: string, status: 'PENDING' | undefined) =>
  (dialect: Dialect): AnyCloudEndpoint =>
    referenceEndpoint(dialect, {
      path,
      operationId,
      summary,
      errors: [],
      roles: BANK_ROLES,
      request: Type.Object({
        userId: Given,
        applications: Type.Array(NamesGiven.items, { minItems: 1, maxItems: 100 }),
        activationId: Optional,
        ...PAGE,
      }),
      response: Type.Array(OperationView(dialect)),
      async handle(call) {
        const { request, parts, applicationId } = call
        if (typeof request.activationId === 'string') throw refuse('activationId', 'is not offered: operations are of a user')
        if (!request.applications.includes(applicationId)) throw foreignApplication()
        const { limit, offset } = placeOf(request)
        const search = { userId: request.userId, ...(status && { status }), limit, offset }
        return await viewOperations(dialect, call, await searchOperations(parts.db, applicationId, search))
      },
    })

export const operationList = listOf(
  'operation/list',
  'referenceListOperations',
  'The operations of a user, newest first',
  undefined,
)

export const operationListPending = listOf(
  'operation/list/pending',
  'referenceListPendingOperations',
  'The operations of a user that wait, newest first',
  'PENDING',
)
