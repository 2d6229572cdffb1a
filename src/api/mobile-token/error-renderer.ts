// Writes the errors of the mobile token API (mobile-token §2). SDKs read only the code.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sendErrorResponse } from '../../http/errors.ts'
import { type RenderedError, rowOf } from '../../http/operation.ts'
import type { MobileTokenCode, PawlError } from '../../lib/errors.ts'

export const rendering = {
  REQUEST_INVALID: { status: 400, code: 'INVALID_REQUEST', message: 'Invalid request' },
  PATH_UNKNOWN: { status: 404, code: 'ERROR_NOT_FOUND', message: 'No such URL' },
  TOO_MANY_REQUESTS: { status: 429, code: 'TOO_MANY_REQUESTS', message: 'Too many requests' },
  AUTHENTICATION_CODE_INVALID: { status: 401, code: 'POWERAUTH_AUTH_FAIL', message: 'Authentication failed' },
  OPERATION_NOT_FOUND: { status: 400, code: 'INVALID_OPERATION', message: 'No such operation' },
  OPERATION_FINISHED: { status: 400, code: 'OPERATION_ALREADY_FINISHED', message: 'The operation is finished' },
  OPERATION_FAILED: { status: 400, code: 'OPERATION_ALREADY_FAILED', message: 'The operation has failed' },
  OPERATION_CANCELED: { status: 400, code: 'OPERATION_ALREADY_CANCELED', message: 'The operation was canceled' },
  OPERATION_EXPIRED: { status: 400, code: 'OPERATION_EXPIRED', message: 'The operation has expired' },
  APPROVAL_REFUSED: { status: 401, code: 'OPERATION_FAILED', message: 'The operation was not accepted' },
  ACTIVATION_FLAG_MISSING: {
    status: 400,
    code: 'OPERATION_REQUIRES_ACTIVATION_FLAG',
    message: 'The operation demands a flag that the activation lacks',
  },
  PUSH_REGISTRATION_REFUSED: { status: 400, code: 'PUSH_REGISTRATION_FAILED', message: 'The push token was not stored' },
  ENCRYPTION_FAILED: { status: 400, code: 'ERR_ENCRYPTION', message: 'The envelope does not open' },
  ACTIVATION_CODE_FAILED: { status: 400, code: 'ACTIVATION_CODE_FAILED', message: 'No code is given for that application' },
  INBOX_REFUSED: { status: 400, code: 'INBOX_FAILED', message: 'No such message' },
  CONFIGURATION_FAILED: { status: 400, code: 'ERR_CONFIG', message: 'No such OpenID provider' },
  UNAVAILABLE: { status: 503, code: 'ERROR_GENERIC', message: 'Service unavailable' },
  INTERNAL: { status: 500, code: 'ERROR_GENERIC', message: 'Unknown error' },
} satisfies Record<MobileTokenCode, RenderedError>

export function renderMobileTokenError(error: PawlError, _request: FastifyRequest, reply: FastifyReply): void {
  const { status, code, message } = rowOf(rendering, error.code)
  sendErrorResponse(reply, error, status, { code, message })
}
