// Hooks for the requests and answers of every API: request id and span, headers of every answer, the address of the caller, and the serialization
// of answers.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createRanges, parseAddress } from '../lib/address.ts'
import { requestRefused } from '../lib/errors.ts'
import { runInScope, type Span, type Tracer } from '../lib/trace.ts'
import type { Events } from '../log/events.ts'

/** Gives every answer and every log line of a request its id. If there are traces, also starts its span. */
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

/** Starts the span of a request; probes have none. Its name is the route, because a path may contain ids, and strangers may make up paths. */
function startSpan(tracer: Tracer, { id, method, headers, routeOptions: { url: route } }: FastifyRequest): Span | undefined {
  if (route !== undefined && PROBES.test(route)) return undefined
  const attributes = { 'http.request.method': method, 'pawl.request_id': id, ...(route && { 'http.route': route }) }
  return tracer.startRequest(route ? `${method} ${route}` : method, headers, attributes)
}

const PROBES = /^\/(health|metrics)\b/

/**
 * The request id that a caller has chosen, if it has 1 to 128 characters, and none that a log, a header or a shell would interpret; else
 * undefined.
 */
export const parseRequestId = (text: unknown): string | undefined =>
  typeof text === 'string' && /^[\w.:~+/=@-]{1,128}$/.test(text) ? text : undefined

/** Headers of every answer. An endpoint whose answer may be cached sets its own Cache-Control. */
export const ANSWER_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const

/** Adds ANSWER_HEADERS to every answer, and refuses requests with more than one `Host` (RFC 9112 §3.2). It applies to the whole server. */
export function guardRequests(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    void reply.headers(ANSWER_HEADERS)
    done(hasSecondHost(request.raw.rawHeaders) ? SECOND_HOST : undefined)
  })
}

/** Whether there are two headers `Host`. Names have even places. Node takes the first value; a proxy in front may have taken the second. */
function hasSecondHost(rawHeaders: readonly string[]): boolean {
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  return hosts > 1
}

const SECOND_HOST = requestRefused('request', 'must have one header Host')

/**
 * Compiles the serializer of a schema when the first answer of it is sent, once for all routes that share the schema. Fastify would compile the some
 * 500 answers of all routes at the start, of which most processes use few. It applies to routes that are added later. A route names the schemas of
 * its answers by status: `schema.response`.
 */
export function serializeWhenSent(app: FastifyInstance): void {
  const writers = new WeakMap<object, ReturnType<FastifyReply['compileSerializationSchema']>>()
  app.addHook('onRoute', (route) => {
    const answers = route.schema?.response as Readonly<Record<number, Record<string, unknown>>> | undefined
    if (answers === undefined) return
    route.schema = { ...route.schema, response: undefined }
    route.preSerialization = (_request, reply, answer, done) => {
      const schema = answers[reply.statusCode]
      if (schema !== undefined) {
        const write = writers.get(schema) ?? reply.compileSerializationSchema(schema)
        writers.set(schema, write)
        reply.serializer(write)
      }
      done(null, answer)
    }
  })
}

/**
 * Rewrites X-Forwarded-For to plain addresses: some balancers add ports, put IPv6 addresses in brackets, or write `unknown`. It does so before
 * the caller's address is used. A member that is no address ends the list, because anybody may have written the members before it: the nearest
 * address behind it counts, or that of the connection.
 */
export function readForwarded(
  app: FastifyInstance,
  { trustedProxies }: { readonly trustedProxies: readonly string[] },
  events: Pick<Events, 'forwardedUnreadable'>,
): void {
  if (trustedProxies.length === 0) return
  const isTrusted = createRanges(trustedProxies)
  app.addHook('onRequest', ({ raw }, _reply, done) => {
    const { headers, socket } = raw
    const forwarded = headers['x-forwarded-for']
    if (forwarded !== undefined) {
      const { addresses, isWhole } = parseForwarded(String(forwarded))
      headers['x-forwarded-for'] = addresses.join(', ')
      const source = socket.remoteAddress ?? ''
      if (!isWhole && isTrusted(source)) events.forwardedUnreadable({ source })
    }
    done()
  })
}

/** The addresses behind the last member that is no address; `isWhole` when there was no such member. */
function parseForwarded(header: string): { readonly addresses: readonly string[]; readonly isWhole: boolean } {
  const members = header
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '')
    .map(parseMember)
  const last = members.lastIndexOf(undefined)
  return { addresses: members.slice(last + 1).filter((member) => member !== undefined), isWhole: last === -1 }
}

function parseMember(member: string): string | undefined {
  const { bracketed, plain = '', ipv4 } = MEMBER.exec(member)?.groups ?? {}
  const address = parseAddress(bracketed ?? ipv4 ?? plain)
  return bracketed?.includes(':') === false ? undefined : address
}

const MEMBER = /^(?<quote>"?)(?:\[(?<bracketed>[^[\]]*)\](?::\d{1,5})?|(?<ipv4>[\d.]+):\d{1,5}|(?<plain>[^[\]"]*))\k<quote>$/
