// Declares endpoints of the cloud API, and describes them for the OpenAPI document (cloud §1.2).
import type { Static, TSchema, TVoid } from '@sinclair/typebox'
import type { Caller } from '../../domain/credential/credential.ts'
import type { ErrorCode } from '../../lib/errors.ts'
import type { Role } from '../../storage/database/schema.ts'
import type { CloudParts } from './parts.ts'
import { describeErrors, type ErrorDescription, OF_BANK, type Operation } from '../../http/operation.ts'
import { Ok } from '../../http/types.ts'
import { rendering } from './error-renderer.ts'

/** A call whose structure was checked. The types are those of body, query, path parameters and headers. */
export interface CloudCall<B = unknown, Q = unknown, U = unknown, H = unknown> {
  readonly body: B
  readonly query: Q
  readonly headers: H
  readonly params: U
  readonly caller: Caller
  /** `scheme://host` as the caller used it. */
  readonly origin: string
  /** Address of the caller. */
  readonly source: string
  readonly parts: CloudParts
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Method and path, like `GET /admin/users/:name`. */
type Route = `${Method} /${string}`

/** The declaration of an endpoint, without its handler. */
export interface CloudDeclaration<B extends TSchema, Q extends TSchema, U extends TSchema, R extends TSchema, H extends TSchema> {
  readonly route: Route
  /** The name in the OpenAPI document and in generated clients: a verb and its object. */
  readonly operationId: string
  /** For the OpenAPI document: one line, and more text as Markdown. */
  readonly summary: string
  readonly description?: string
  /** The error codes of the handler; none if absent. */
  readonly errors?: readonly ErrorCode[]
  readonly roles: readonly Role[]
  readonly body?: B
  readonly query?: Q
  readonly params?: U
  /** Request headers other than the credentials. Their names are in lower case. */
  readonly headers?: H
  /** The answer of the handler. If absent, the handler returns nothing, and the answer is Ok. */
  readonly response?: R
  /** The error code of a structural error; REQUEST_INVALID if absent. */
  readonly invalidAs?: ErrorCode
  /** The longest body, in bytes; CALLERS_BYTES_MAX if absent. */
  readonly bodyBytesMax?: number
}

/** An endpoint of any schemas. `serve` takes calls that were checked against them. */
export interface AnyCloudEndpoint extends CloudDeclaration<TSchema, TSchema, TSchema, TSchema, TSchema> {
  readonly method: Method
  readonly path: string
  /** Whether the audit log of administrators records its change. */
  readonly isAudited: boolean
  readonly serve: (call: CloudCall) => Promise<unknown>
}

/** Declares an endpoint. Changes below /admin, which the audit log of administrators records, are declared by auditedEndpoint. */
export const cloudEndpoint = <
  B extends TSchema,
  Q extends TSchema,
  U extends TSchema,
  H extends TSchema,
  R extends TSchema = TVoid,
>(
  endpoint: CloudDeclaration<B, Q, U, R, H> & {
    readonly handle: (call: CloudCall<Static<B>, Static<Q>, Static<U>, Static<H>>) => Promise<Static<R>>
  },
): AnyCloudEndpoint => ({
  ...endpoint,
  ...splitRoute(endpoint.route),
  isAudited: false,
  serve: (call) => endpoint.handle(call as CloudCall<Static<B>, Static<Q>, Static<U>, Static<H>>),
})

export function splitRoute(route: Route): Pick<AnyCloudEndpoint, 'method' | 'path'> {
  const [method, path] = route.split(' ') as [Method, string]
  return { method, path }
}

/** Declares a read of the administration, for administrators and for those who may only read. */
export const adminRead = <Q extends TSchema, U extends TSchema, R extends TSchema>(
  endpoint: Omit<CloudDeclaration<TVoid, Q, U, R, TVoid>, 'roles'> & {
    readonly handle: (call: CloudCall<unknown, Static<Q>, Static<U>>) => Promise<Static<R>>
  },
): AnyCloudEndpoint => cloudEndpoint({ ...endpoint, roles: ['admin', 'read-only'] })

/**
 * Describes one operation for each endpoint, with the refusals of the checks before its handler. `errors` is the error table of the API, and `tagOf`
 * gives the group of a path.
 */
export const describeCloudEndpoints = (
  endpoints: readonly AnyCloudEndpoint[],
  errors: ErrorDescription = errorsOfCloud,
  tagOf: (path: string) => string = nameTag,
): Operation[] => endpoints.map((endpoint) => describeEndpoint(endpoint, errors, tagOf(endpoint.path)))

function describeEndpoint(endpoint: AnyCloudEndpoint, errors: ErrorDescription, tag: string): Operation {
  const { method, path, operationId, summary, description, roles, params, query, headers, body, response = Ok } = endpoint
  return {
    method,
    path,
    operationId,
    tag,
    summary,
    description: [description, `Roles: ${roles.join(', ')}.`].filter((text) => text !== undefined).join('\n\n'),
    security: OF_BANK,
    params,
    query,
    headers,
    body: body && { schema: body, isRequired: true },
    answers: [{ status: 200, description: 'done', schema: response }, ...describeErrors(errors, listCodes(endpoint))],
  }
}

/** The group of a path, by its first word. The administration has several groups, by the second word. */
function nameTag(path: string): string {
  const [first = '', second = ''] = path.slice(1).split('/')
  if (first === 'v2') return second === 'operations' ? 'Operations' : 'Registration'
  if (first !== 'admin') return first.slice(0, 1).toUpperCase() + first.slice(1)
  return `Administration: ${second === 'application' ? 'applications' : second}`
}

function listCodes({ params, errors = [], invalidAs, body, query }: AnyCloudEndpoint): ErrorCode[] {
  // Every endpoint refuses a query string that is not percent-encoded text, and a body over the limit.
  const codes: ErrorCode[] = ['REQUEST_INVALID', 'CREDENTIALS_INVALID', 'ROLE_FORBIDDEN', 'TOO_MANY_REQUESTS']
  codes.push('UNAVAILABLE', 'INTERNAL', ...errors)
  if (invalidAs !== undefined && (params || body || query)) codes.push(invalidAs)
  // A path with an empty parameter, or with a slash in one, matches no endpoint.
  if (params) codes.push('PATH_UNKNOWN')
  return codes
}

const errorsOfCloud: ErrorDescription = {
  rendering,
  example: ({ code, message }) => ({
    status: 'ERROR',
    responseObject: { code, message, ...(code === 'ERROR_REQUEST' && { violations: VIOLATIONS }) },
  }),
  headers: { 401: { 'WWW-Authenticate': 'asks for HTTP Basic' } },
}

const VIOLATIONS = [
  { fieldName: 'userId', invalidValue: ' ', hint: 'must be 1 to 255 characters, not blank, without control characters' },
]
