// operation/history: all operations of the user, whatever has become of them. Spec: mobile-token §4.4.
import { Type } from '@sinclair/typebox'
import { ObjectResponse, ok } from '../../../http/types.ts'
import { listUserOperations } from '../../../storage/operations.ts'
import { mobileTokenEndpoint } from '../parts.ts'
import { OperationObject, toOperationObjects } from './view.ts'

export const operationHistory = mobileTokenEndpoint({
  path: 'auth/token/app/operation/history',
  summary: 'All operations of the user',
  errors: [],
  order: ['factors', 'authenticate', 'validate'],
  authenticate: {
    resourceId: '/operation/history',
    factors: ['POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'],
    covers: 'body',
  },
  request: Type.Object({}),
  response: ObjectResponse(Type.Array(OperationObject)),
  async handle({ bearer, client, parts }) {
    const now = parts.platform.now()
    const operations = await listUserOperations(parts.db, bearer.applicationId, bearer.userId, HISTORY_MAX)
    return ok(await toOperationObjects(parts, operations, now, client))
  },
})

const HISTORY_MAX = 100
