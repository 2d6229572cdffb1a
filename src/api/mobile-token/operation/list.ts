// operation/list: answers the operations that wait for the user. Phones poll it, so it takes one read and no write. Spec: mobile-token §4.1.
import { Type } from '@sinclair/typebox'
import { tokenReadEndpoint } from '../../../channel/flow/token-read.ts'
import type { MobileTokenParts } from '../parts.ts'
import { formatTime, OperationObject, toOperationObjects } from './view.ts'

export const operationList = tokenReadEndpoint({
  path: 'auth/token/app/operation/list',
  summary: 'Operations that wait for the user',
  errors: ['TOO_MANY_REQUESTS'],
  description: 'Nothing of the body is read.',
  read: (names, { tokenReads }: MobileTokenParts) => tokenReads.pendingOperations(names),
  response: Type.Object({
    status: Type.Literal('OK'),
    currentTimestamp: Type.String(),
    responseObject: Type.Array(OperationObject),
  }),
  async handle({ bearer, client, found }, parts: MobileTokenParts) {
    parts.mobileReads.take(bearer.activationId, parts.platform.monotonic())
    const now = parts.platform.now()
    return {
      status: 'OK' as const,
      currentTimestamp: formatTime(now),
      responseObject: await toOperationObjects(parts, found, now, client),
    }
  },
})
