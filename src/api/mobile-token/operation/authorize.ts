// operation/authorize: the phone approves. Code, counter, failed attempts, operation and audit row are one transaction. Spec:
// mobile-token §4.5.
import { STATE_REFUSALS } from '../../../domain/operation/operation.ts'
import { Type } from '@sinclair/typebox'
import { parsedSignedEndpoint } from '../../../channel/flow/parsed-then-signed.ts'
import { countWrongCode, decideApproval } from '../../../domain/operation/decision.ts'
import { OptionalOrNull, ObjectRequest } from '../../../http/types.ts'
import type { MobileTokenParts } from '../parts.ts'

export const operationAuthorize = parsedSignedEndpoint({
  path: 'auth/token/app/operation/authorize',
  summary: 'Approves an operation',
  errors: ['OPERATION_NOT_FOUND', 'ACTIVATION_FLAG_MISSING', 'APPROVAL_REFUSED', ...STATE_REFUSALS],
  // The longest operation data that can be created, with every character of it escaped.
  bytesMax: 64 * 1024,
  authenticate: {
    resourceId: '/operation/authorize',
    factors: ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'],
  },
  // The audit log holds no one-time passwords (cloud §7).
  auditAs: ({ requestObject }) =>
    requestObject.proximityCheck
      ? { requestObject: { ...requestObject, proximityCheck: { ...requestObject.proximityCheck, otp: '[hidden]' } } }
      : undefined,
  // A body without operation is answered like a wrong code (mobile-token §4.5, step 2).
  requestInvalid: 'AUTHENTICATION_CODE_INVALID',
  request: ObjectRequest(
    Type.Object({
      id: Type.String({ minLength: 1, maxLength: 255 }),
      data: OptionalOrNull(Type.String()),
      proximityCheck: OptionalOrNull(
        Type.Object({
          otp: Type.String(),
          type: OptionalOrNull(Type.Union([Type.Literal('QR_CODE'), Type.Literal('DEEPLINK')])),
          timestampReceived: OptionalOrNull(Type.Unknown()),
          timestampSent: OptionalOrNull(Type.Unknown()),
        }),
      ),
      mobileTokenData: OptionalOrNull(Type.Record(Type.String(), Type.Unknown())),
    }),
  ),
  decides: ({ requestObject }) => requestObject.id.toLowerCase(),
  async handle({ tx, verdict, operation, factors, request, client }, parts: MobileTokenParts) {
    const { data, proximityCheck, mobileTokenData } = request.requestObject
    // Only a guess counts: otherwise whoever knows ids could end any number of operations (DIVERGENCES#only-guesses-count).
    if (!verdict.isRight)
      return verdict.isGuess && verdict.activation ? countWrongCode(tx, parts, operation, verdict.activation) : undefined
    const authFactor = factors.toLowerCase()
    return decideApproval(tx, parts, operation, verdict.activation, {
      data: data ?? undefined,
      factors: authFactor,
      proximityOtp: proximityCheck?.otp,
      additionalData: {
        authFactor,
        ipAddress: client.ip,
        ...(client.userAgent !== undefined && { userAgent: client.userAgent.slice(0, 255) }),
        ...(proximityCheck?.type && { proximityCheckType: proximityCheck.type }),
        ...(mobileTokenData && { mobileTokenData }),
      },
    })
  },
})
