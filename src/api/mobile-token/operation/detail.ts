// operation/detail shows one PENDING operation, claimed or not; operation/detail/claim gives one without user to the first phone that asks.
// Spec: mobile-token §4.2, §4.3.
import { type Static, Type } from '@sinclair/typebox'
import { tokenEndpoint } from '../../../channel/flow/token.ts'
import { tokenReadEndpoint } from '../../../channel/flow/token-read.ts'
import type { Client } from '../../../channel/stages/receive.ts'
import type { TokenBearer } from '../../../channel/stages/token.ts'
import { refuseUnlessPending, statusAt, STATE_REFUSALS } from '../../../domain/operation/operation.ts'
import { ObjectRequest } from '../../../http/types.ts'
import { PawlError } from '../../../lib/errors.ts'
import { claimOperation, findOperation, type OperationRow } from '../../../storage/operation/operations.ts'
import { type MobileTokenParts, tokenOfWrite } from '../parts.ts'
import { formatTime, OperationObject, toOperationObjects } from './view.ts'

/** `{ "requestObject": { "id": ... } }` */
export const OfOperation = ObjectRequest(Type.Object({ id: Type.String({ minLength: 1, maxLength: 255 }) }))

const OperationResponse = Type.Object({
  status: Type.Literal('OK'),
  currentTimestamp: Type.String(),
  responseObject: OperationObject,
})

/** One PENDING operation (mobile-token §4.2). */
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

/** The first phone that claims an operation without user gets it (mobile-token §4.3). */
export const operationClaim = tokenEndpoint({
  path: 'auth/token/app/operation/detail/claim',
  summary: 'Takes an operation that nobody has claimed',
  errors: ['TOO_MANY_REQUESTS', 'OPERATION_NOT_FOUND', ...STATE_REFUSALS, 'REQUEST_INVALID'],
  token: tokenOfWrite,
  request: OfOperation,
  response: OperationResponse,
  async handle({ bearer, client, request }, parts: MobileTokenParts) {
    const id = request.requestObject.id.toLowerCase()
    const find = () => findOperation(parts.db, bearer.applicationId, id)
    parts.mobileReads.take(bearer.activationId, parts.platform.monotonic())
    // Refuses an operation that is unknown, foreign or over; one that somebody else claims in between is foreign the second time.
    await answerDetail(parts, bearer, await find(), client)
    await claimOperation(parts.db, id, bearer.userId, new Date(parts.platform.now()))
    return answerDetail(parts, bearer, await find(), client)
  },
})

/** The answer for one operation. Throws OPERATION_NOT_FOUND, also for another user's, or the code of its status. */
async function answerDetail(
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
