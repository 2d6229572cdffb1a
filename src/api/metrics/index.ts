// GET /metrics: serves the metrics for Prometheus (docs/METRICS.md). It is part of the bank's API, never of a listener for phones alone.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { VerifyAccessToken } from '../../domain/credential/access-token.ts'
import type { Caller, Credentials } from '../../domain/credential/credential.ts'
import { requireCredentials } from '../../http/basic-credentials.ts'
import { fingerprintOf } from '../../http/internal-tls.ts'
import { type Answer, ErrorResponse, OF_BANK, type Operation } from '../../http/operation.ts'
import { PawlError } from '../../lib/errors.ts'
import type { Platform } from '../../lib/platform.ts'

/**
 * `open`: everybody who reaches the listener may read. `basic`: an admin, or a read-only credential without application. `off`: there is no such
 * path.
 */
export type MetricsAccess = 'open' | 'basic' | 'off'

export interface MetricsSettings {
  readonly metrics?: MetricsAccess
  readonly internalPort?: number
}

/** The access to metrics. Without a setting it is `open` on an internal listener, and `basic` with one listener for all. */
const metricsAccess = ({ metrics, internalPort }: MetricsSettings): MetricsAccess =>
  metrics ?? (internalPort === undefined ? 'basic' : 'open')

export const metricsApi =
  (parts: {
    readonly settings: MetricsSettings
    readonly platform: Platform
    readonly credentials: Credentials
    readonly verifyAccessToken: VerifyAccessToken | undefined
    readonly metrics: { readonly render: () => Promise<{ readonly contentType: string; readonly text: string }> }
  }): FastifyPluginAsyncTypebox =>
  async (app) => {
    const access = metricsAccess(parts.settings)
    if (access === 'off') return
    if (access === 'basic') {
      const callerOf = requireCredentials(app, parts.credentials.verify, {
        verifyToken: parts.verifyAccessToken,
        certificate: {
          read: ({ raw }) => fingerprintOf(raw, parts.platform.now()),
          verify: parts.credentials.verifyCertificate,
        },
      })
      app.addHook('onRequest', async (request) => refuseUnlessReader(callerOf(request)))
    }
    app.get('/metrics', async (_request, reply) => {
      const { contentType, text } = await parts.metrics.render()
      return reply.type(contentType).send(text)
    })
  }

function refuseUnlessReader({ role, applicationId }: Caller): void {
  if (role === 'admin' || (role === 'read-only' && applicationId === null)) return
  const hint = 'must be admin, or read-only without an application'
  throw new PawlError('ROLE_FORBIDDEN', { detail: hint, violations: [{ fieldName: 'role', hint }] })
}

const refused = (status: number, code: string, description: string): Answer => ({
  status,
  description,
  schema: ErrorResponse,
  codes: [code],
})

/** The endpoint for the OpenAPI document; empty if metrics are off. */
export function describeMetrics(settings: MetricsSettings): readonly Operation[] {
  const access = metricsAccess(settings)
  if (access === 'off') return []
  const refusals = [
    refused(401, 'HTTP_401', 'no credential, or a wrong one'),
    refused(403, 'HTTP_403', 'a credential of another role'),
    refused(429, 'HTTP_429', 'too many wrong passwords'),
  ]
  return [
    {
      method: 'GET',
      path: '/metrics',
      operationId: 'readMetrics',
      tag: 'Description and health',
      summary: 'Metrics in the text format of Prometheus',
      description:
        '`PAWL_METRICS` says who may read them: by default everybody who reaches the internal listener; without one, the roles admin and ' +
        'read-only (without application). docs/METRICS.md lists them.',
      security: access === 'basic' ? OF_BANK : [],
      answers: [
        { status: 200, description: 'the metrics', mediaType: 'text/plain' },
        ...(access === 'basic' ? refusals : []),
        refused(503, 'HTTP_503', 'the password cannot be looked up, or too much is under way'),
      ],
    },
  ]
}
