// The cloud API: registrations, operations and administration, called by the bank's back ends with HTTP Basic or access tokens.
import type { FastifyInstance } from 'fastify'
import { TICKET_HEADER } from '../../domain/credential/tickets.ts'
import { requireCredentials } from '../../http/basic-credentials.ts'
import { refuseCrossSiteWrite } from '../../http/cross-site.ts'
import { type ErrorRenderer, renderErrorsWith } from '../../http/errors.ts'
import { fingerprintOf } from '../../http/internal-tls.ts'
import { keepJsonBodies } from '../../http/raw-body.ts'
import { inStage } from '../../lib/trace.ts'
import { useStrictValidation } from '../../http/validation.ts'
import { mountCloudEndpoint } from './mount.ts'
import { cloudEndpoints } from './endpoints.ts'
import { renderCloudError } from './error-renderer.ts'
import type { AnyCloudEndpoint } from './endpoint.ts'
import type { CloudParts } from './parts.ts'

/** `more`: endpoints of other APIs with the same callers. */
export const cloudApi = (parts: CloudParts, more: readonly AnyCloudEndpoint[]) =>
  apiOfCallers(parts, [...cloudEndpoints, ...more], renderCloudError)

/** Endpoints for callers of the cloud API, whose errors are rendered so. */
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
    app.addHook('onRequest', async (request) => refuseCrossSiteWrite(request, parts.settings.publicUrl))
    for (const endpoint of endpoints) mountCloudEndpoint(app, parts, endpoint, callerOf)
  }

const CHECK = 'check credentials'
