// operation/list: what waits for the phone's user. Polled every few seconds: two indexed reads, nothing written. Spec: mobile-token §4.1.
import { Type } from '@sinclair/typebox'
import { tokenAloneEndpoint } from '../../../channel/flow/token-alone.ts'
import { listPendingOperations } from '../../../storage/operations.ts'
import { tokenOfRead, type MobileTokenParts } from '../parts.ts'
import { formatTime, OperationObject, toOperationObjects } from './view.ts'

export const operationList = tokenAloneEndpoint({
  path: 'auth/token/app/operation/list',
  summary: 'Operations that wait for the user',
  errors: ['TOO_MANY_REQUESTS'],
  description: 'Nothing of the body is read.',
  token: tokenOfRead,
  response: Type.Object({
    status: Type.Literal('OK'),
    currentTimestamp: Type.String(),
    responseObject: Type.Array(OperationObject),
  }),
  async handle({ bearer, client }, parts: MobileTokenParts) {
    const now = parts.platform.now()
    parts.mobileReads.take(bearer.activationId, now)
    const operations = await listPendingOperations(parts.db, bearer.applicationId, bearer.userId, new Date(now), LIST_MAX)
    return {
      status: 'OK' as const,
      currentTimestamp: formatTime(now),
      responseObject: await toOperationObjects(parts, operations, now, client),
    }
  },
})

const LIST_MAX = 100
