// operation/cancel: rejects an operation, with possession alone. A refused rejection never counts as a failure. Spec: mobile-token §4.6.
import { STATE_REFUSALS } from '../../../domain/operation/operation.ts'
import { Type } from '@sinclair/typebox'
import { parsedSignedEndpoint } from '../../../channel/flow/parsed-then-signed.ts'
import { decideRejection } from '../../../domain/operation/decision.ts'
import { AnyMembers, ObjectRequest, OptionalOrNull, Text } from '../../../http/types.ts'
import type { MobileTokenParts } from '../parts.ts'
import { OfOperation } from './detail.ts'

export const operationCancel = parsedSignedEndpoint({
  path: 'auth/token/app/operation/cancel',
  summary: 'Rejects an operation',
  errors: ['OPERATION_NOT_FOUND', ...STATE_REFUSALS],
  authenticate: { resourceId: '/operation/cancel', factors: ['POSSESSION'] },
  request: ObjectRequest(
    Type.Object({
      id: Type.String({ minLength: 1, maxLength: 255 }),
      reason: OptionalOrNull(Text(2000)),
      mobileTokenData: OptionalOrNull(AnyMembers),
    }),
  ),
  decides: OfOperation,
  async handle({ tx, activation, operation, request, client }, parts: MobileTokenParts) {
    const { reason, mobileTokenData } = request.requestObject
    return decideRejection(tx, parts, operation, activation, {
      reason: reason ?? undefined,
      additionalData: {
        ipAddress: client.ip,
        ...(client.userAgent !== undefined && { userAgent: client.userAgent.slice(0, 255) }),
        ...(mobileTokenData && { mobileTokenData }),
      },
    })
  },
})
