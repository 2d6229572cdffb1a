// Describes endpoints of the cloud API for the OpenAPI document, with the refusals of the checks before them (cloud §1.2).
import { describeErrors, type ErrorDescription, type Operation } from '../../http/operation.ts'
import type { ErrorCode } from '../../lib/errors.ts'
import type { AnyCloudDeclaration } from './endpoint.ts'
import { rendering } from './error-renderer.ts'

/** One operation for each endpoint. `errors` is the error table of the API, `tagOf` gives the group of a path. */
export const describeCloudEndpoints = (
  endpoints: readonly AnyCloudDeclaration[],
  errors: ErrorDescription = errorsOfCloud,
  tagOf: (path: string) => string = nameTag,
): Operation[] => endpoints.map((endpoint) => describeEndpoint(endpoint, errors, tagOf(endpoint.path)))

function describeEndpoint(endpoint: AnyCloudDeclaration, errors: ErrorDescription, tag: string): Operation {
  const { method, path, operationId, summary, description, roles, params, query, headers, body, response } = endpoint
  return {
    method,
    path,
    operationId,
    tag,
    summary,
    description: [description, `Roles: ${roles.join(', ')}.`].filter((text) => text !== undefined).join('\n\n'),
    security: [['basic']],
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

function listCodes({ params, errors, invalidAs, body, query }: AnyCloudDeclaration): ErrorCode[] {
  // Every endpoint refuses a query string that is not percent-encoded text, and a body over the limit.
  const codes: ErrorCode[] = ['REQUEST_INVALID', 'CREDENTIALS_INVALID', 'ROLE_FORBIDDEN', 'TOO_MANY_REQUESTS']
  codes.push('UNAVAILABLE', 'INTERNAL', ...errors)
  if (invalidAs !== undefined && (params || body || query)) codes.push(invalidAs)
  // With an empty parameter, or with a slash in one, it is another path.
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
