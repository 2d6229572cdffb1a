// Serves the cloud API: registrations, operations and administration. The bank's back ends call it with HTTP Basic or access tokens.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Caller } from '../../domain/credential/credential.ts'
import { TICKET_HEADER } from '../../domain/credential/session.ts'
import { refuseCrossSiteWrite, requireCredentials } from '../../http/basic-credentials.ts'
import { CALLERS_BYTES_MAX } from '../../http/body-bounds.ts'
import { type ErrorRenderer, renderErrorsWith } from '../../http/errors.ts'
import { fingerprintOf } from '../../http/internal-tls.ts'
import { keepJsonBodies } from '../../http/raw-body.ts'
import { Ok } from '../../http/types.ts'
import { refuseMalformedQuery, useStrictValidation } from '../../http/validation.ts'
import { type ErrorCode, PawlError, requestRefused } from '../../lib/errors.ts'
import { inStage } from '../../lib/trace.ts'
import type { AnyCloudEndpoint } from './endpoint.ts'
import { cloudEndpoints } from './endpoints.ts'
import { renderCloudError } from './error-renderer.ts'
import type { CloudParts } from './parts.ts'

/** Serves the cloud API, and the endpoints of `more` for the same callers. */
export const cloudApi = (parts: CloudParts, more: readonly AnyCloudEndpoint[]) =>
  apiOfCallers(parts, [...cloudEndpoints, ...more], renderCloudError)

export const apiOfCallers =
  (parts: CloudParts, endpoints: readonly AnyCloudEndpoint[], renderError: ErrorRenderer) => async (app: FastifyInstance) => {
    keepJsonBodies(app)
    useStrictValidation(app)
    renderErrorsWith(app, parts.events, renderError)
    const { credentials, verifyAccessToken } = parts
    const checkPassword: typeof credentials.verify = (login, password) =>
      inStage(CHECK, () => credentials.verify(login, password))
    const callerOf = requireCredentials(app, checkPassword, {
      recognise: ({ headers }) => {
        const ticket = headers[TICKET_HEADER]
        return typeof ticket === 'string' ? parts.tickets.redeem(ticket) : undefined
      },
      certificate: {
        read: ({ raw }) => fingerprintOf(raw, parts.platform.now()),
        verify: (fingerprint, source) => inStage(CHECK, () => credentials.verifyCertificate(fingerprint, source)),
      },
      verifyToken: verifyAccessToken && ((token, source) => inStage(CHECK, () => verifyAccessToken(token, source))),
    })
    for (const endpoint of endpoints) mountCloudEndpoint(app, parts, endpoint, callerOf)
  }

const CHECK = 'check credentials'

/**
 * Mounts one endpoint. Credentials, role and structure are checked before the handler runs (cloud §1.2). `callerOf` gives the authenticated caller.
 */
function mountCloudEndpoint(
  app: FastifyInstance,
  parts: CloudParts,
  endpoint: AnyCloudEndpoint,
  callerOf: (request: FastifyRequest) => Caller,
): void {
  const { body, query: querystring, params, headers, response = Ok, invalidAs, bodyBytesMax = CALLERS_BYTES_MAX } = endpoint
  app.route({
    method: endpoint.method,
    url: endpoint.path,
    bodyLimit: bodyBytesMax,
    schema: {
      ...(body && { body }),
      ...(querystring && { querystring }),
      ...(params && { params }),
      ...(headers && { headers }),
      response: { 200: response },
    },
    attachValidation: true,
    // Runs after the credentials were checked and before the body is read.
    onRequest: async (request) => {
      const caller = callerOf(request)
      if (!mayCall(endpoint, caller)) throw refuseRole(endpoint, caller)
      refuseCrossSiteWrite(request, parts.settings.publicUrl)
    },
    handler: async (request) => {
      refuseMalformedQuery(request.raw.url ?? '')
      // The validator takes a missing body as an empty object, and cannot tell null from it.
      const fault = body !== undefined && request.body === null ? NULL_BODY : request.validationError
      if (fault) throw refuseStructure(fault, invalidAs)
      const call = {
        body: request.body ?? {},
        query: request.query,
        params: request.params,
        headers: request.headers,
        caller: callerOf(request),
        origin: `${request.protocol}://${request.host}`,
        source: request.ip,
        parts,
      }
      return (await inStage('handle', () => endpoint.serve(call))) ?? { status: 'OK' }
    },
  })
}

/**
 * Whether a caller may call an endpoint. A caller of the role read-only with an application may not read the administration, because it shows all
 * applications.
 */
const mayCall = ({ roles, path }: AnyCloudEndpoint, { role, applicationId }: Caller): boolean =>
  roles.includes(role) && !(role === 'read-only' && applicationId !== null && path.startsWith('/admin/'))

/** The refusal of a caller. It names the roles that may call. */
function refuseRole({ roles }: AnyCloudEndpoint, { role }: Caller): PawlError {
  const isBound = roles.includes(role)
  const hint = isBound ? 'must belong to no application' : `must be ${roles.join(' or ')}, this is ${role}`
  const violations = [{ fieldName: isBound ? 'credential' : 'role', hint }]
  return new PawlError('ROLE_FORBIDDEN', { detail: hint, violations })
}

const NULL_BODY = requestRefused('body', 'must be object')

function refuseStructure(error: Error, invalidAs: ErrorCode | undefined): Error {
  if (!(error instanceof PawlError) || invalidAs === undefined) return error
  return new PawlError(invalidAs, { detail: error.message, violations: error.violations, cause: error })
}
