// /operations/offline: approval by a QR code and a one-time password that the user types. Spec: cloud §6.5, §6.6.
import { STATE_REFUSALS } from '../../../domain/operation/operation.ts'
import { Type } from '@sinclair/typebox'
import { approveOffline, createOfflineQr } from '../../../domain/operation/offline-approval.ts'
import { Ok } from '../../../http/types.ts'
import { applicationOf, cloudEndpoint } from '../endpoint.ts'
import { Identifier, OperationId } from '../fields.ts'

const roles = ['admin', 'integration'] as const

export const offlineQr = cloudEndpoint({
  method: 'GET',
  path: '/operations/offline/qr',
  summary: 'QR code for an approval without connection',
  errors: ['REGISTRATION_NOT_FOUND', 'OPERATION_NOT_FOUND', ...STATE_REFUSALS],
  roles,
  query: Type.Object({ operationId: OperationId }),
  response: Type.Object({
    operationQrCodeData: Type.String({ description: 'the content of the QR code' }),
    nonce: Type.String({ description: 'Base64 of 16 bytes, goes back with the password' }),
  }),
  handle: async (call) => createOfflineQr(call.parts, await applicationOf(call), call.query.operationId.toLowerCase()),
})

export const offlineOtp = cloudEndpoint({
  method: 'POST',
  path: '/operations/offline/otp',
  summary: 'Approves an operation by its one-time password',
  errors: ['OTP_INVALID', 'REGISTRATION_NOT_FOUND', 'OPERATION_NOT_FOUND', ...STATE_REFUSALS, 'TOO_MANY_REQUESTS'],
  roles,
  body: Type.Object({ operationId: OperationId, otp: Identifier, nonce: Identifier }),
  response: Ok,
  async handle(call) {
    const { operationId, otp, nonce } = call.body
    const applicationId = await applicationOf(call)
    await approveOffline(call.parts, applicationId, { operationId: operationId.toLowerCase(), otp, nonce })
    return { status: 'OK' as const }
  },
})
