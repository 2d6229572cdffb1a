// Writes the errors of the cloud API (cloud §1.2).
import type { FastifyReply, FastifyRequest } from 'fastify'
import { askForBasic, sendErrorResponse } from '../../http/errors.ts'
import { type RenderedError, rowOf } from '../../http/operation.ts'
import type { CloudCode, PawlError } from '../../lib/errors.ts'

const operationState: RenderedError = {
  status: 400,
  code: 'ERROR_OPERATION_STATE_CHANGE',
  message: 'The state of the operation does not allow the action',
}

export const rendering = {
  REQUEST_INVALID: { status: 400, code: 'ERROR_REQUEST', message: 'Request validation failed' },
  PATH_UNKNOWN: { status: 404, code: 'ERROR_NOT_FOUND', message: 'No such URL' },
  TOO_MANY_REQUESTS: { status: 429, code: 'HTTP_429', message: 'Too many requests' },
  CREDENTIALS_INVALID: { status: 401, code: 'HTTP_401', message: 'Unauthorized' },
  ROLE_FORBIDDEN: { status: 403, code: 'HTTP_403', message: 'Forbidden' },
  REGISTRATION_EXISTS: { status: 400, code: 'ERROR_REGISTRATION', message: 'The user has a registration already' },
  REGISTRATION_NOT_ALLOWED: {
    status: 400,
    code: 'ERROR_REGISTRATION_NOT_ALLOWED',
    message: 'The user has a registration that is not complete',
  },
  REGISTRATION_NOT_FOUND: { status: 400, code: 'ERROR_REGISTRATION_NOT_FOUND', message: 'No such registration' },
  REGISTRATION_CHANGE_REFUSED: {
    status: 400,
    code: 'ERROR_REGISTRATION_CHANGE',
    message: 'The state of the registration does not allow the change',
  },
  OPERATION_NOT_FOUND: { status: 400, code: 'ERROR_OPERATION_NOT_FOUND', message: 'No such operation' },
  OPERATION_FINISHED: operationState,
  OPERATION_FAILED: operationState,
  OPERATION_CANCELED: operationState,
  OPERATION_EXPIRED: operationState,
  OTP_INVALID: { status: 400, code: 'ERROR_OTP_INVALID', message: 'The one-time password does not match' },
  AUDIT_REFUSED: { status: 400, code: 'ERROR_AUDIT', message: 'The audit log could not be fetched' },
  ADMINISTRATION_REFUSED: { status: 400, code: 'ERROR_ADMIN', message: 'Invalid or unknown application, version or user' },
  UNAVAILABLE: { status: 503, code: 'HTTP_503', message: 'Service unavailable' },
  INTERNAL: { status: 500, code: 'ERROR_GENERIC', message: 'Unknown error while processing the request' },
} satisfies Record<CloudCode, RenderedError>

export function renderCloudError(error: PawlError, _request: FastifyRequest, reply: FastifyReply): void {
  const { status, code, message } = rowOf(rendering, error.code)
  if (status === 401) askForBasic(reply)
  const violations = error.violations.length > 0 ? { violations: error.violations } : {}
  sendErrorResponse(reply, error, status, { code, message, ...violations })
}
