// POST /operations/offline/otp: approval by a one-time password that the user types (cloud §6.6).
import { Type } from '@sinclair/typebox'
import { approveOffline } from '../../../domain/operation/offline-approval.ts'
import { STATE_REFUSALS } from '../../../domain/operation/operation.ts'
import { Ok } from '../../../http/types.ts'
import { applicationOf } from '../application-of.ts'
import { cloudEndpoint } from '../endpoint.ts'
import { Identifier, OperationId } from '../fields.ts'

export const offlineOtp = cloudEndpoint({
  method: 'POST',
  path: '/operations/offline/otp',
  operationId: 'approveOffline',
  summary: 'Approves an operation by its one-time password',
  errors: ['OTP_INVALID', 'REGISTRATION_NOT_FOUND', 'OPERATION_NOT_FOUND', ...STATE_REFUSALS, 'TOO_MANY_REQUESTS'],
  roles: ['admin', 'integration'],
  body: Type.Object({ operationId: OperationId, otp: Identifier, nonce: Identifier }),
  response: Ok,
  async handle(call) {
    const { operationId, otp, nonce } = call.body
    const applicationId = await applicationOf(call)
    await approveOffline(call.parts, applicationId, { operationId: operationId.toLowerCase(), otp, nonce })
    return { status: 'OK' as const }
  },
})
