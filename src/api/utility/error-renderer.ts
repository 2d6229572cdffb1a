// Writes the errors of the mobile utility API (utility §3).
import type { FastifyRequest } from 'fastify'
import { type ErrorRenderer, sendError } from '../../http/errors.ts'
import { type RenderedError, rowOf } from '../../http/operation.ts'
import { createWindow } from '../../domain/limits/window.ts'
import type { UtilityCode } from '../../lib/errors.ts'
import { sourceOf } from '../../lib/address.ts'
import type { DomainParts } from '../../domain/secrets/secrets.ts'

export const rendering = {
  REQUEST_INVALID: { status: 400, code: 'ERROR_REQUEST', message: 'Invalid request' },
  PATH_UNKNOWN: { status: 404, code: 'ERROR_NOT_FOUND', message: 'No such URL' },
  TOO_MANY_REQUESTS: { status: 429, code: 'TOO_MANY_REQUESTS', message: 'Too many requests' },
  CHALLENGE_INSUFFICIENT: {
    status: 403,
    code: 'INSUFFICIENT_CHALLENGE',
    message: 'The header X-Cert-Pinning-Challenge must hold 16 to 1024 printable ASCII characters without &',
  },
  PINNING_APPLICATION_UNKNOWN: { status: 404, code: 'PUBLIC_KEY_NOT_FOUND', message: 'No application of this name' },
  UNAVAILABLE: { status: 503, code: 'ERROR_GENERIC', message: 'Service unavailable' },
  INTERNAL: { status: 500, code: 'ERROR_GENERIC', message: 'Unknown error while processing the request' },
} satisfies Record<UtilityCode, RenderedError>

/** Makes X-Cert-Pinning-Signature for the body of an answer, with the key of the application that the request names. */
export type Signer = (body: Uint8Array) => string

/** The signers of requests whose challenge and application are known. Errors of such requests are signed, too. */
export type Signers = WeakMap<FastifyRequest, Signer>

export const SIGNATURE_HEADER = 'x-cert-pinning-signature'

/** The renderer of errors, and the signers that it uses. */
export interface UtilityErrors {
  readonly render: ErrorRenderer
  readonly signers: Signers
}

/**
 * Makes the renderer of all requests, which answers `{ id, code, message }` and logs the id. The id is that of the request, or a new one when the
 * caller chose an id that is no UUID. The log gets a limited number of lines for each source.
 */
export function createUtilityErrors({ events, platform }: Pick<DomainParts, 'events' | 'platform'>): UtilityErrors {
  const signers: Signers = new WeakMap()
  const lines = createWindow({ perMinute: LINES_PER_MINUTE })
  const render: ErrorRenderer = (error, request, reply) => {
    const { status, code, message } = rowOf(rendering, error.code)
    const id = UUID.test(request.id) ? request.id : platform.uuid()
    const [violation] = error.violations
    const text = violation ? `${message}: ${violation.fieldName} ${violation.hint}` : message
    const body = Buffer.from(JSON.stringify({ id, code, message: text }))
    // A failure of pawl has a log line with the id of the request already.
    const isOurs = status >= 500 && id === request.id
    if (!isOurs && lines.takeIfLeft(sourceOf(request.ip), platform.monotonic()) !== undefined)
      events.utilityRequestRefused({ errorId: id, path: request.routeOptions?.url ?? 'unknown', code })
    const sign = signers.get(request)
    if (sign !== undefined) void reply.header(SIGNATURE_HEADER, sign(body))
    sendError(reply, error, status, body)
  }
  return { render, signers }
}

/** The limit of log lines for one source, because requests are not limited. Metrics count every request. */
const LINES_PER_MINUTE = 60
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/
