// operation/cancel: the phone rejects, with possession alone. A refused rejection never counts. Spec: mobile-token §4.6.
import { STATE_REFUSALS } from '../../../domain/operation.ts'
import { Type } from '@sinclair/typebox'
import { decideRejection } from '../../../domain/operation-decision.ts'
import { Absent, ObjectRequest, Ok, Text } from '../../../http/types.ts'
import { mobileTokenEndpoint } from '../parts.ts'

export const operationCancel = mobileTokenEndpoint({
  path: 'auth/token/app/operation/cancel',
  summary: 'Rejects an operation',
  errors: ['OPERATION_NOT_FOUND', ...STATE_REFUSALS],
  order: ['validate', 'factors', 'authenticate'],
  authenticate: { resourceId: '/operation/cancel', factors: ['POSSESSION'], covers: 'body' },
  refusals: { request: 'AUTHENTICATION_CODE_INVALID' },
  request: ObjectRequest(
    Type.Object({
      id: Type.String({ minLength: 1, maxLength: 255 }),
      reason: Absent(Text(255)),
      mobileTokenData: Absent(Type.Record(Type.String(), Type.Unknown())),
    }),
  ),
  response: Ok,
  async settle({ tx, refusal, activation, request, client, parts }) {
    if (refusal !== undefined || activation === undefined) return undefined
    const { id, reason, mobileTokenData } = request.requestObject
    return decideRejection(tx, parts, activation, {
      operationId: id.toLowerCase(),
      reason: reason ?? undefined,
      additionalData: {
        ipAddress: client.ip,
        ...(client.userAgent !== undefined && { userAgent: client.userAgent.slice(0, 255) }),
        ...(mobileTokenData && { mobileTokenData }),
      },
    })
  },
  handle: async () => ({ status: 'OK' as const }),
})
