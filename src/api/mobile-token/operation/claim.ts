// operation/detail/claim: the first phone that claims an operation without user gets it. Spec: mobile-token §4.3.
import { tokenEndpoint } from '../../../channel/flow/token.ts'
import { STATE_REFUSALS } from '../../../domain/operation/operation.ts'
import { claimOperation, findOperation } from '../../../storage/operations.ts'
import { tokenOfWrite, type MobileTokenParts } from '../parts.ts'
import { OfOperation, OperationResponse, answerDetail } from './detail.ts'

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
