// Gives a request its id and, where there are traces, its span, from its first hook to its last.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { runInScope, type Span, type Tracer } from '../lib/trace.ts'

/** Every answer and every log line of a request has its id, and its trace has both. */
export function followRequests(app: FastifyInstance, tracer: Tracer | undefined): void {
  const traced = Symbol('span')
  app.decorateRequest(traced, undefined)
  app.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-request-id', request.id)
    const span = tracer && startSpan(tracer, request)
    if (span) request.setDecorator(traced, span)
    runInScope({ id: request.id, span }, done)
  })
  if (tracer === undefined) return
  app.addHook('onResponse', (request, { statusCode }, done) => {
    const failure = statusCode >= 500 ? String(statusCode) : undefined
    request.getDecorator<Span | undefined>(traced)?.end({ failure, attributes: { 'http.response.status_code': statusCode } })
    done()
  })
}

/** Named after the route: a path may hold ids, and whoever thinks of paths would make names. Probes have no span. */
function startSpan(tracer: Tracer, { id, method, headers, routeOptions: { url: route } }: FastifyRequest): Span | undefined {
  if (route !== undefined && PROBES.test(route)) return undefined
  const attributes = { 'http.request.method': method, 'pawl.request_id': id, ...(route && { 'http.route': route }) }
  return tracer.startRequest(route ? `${method} ${route}` : method, headers, attributes)
}

const PROBES = /^\/(health|metrics)\b/

/**
 * The id that joins what is logged, answered and traced of a request: a caller's own when it is 1 to 128 characters that no log, header or
 * shell reads as anything else, else undefined.
 */
export const parseRequestId = (text: unknown): string | undefined =>
  typeof text === 'string' && /^[\w.:~+/=@-]{1,128}$/.test(text) ? text : undefined
