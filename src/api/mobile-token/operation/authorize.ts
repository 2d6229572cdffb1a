// operation/authorize: approves an operation. Code, counter, failed attempts, operation and audit row are one transaction. Spec:
// mobile-token §4.5.
import { STATE_REFUSALS } from '../../../domain/operation/operation.ts'
import { Type } from '@sinclair/typebox'
import { parsedSignedEndpoint } from '../../../channel/flow/parsed-then-signed.ts'
import { countWrongCode, decideApproval } from '../../../domain/operation/decision.ts'
import { AnyMembers, ObjectRequest, OptionalOrNull } from '../../../http/types.ts'
import type { MobileTokenParts } from '../parts.ts'
import { OfOperation } from './detail.ts'

export const operationAuthorize = parsedSignedEndpoint({
  path: 'auth/token/app/operation/authorize',
  summary: 'Approves an operation',
  errors: ['OPERATION_NOT_FOUND', 'ACTIVATION_FLAG_MISSING', 'APPROVAL_REFUSED', ...STATE_REFUSALS],
  // The limit fits the longest operation data with each character escaped.
  bytesMax: 64 * 1024,
  authenticate: {
    resourceId: '/operation/authorize',
    factors: ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'],
  },
  // The audit log contains no one-time passwords (cloud §7).
  auditAs: ({ requestObject }) =>
    requestObject.proximityCheck
      ? { requestObject: { ...requestObject, proximityCheck: { ...requestObject.proximityCheck, otp: '[hidden]' } } }
      : undefined,
  request: ObjectRequest(
    Type.Object({
      id: Type.String({ minLength: 1, maxLength: 255 }),
      data: Type.String({ minLength: 1 }),
      proximityCheck: OptionalOrNull(
        Type.Object({
          otp: OptionalOrNull(Type.String()),
          type: OptionalOrNull(Type.Union([Type.Literal('QR_CODE'), Type.Literal('DEEPLINK')])),
          timestampReceived: OptionalOrNull(Type.Unknown()),
          timestampSent: OptionalOrNull(Type.Unknown()),
        }),
      ),
      mobileTokenData: OptionalOrNull(AnyMembers),
    }),
  ),
  decides: OfOperation,
  async handleWrongCode({ tx, verdict, operation }, parts: MobileTokenParts) {
    // Only a guess counts. Otherwise anybody who knows ids could make operations fail (DIVERGENCES#only-guesses-count).
    return verdict.isGuess && verdict.activation ? countWrongCode(tx, parts, operation, verdict.activation) : undefined
  },
  async handle({ tx, activation, operation, factors, request, client }, parts: MobileTokenParts) {
    const { data, proximityCheck, mobileTokenData } = request.requestObject
    const authFactor = factors.toLowerCase()
    return decideApproval(tx, parts, operation, activation, {
      data,
      factors: authFactor,
      proximityOtp: proximityCheck?.otp ?? undefined,
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
