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
    message: 'The header X-Cert-Pinning-Challenge must hold 16 to 1024 printable ASCII characters',
  },
  PINNING_APPLICATION_UNKNOWN: { status: 404, code: 'PUBLIC_KEY_NOT_FOUND', message: 'No application of this name' },
  UNAVAILABLE: { status: 503, code: 'ERROR_GENERIC', message: 'Service unavailable' },
  INTERNAL: { status: 500, code: 'ERROR_GENERIC', message: 'Unknown error while processing the request' },
} satisfies Record<UtilityCode, RenderedError>

/** Signs the body of an answer with the key of the application that the request named: the value of X-Cert-Pinning-Signature. */
export type Signer = (body: Uint8Array) => string

/** Requests whose challenge and application are known: from then on errors are signed too. */
export type Signers = WeakMap<FastifyRequest, Signer>

export const SIGNATURE_HEADER = 'x-cert-pinning-signature'

/** How errors are answered, and what signs them. */
export interface UtilityErrors {
  readonly render: ErrorRenderer
  readonly signers: Signers
}

/**
 * Answers `{ id, code, message }`. The id stands in the log line: the request's, unless its caller chose that one and it is not a UUID. One for all
 * requests, because it counts the lines of a source.
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
    // Failures of our own have their line already, under the id of the request.
    const isOurs = status >= 500 && id === request.id
    if (!isOurs && lines.takeIfLeft(sourceOf(request.ip), platform.monotonic()) !== undefined)
      events.utilityRequestRefused({ errorId: id, path: request.routeOptions?.url ?? 'unknown', code })
    const sign = signers.get(request)
    if (sign !== undefined) void reply.header(SIGNATURE_HEADER, sign(body))
    sendError(reply, error, status, body)
  }
  return { render, signers }
}

/** Of one source: nothing holds back who asks. Metrics count all. */
const LINES_PER_MINUTE = 60
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/
