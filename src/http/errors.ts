// Turns anything thrown into a PawlError, and a PawlError into the API's own form of an answer.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Events } from '../log/events.ts'
import { PawlError } from '../lib/errors.ts'

/** Writes the answer to a failed request in the form of one API. */
export type ErrorRenderer = (error: PawlError, request: FastifyRequest, reply: FastifyReply) => void

/** Sends all failures below an API through its renderer. */
export function renderErrorsWith(app: FastifyInstance, events: Events, render: ErrorRenderer): void {
  app.setErrorHandler((thrown, request, reply) => {
    const error = toPawlError(thrown)
    const { id: requestId, method, raw } = request
    const path = request.routeOptions.url ?? ''
    // Nobody reads the answer to an upload that was broken off, and nothing failed here.
    if (raw.destroyed && !raw.complete) events.requestAborted({ method, path })
    else if (error.code === 'INTERNAL') events.requestFailed({ requestId, method, path, err: thrown })
    else if (error.code === 'UNAVAILABLE') events.requestRefused({ requestId, method, path, err: thrown })
    render(error, request, reply)
  })
}

/** Sends the answer to a failed request: a status, a JSON text, and `Retry-After` if the error has a time for it. */
export function sendError(reply: FastifyReply, error: PawlError, status: number, body: string | Buffer): void {
  if (error.retryAfterSeconds !== undefined) void reply.header('retry-after', error.retryAfterSeconds)
  void reply.code(status).type('application/json').send(body)
}

/**
 * Sends it as `{ "status": "ERROR", "responseObject": ... }`, as every API but the mobile utility's does. Values of the caller that were cut may end
 * with half of a surrogate pair, for which some parsers refuse the whole answer.
 */
export const sendErrorResponse = (reply: FastifyReply, error: PawlError, status: number, responseObject: object): void =>
  sendError(reply, error, status, JSON.stringify({ status: 'ERROR', responseObject }, wellFormed))

const wellFormed = (_name: string, value: unknown): unknown => (typeof value === 'string' ? value.toWellFormed() : value)

/** The body of an answer that is given before the route is known, and so the API: that of the cloud API. */
export const unroutedError = (code: 'ERROR_REQUEST' | 'HTTP_503', message: string): string =>
  JSON.stringify({ status: 'ERROR', responseObject: { code, message } })

/** Says with a refusal of 401 that HTTP Basic is asked for (RFC 7617). */
export const askForBasic = (reply: FastifyReply): void =>
  void reply.header('www-authenticate', 'Basic realm="pawl", charset="UTF-8"')

/** Answers unknown paths, and known paths with another method, below a prefix. Call it once for each prefix. */
export function renderUnknownPathsWith(app: FastifyInstance, render: ErrorRenderer): void {
  app.setNotFoundHandler((request, reply) => render(new PawlError('PATH_UNKNOWN'), request, reply))
}

/**
 * Turns a thrown value into a PawlError: refusals of Fastify are faults of the request, a lost database is UNAVAILABLE, everything else is a
 * bug (INTERNAL).
 */
export function toPawlError(thrown: unknown): PawlError {
  if (thrown instanceof PawlError) return thrown
  const statusCode = thrown instanceof Error && 'statusCode' in thrown ? Number(thrown.statusCode) : 500
  const detail = thrown instanceof Error ? thrown.message : String(thrown)
  if (isUnavailable(thrown)) return new PawlError('UNAVAILABLE', { detail, retryAfterSeconds: 1, cause: thrown })
  if (statusCode >= 400 && statusCode < 500) {
    // curl -d sends application/x-www-form-urlencoded unless another type is given.
    const violation =
      statusCode === 415
        ? { fieldName: 'Content-Type', hint: 'must be application/json' }
        : { fieldName: 'request', hint: detail.slice(0, 200) }
    return new PawlError('REQUEST_INVALID', { detail, violations: [violation], cause: thrown })
  }
  return new PawlError('INTERNAL', { detail, cause: thrown })
}

/** True when the database could not be reached or gave up, so that the same request may be served later. */
function isUnavailable(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false
  if ('code' in error && typeof error.code === 'string' && UNAVAILABLE_CODES.test(error.code)) return true
  return error instanceof Error && UNAVAILABLE_MESSAGES.test(error.message)
}

// SQLSTATE classes 08 connection, 53 resources, 57 operator intervention, 40 rolled back by the server. 25006 read-only and 55000 not accepting
// connections show while a standby takes over. 55P03, 25P03 and 25P04 are time limits of locks and transactions, of a server, a database or a role
// behind a pooler. 23503 says that the phone or operation that a row belongs to was deleted since it was read. The rest are codes of sockets: EMFILE and
// ENFILE when there is no descriptor for another one.
const UNAVAILABLE_CODES =
  /^(08|53|57|40)[0-9A-Z]{3}$|^(23503|25006|25P03|25P04|55000|55P03)$|^(EMFILE|ENFILE|ENOBUFS|ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH)$/
// node-postgres throws these without a code. For a disk that has become read only PostgreSQL has the code of a missing right, 42501.
const UNAVAILABLE_MESSAGES =
  /: Read-only file system$|^(timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error|Query read timeout|driver has already been destroyed)/
