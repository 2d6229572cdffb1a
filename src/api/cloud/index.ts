// The cloud API: registrations, operations and administration, called by the bank's back ends with HTTP Basic or access tokens.
import type { FastifyInstance } from 'fastify'
import { TICKET_HEADER } from '../../domain/credential/tickets.ts'
import { requireCredentials } from '../../http/basic-credentials.ts'
import { refuseCrossSiteWrite } from '../../http/cross-site.ts'
import { renderErrorsWith } from '../../http/errors.ts'
import { fingerprintOf } from '../../http/internal-tls.ts'
import { keepJsonBodies } from '../../http/raw-body.ts'
import { staged } from '../../lib/trace.ts'
import { useStrictValidation } from '../../http/validation.ts'
import { mountCloudEndpoint } from './mount.ts'
import { cloudEndpoints } from './endpoints.ts'
import { renderCloudError } from './error-renderer.ts'
import type { CloudParts } from './parts.ts'

export const cloudApi = (parts: CloudParts) => async (app: FastifyInstance) => {
  keepJsonBodies(app)
  useStrictValidation(app)
  renderErrorsWith(app, parts.events, renderCloudError)
  const callerOf = requireCredentials(app, staged('check credentials', parts.credentials.verify), {
    recognise: ({ headers }) => {
      const ticket = headers[TICKET_HEADER]
      return typeof ticket === 'string' ? parts.tickets.redeem(ticket) : undefined
    },
    certificate: {
      read: ({ raw }) => fingerprintOf(raw, parts.platform.now()),
      verify: staged('check credentials', parts.credentials.verifyCertificate),
    },
    verifyToken: parts.verifyAccessToken && staged('check credentials', parts.verifyAccessToken),
  })
  app.addHook('onRequest', async (request) => refuseCrossSiteWrite(request, parts.settings.publicUrl))
  for (const endpoint of cloudEndpoints) mountCloudEndpoint(app, parts, endpoint, callerOf)
}
