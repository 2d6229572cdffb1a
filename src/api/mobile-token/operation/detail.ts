// operation/detail shows one PENDING operation, claimed or not. operation/detail/claim gives an operation without user to the user of the first
// phone that claims it. Spec: mobile-token §4.2, §4.3.
import { type Static, Type } from '@sinclair/typebox'
import { tokenEndpoint } from '../../../channel/flow/token.ts'
import { tokenReadEndpoint } from '../../../channel/flow/token-read.ts'
import type { Client } from '../../../channel/stages/receive.ts'
import { decideClaim } from '../../../domain/operation/decision.ts'
import { isShownTo, refuseUnlessPending, statusAt, STATE_REFUSALS } from '../../../domain/operation/operation.ts'
import { ObjectRequest } from '../../../http/types.ts'
import { PawlError } from '../../../lib/errors.ts'
import { findActivation, type OwnedActivation } from '../../../storage/activation/find.ts'
import { inTransaction } from '../../../storage/database/database.ts'
import { findOperation, lockOperation, type OperationRow } from '../../../storage/operation/operations.ts'
import type { MobileTokenParts } from '../parts.ts'
import { formatTime, OperationObject, toOperationObjects } from './view.ts'

export const OfOperation = ObjectRequest(Type.Object({ id: Type.String({ minLength: 1, maxLength: 255 }) }))

const OperationResponse = Type.Object({
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

export const operationClaim = tokenEndpoint({
  path: 'auth/token/app/operation/detail/claim',
  summary: 'Takes an operation that nobody has claimed',
  errors: ['TOO_MANY_REQUESTS', 'OPERATION_NOT_FOUND', 'ACTIVATION_FLAG_MISSING', ...STATE_REFUSALS, 'REQUEST_INVALID'],
  isRepeatable: false,
  request: OfOperation,
  response: OperationResponse,
  async handle({ bearer, client, request }, parts: MobileTokenParts) {
    const id = request.requestObject.id.toLowerCase()
    parts.mobileReads.take(bearer.activationId, parts.platform.monotonic())
    const { activationId, applicationId } = bearer
    const found = await findOperation(parts.db, applicationId, id)
    // An operation that is unknown, foreign, over or without texts is refused before it is claimed.
    await answerDetail(parts, bearer, found, client)
    const refusal = await inTransaction(parts.db, async (tx) => {
      const operation = await lockOperation(tx, applicationId, id, activationId)
      const claimer = await findActivation(tx, activationId, new Date(parts.platform.now()))
      return claimer?.state === 'ACTIVE' ? decideClaim(tx, parts, operation, claimer) : 'OPERATION_NOT_FOUND'
    })
    if (refusal !== undefined) throw new PawlError(refusal, { detail: 'the phone may not claim the operation' })
    return answerDetail(parts, bearer, await findOperation(parts.db, applicationId, id), client)
  },
})

/**
 * The answer for one operation. Throws OPERATION_NOT_FOUND, also for an operation of another user or phone; the error code of its status unless the
 * operation is PENDING; and REQUEST_INVALID when its type has no texts.
 */
async function answerDetail(
  parts: MobileTokenParts,
  bearer: OwnedActivation,
  operation: OperationRow | undefined,
  client: Client,
): Promise<Static<typeof OperationResponse>> {
  const now = parts.platform.now()
  if (operation === undefined || !isShownTo(operation, bearer)) throw new PawlError('OPERATION_NOT_FOUND')
  refuseUnlessPending(statusAt(operation, now))
  const [responseObject] = await toOperationObjects(parts, [operation], now, client)
  if (responseObject === undefined) throw new PawlError('REQUEST_INVALID', { detail: 'the operation has no texts' })
  return { status: 'OK' as const, currentTimestamp: formatTime(now), responseObject }
}
