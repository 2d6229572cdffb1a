// operation/detail: one PENDING operation, also one that nobody has claimed yet. Spec: mobile-token §4.2.
import { type Static, Type } from '@sinclair/typebox'
import { tokenReadEndpoint } from '../../../channel/flow/token-read.ts'
import type { Client } from '../../../channel/stages/receive.ts'
import type { TokenBearer } from '../../../channel/stages/token.ts'
import { refuseUnlessPending, statusAt, STATE_REFUSALS } from '../../../domain/operation/operation.ts'
import { ObjectRequest } from '../../../http/types.ts'
import { PawlError } from '../../../lib/errors.ts'
import type { OperationRow } from '../../../storage/operations.ts'
import type { MobileTokenParts } from '../parts.ts'
import { formatTime, OperationObject, toOperationObjects } from './view.ts'

/** `{ "requestObject": { "id": ... } }` */
export const OfOperation = ObjectRequest(Type.Object({ id: Type.String({ minLength: 1, maxLength: 255 }) }))

export const OperationResponse = Type.Object({
  status: Type.Literal('OK'),
  currentTimestamp: Type.String(),
  responseObject: OperationObject,
})

export const operationDetail = tokenReadEndpoint({
  path: 'auth/token/app/operation/detail',
  summary: 'One operation that waits',
  errors: ['TOO_MANY_REQUESTS', 'OPERATION_NOT_FOUND', ...STATE_REFUSALS, 'REQUEST_INVALID'],
  request: OfOperation,
  response: OperationResponse,
  // No operation has an empty id.
  read: (names, { tokenReads }: MobileTokenParts, request) =>
    tokenReads.operation({ ...names, operationId: request?.requestObject.id.toLowerCase() ?? '' }),
  async handle({ bearer, client, found }, parts: MobileTokenParts) {
    parts.mobileReads.take(bearer.activationId, parts.platform.monotonic())
    return answerDetail(parts, bearer, found, client)
  },
})

/** The answer for one operation. Throws OPERATION_NOT_FOUND, also for another user's, or the code of its status. */
export async function answerDetail(
  parts: MobileTokenParts,
  bearer: TokenBearer,
  operation: OperationRow | undefined,
  client: Client,
): Promise<Static<typeof OperationResponse>> {
  const now = parts.platform.now()
  const isVisible = operation !== undefined && (operation.userId === null || operation.userId === bearer.userId)
  if (!isVisible) throw new PawlError('OPERATION_NOT_FOUND')
  refuseUnlessPending(statusAt(operation, now))
  const [responseObject] = await toOperationObjects(parts, [operation], now, client)
  if (responseObject === undefined) throw new PawlError('REQUEST_INVALID', { detail: 'the operation has no texts' })
  return { status: 'OK' as const, currentTimestamp: formatTime(now), responseObject }
}
