// operation/history: answers the operations of the user in any status. Spec: mobile-token §4.4.
import { Type } from '@sinclair/typebox'
import { signedEndpoint } from '../../../channel/flow/signed.ts'
import { ObjectResponse, ok } from '../../../http/types.ts'
import { listUserOperations } from '../../../storage/operation/operations.ts'
import type { MobileTokenParts } from '../parts.ts'
import { OperationObject, toOperationObjects } from './view.ts'

export const operationHistory = signedEndpoint({
  path: 'auth/token/app/operation/history',
  summary: 'All operations of the user',
  errors: [],
  authenticate: { resourceId: '/operation/history', factors: ['POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'] },
  request: Type.Object({}),
  response: ObjectResponse(Type.Array(OperationObject)),
  async handle({ activation, client }, parts: MobileTokenParts) {
    const now = parts.platform.now()
    const operations = await listUserOperations(parts.db, activation, HISTORY_MAX)
    return ok(await toOperationObjects(parts, operations, now, client))
  },
})

const HISTORY_MAX = 100
