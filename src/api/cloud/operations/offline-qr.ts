// GET /operations/offline/qr: the QR code for an approval without connection (cloud §6.5).
import { Type } from '@sinclair/typebox'
import { createOfflineQr } from '../../../domain/operation/offline-approval.ts'
import { STATE_REFUSALS } from '../../../domain/operation/operation.ts'
import { applicationOf } from '../application-of.ts'
import { cloudEndpoint } from '../endpoint.ts'
import { OperationId } from '../fields.ts'

export const offlineQr = cloudEndpoint({
  method: 'GET',
  path: '/operations/offline/qr',
  operationId: 'createOfflineQr',
  summary: 'QR code for an approval without connection',
  errors: ['REGISTRATION_NOT_FOUND', 'OPERATION_NOT_FOUND', ...STATE_REFUSALS],
  roles: ['admin', 'integration'],
  query: Type.Object({ operationId: OperationId }),
  response: Type.Object({
    operationQrCodeData: Type.String({ description: 'the content of the QR code' }),
    nonce: Type.String({ description: 'Base64 of 16 bytes, goes back with the password' }),
  }),
  handle: async (call) => createOfflineQr(call.parts, await applicationOf(call), call.query.operationId.toLowerCase()),
})
