// Builds the HTTP server from the APIs and health: one server for all, or one for phones and one for the bank (cloud §1.1).
import type { AddressInfo } from 'node:net'
import type { Server as TlsServer } from 'node:tls'
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify'
import { cloudApi } from './api/cloud/index.ts'
import { renderCloudError } from './api/cloud/error-renderer.ts'
import { deviceApi } from './api/device/index.ts'
import { renderDeviceError } from './api/device/error-renderer.ts'
import { doors } from './api/door/index.ts'
import { docsApi } from './api/docs/index.ts'
import { metricsApi } from './api/metrics/index.ts'
import { mobileTokenApi } from './api/mobile-token/index.ts'
import { renderReferenceError } from './api/reference/error-renderer.ts'
import { referenceApi } from './api/reference/index.ts'
import { renderMobileTokenError } from './api/mobile-token/error-renderer.ts'
import { createUtilityErrors } from './api/utility/error-renderer.ts'
import { utilityApi } from './api/utility/init.ts'
import { consolePages } from './console/index.ts'
import type { Context } from './context.ts'
import { describeApis } from './description.ts'
import { boundBodies } from './http/body-bounds.ts'
import { type ErrorRenderer, renderErrorsWith, renderUnknownPathsWith, toPawlError } from './http/errors.ts'
import { keepRawBodies } from './http/raw-body.ts'
import { ANSWER_HEADERS, followRequests, guardRequests, parseRequestId, readForwarded, serializeWhenSent } from './http/hooks.ts'
import { front, health } from './http/health.ts'
import { endsOfTls } from './crypto/certificate.ts'
import { followTlsFiles, loadTls, type TlsFiles } from './http/internal-tls.ts'
import { limitLoad } from './http/load-limits.ts'
import { serverOptions } from './http/server-options.ts'
import { giveBackConnections } from './http/connections.ts'
import { keepLongStacks } from './storage/database/failure.ts'
import type { Log } from './log/log.ts'

/** `public`: the API that phones call. `internal`: the bank's API, administration and the description. Each surface serves health. */
export type Surface = 'everything' | 'public' | 'internal'

/** Builds a server around a context; it does not listen yet. */
export async function buildApp(context: Context, surface: Surface = 'everything', tls?: TlsFiles): Promise<FastifyInstance> {
  keepLongStacks()
  const options = serverOptions(context.settings, context.platform)
  const utilityErrors = createUtilityErrors(context)
  const app = Fastify({
    ...options,
    // The server with TLS has another type and is otherwise the same.
    ...(tls && ({ https: { ...options.http, ...loadTls(tls) } } as object)),
    loggerInstance: withoutChildren(context.log),
    logController: new LogController({ disableRequestLogging: true }),
    // A valid request id of the caller becomes the id of the request, so that its log lines and ours can be joined.
    genReqId: ({ headers }) => parseRequestId(headers['x-request-id']) ?? context.platform.uuid(),
    // Fastify calls this when it refuses a request before it knows the route, for example for a URL that does not decode.
    frameworkErrors: (error, request, reply) => {
      // No hook has run yet.
      reply.headers({ ...ANSWER_HEADERS, 'x-request-id': request.id })
      rendererOf(request.url, utilityErrors.render)(toPawlError(error), request as never, reply as never)
    },
  })
  serializeWhenSent(app)
  readForwarded(app, context.settings, context.events)
  followRequests(app, context.tracer)
  if (tls) followFiles(app, context, tls)
  guardRequests(app)
  limitLoad(app, context.settings, context.events)
  boundBodies(app)
  giveBackConnections(app, context.serviceState)
  // A signed GET may carry a body; a code of 4.0 covers it, one of protocol 3 does not (v3 §10.1, v4 §7.1).
  app.addHttpMethod('GET', { hasBody: true, overrideExisting: true })
  // HEAD gets the checks of GET.
  app.addHttpMethod('HEAD', { hasBody: true, overrideExisting: true })
  // The body of an unknown path is not parsed, because the answer is 404 for every body.
  keepRawBodies(app)
  renderErrorsWith(app, context.events, renderCloudError)
  renderUnknownPathsWith(app, renderCloudError)
  context.metrics.timeRequests(app)
  if (context.log.isLevelEnabled('debug')) {
    app.addHook('onResponse', async ({ method, routeOptions }, reply) => {
      const { statusCode: status, elapsedTime: ms } = reply
      context.events.requestServed({ method, path: routeOptions.url ?? 'unknown', status, ms })
    })
  }
  if (surface !== 'internal') {
    app.addHook('onListen', async () => {
      context.publicListener.address = app.server.address() as AddressInfo
    })
  }
  await app.register(health(context))
  await app.register(front(frontOf(surface, context.settings)))
  if (surface !== 'internal') {
    await app.register(deviceApi(context), { prefix: '/pa' })
    await app.register(mobileTokenApi(context), { prefix: '/api' })
    await app.register(utilityApi(context, utilityErrors), { prefix: '/app' })
  }
  if (surface !== 'public') {
    await app.register(cloudApi(context, doors))
    if (context.settings.referenceApi) await app.register(referenceApi(context))
    await app.register(metricsApi(context))
    await app.register(docsApi(() => describeApis(context.settings)))
    if (context.settings.console) await app.register(consolePages(context), { prefix: '/console' })
  }
  return app
}

function frontOf(surface: Surface, settings: { readonly console: boolean }): Parameters<typeof front>[0] {
  if (surface === 'public') return { text: 'pawl, for mobile apps: there are no pages here.' }
  return { to: settings.console ? 'console/' : undefined, text: 'pawl, for back ends: swagger-ui.html describes the APIs.' }
}

/** Uses one log for all requests, because each child of a log would compile the redaction anew. */
function withoutChildren(log: Log): FastifyBaseLogger {
  const own = Object.create(log) as FastifyBaseLogger
  own.child = () => own
  return own
}

function followFiles(app: FastifyInstance, context: Context, files: TlsFiles): void {
  const onUsed = (texts: Parameters<typeof endsOfTls>[0]): void => {
    const { certificate, authorities } = endsOfTls(texts)
    context.events.tlsHolds({ of: 'certificate', endsAt: certificate })
    context.events.tlsHolds({ of: 'authorities', endsAt: authorities })
  }
  const stop = followTlsFiles(app.server as unknown as TlsServer, files, { ...context, onUsed })
  app.addHook('onClose', async () => stop())
}

/** The error renderer of the API that a path belongs to. It renders refusals that come before the request has a route. */
function rendererOf(url: string, renderUtilityError: ErrorRenderer): ErrorRenderer {
  if (url.startsWith('/pa/')) return renderDeviceError
  if (url.startsWith('/rest/')) return renderReferenceError
  if (url.startsWith('/app/')) return renderUtilityError
  return url.startsWith('/api/') ? renderMobileTokenError : renderCloudError
}
