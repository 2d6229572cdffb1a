// Writes the errors of the device API (v3 §16, v4 §12). Device clients read only status and code.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { readProtocolHeaders } from '../../channel/stages/receive.ts'
import { sendErrorResponse } from '../../http/errors.ts'
import { type RenderedError, rowOf } from '../../http/operation.ts'
import type { DeviceCode, PawlError } from '../../lib/errors.ts'

const authentication = (message: string): RenderedError => ({ status: 401, code: 'ERR_AUTHENTICATION', message })

export const rendering = {
  REQUEST_INVALID: { status: 400, code: 'ERR_VALIDATION', message: 'REQUEST_INVALID' },
  PATH_UNKNOWN: { status: 404, code: 'ERROR_NOT_FOUND', message: 'NOT_FOUND' },
  TOO_MANY_REQUESTS: { status: 429, code: 'TOO_MANY_REQUESTS', message: 'TOO_MANY_REQUESTS' },
  AUTHENTICATION_CODE_INVALID: authentication('SIGNATURE_INVALID'),
  AUTHENTICATION_REQUEST_INVALID: authentication('REQUEST_INVALID'),
  AUTHENTICATION_HEADER_MISSING: authentication('HTTP_HEADER_MISSING'),
  TOKEN_FAILED: authentication('TOKEN_ERROR'),
  ENCRYPTION_FAILED: { status: 400, code: 'ERR_ENCRYPTION', message: 'ENCRYPTION_FAILED' },
  ACTIVATION_FAILED: { status: 400, code: 'ERR_ACTIVATION', message: 'ACTIVATION_INVALID' },
  TEMPORARY_KEY_FAILED: { status: 400, code: 'ERR_TEMPORARY_KEY', message: 'TEMPORARY_KEY_FAILURE' },
  VAULT_FAILED: { status: 400, code: 'ERR_SECURE_VAULT', message: 'SECURE_VAULT_INVALID' },
  PASSWORD_CHANGE_FAILED: { status: 400, code: 'ERR_PASSWORD_CHANGE', message: 'PASSWORD_CHANGE_FAILURE' },
  BIOMETRY_FAILED: { status: 400, code: 'ERR_BIOMETRY', message: 'BIOMETRY_FAILURE' },
  UPGRADE_FAILED: { status: 400, code: 'ERR_UPGRADE', message: 'UPGRADE_FAILED' },
  STATUS_FAILED: { status: 400, code: 'ERR_STATUS', message: 'STATUS_ERROR' },
  CONFIGURATION_FAILED: { status: 400, code: 'ERR_CONFIG', message: 'CONFIG_FAILURE' },
  USER_INFO_FAILED: { status: 400, code: 'ERR_USER_INFO', message: 'USER_INFO_ERROR' },
  UNAVAILABLE: { status: 503, code: 'ERROR_GENERIC', message: 'UNAVAILABLE' },
  INTERNAL: { status: 500, code: 'ERROR_GENERIC', message: 'INTERNAL_ERROR' },
} satisfies Record<DeviceCode, RenderedError>

/** The table of generation 4, which differs in some messages (v4 §12). */
export const renderingV4: Readonly<Record<DeviceCode, RenderedError>> = {
  ...rendering,
  AUTHENTICATION_CODE_INVALID: authentication('CODE_INVALID'),
  AUTHENTICATION_HEADER_MISSING: authentication('CODE_INVALID'),
}

/** Answers with the documented body in the caller's dialect. */
export function renderDeviceError(error: PawlError, request: FastifyRequest, reply: FastifyReply): void {
  const { status, code, message } = rowOf(isGeneration4(request) ? renderingV4 : rendering, error.code)
  const prefix = readProtocolHeaders(request.headers).dialect === 'svc' ? 'SVC_' : 'POWER_AUTH_'
  const violations = error.violations.map(({ fieldName, hint }) => `${fieldName} ${hint}`).join(', ')
  sendErrorResponse(reply, error, status, { code, message: violations || `${prefix}${message}` })
}

/** Whether the request is for generation 4. The path of the route decides, because the path of the request may be percent-encoded. */
const isGeneration4 = ({ routeOptions, url }: FastifyRequest): boolean => (routeOptions?.url ?? url).startsWith('/pa/v4/')
