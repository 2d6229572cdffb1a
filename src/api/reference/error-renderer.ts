// Writes errors in the form that the published clients of the reference read (cloud §15.4).
import type { FastifyReply, FastifyRequest } from 'fastify'
import { askForBasic, sendErrorResponse } from '../../http/errors.ts'
import { type ErrorDescription, type RenderedError, rowOf } from '../../http/operation.ts'
import type { CloudCode, PawlError } from '../../lib/errors.ts'

const operationState: RenderedError = { status: 400, code: 'ERR0036', message: 'Operation is in invalid state' }

export const rendering = {
  REQUEST_INVALID: { status: 400, code: 'ERR0024', message: 'Invalid request' },
  PATH_UNKNOWN: { status: 404, code: 'ERROR_NOT_FOUND', message: 'No such URL' },
  TOO_MANY_REQUESTS: { status: 429, code: 'HTTP_429', message: 'Too many requests' },
  CREDENTIALS_INVALID: { status: 401, code: 'HTTP_401', message: 'Unauthorized' },
  ROLE_FORBIDDEN: { status: 403, code: 'HTTP_403', message: 'Forbidden' },
  REGISTRATION_EXISTS: { status: 400, code: 'ERR0040', message: 'The user has an activation already' },
  REGISTRATION_NOT_ALLOWED: { status: 400, code: 'ERR0040', message: 'The user has an activation already' },
  REGISTRATION_NOT_FOUND: { status: 400, code: 'ERR0009', message: 'Activation not found' },
  REGISTRATION_CHANGE_REFUSED: { status: 400, code: 'ERR0008', message: 'Incorrect activation state' },
  OPERATION_NOT_FOUND: { status: 400, code: 'ERR0034', message: 'Operation not found' },
  OPERATION_FINISHED: operationState,
  OPERATION_FAILED: operationState,
  OPERATION_CANCELED: operationState,
  OPERATION_EXPIRED: operationState,
  OTP_INVALID: { status: 400, code: 'ERR0031', message: 'Invalid activation OTP' },
  ADMINISTRATION_REFUSED: { status: 400, code: 'ERR0015', message: 'Unknown application or version' },
  ENCRYPTION_FAILED: { status: 400, code: 'ERR0018', message: 'Decryption failed' },
  AUDIT_REFUSED: { status: 400, code: 'ERR0024', message: 'Invalid request' },
  UNAVAILABLE: { status: 503, code: 'HTTP_503', message: 'Service unavailable' },
  INTERNAL: { status: 500, code: 'ERR0000', message: 'Unknown error' },
} satisfies Record<CloudCode | 'ENCRYPTION_FAILED', RenderedError>

/** Answers with code and message. The message names the wrong members. */
export function renderReferenceError(error: PawlError, _request: FastifyRequest, reply: FastifyReply): void {
  const { status, code, message } = rowOf(rendering, error.code)
  if (status === 401) askForBasic(reply)
  const told = error.violations.map(({ fieldName, hint }) => `${fieldName} ${hint}`).join('; ')
  sendErrorResponse(reply, error, status, { code, message: told === '' ? message : `${message}: ${told}` })
}

export const errorsOfReference: ErrorDescription = {
  rendering,
  headers: { 401: { 'WWW-Authenticate': 'asks for HTTP Basic' } },
}
