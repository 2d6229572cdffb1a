// POST /internal/callback/operation: kept for compatibility; pawl tells itself of changes (cloud §8).
import { Type } from '@sinclair/typebox'
import { Ok } from '../../../http/types.ts'
import { expireOperation } from '../../../storage/operation-transitions.ts'
import { cloudEndpoint } from '../endpoint.ts'
import { OperationId } from '../fields.ts'

export const operationCallback = cloudEndpoint({
  method: 'POST',
  path: '/internal/callback/operation',
  operationId: 'expireOperation',
  summary: 'Tells of an operation that changed inside',
  description: 'pawl tells itself; this makes an expiry durable that is due. An unknown operation is no error.',
  errors: [],
  roles: ['internal', 'admin'],
  body: Type.Object({ operationId: OperationId }),
  response: Ok,
  /** Makes a due expiry durable, which also publishes it. An unknown operation is no error: the caller must not learn which exist. */
  async handle({ body: { operationId }, parts }) {
    await expireOperation(parts.db, operationId.toLowerCase(), new Date(parts.platform.now()))
    return { status: 'OK' as const }
  },
})
