// Registers the endpoints of an API at the server: a route for each path, bodies as bytes, errors in the API's own form.
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import type { PawlError } from '../lib/errors.ts'
import { STRANGERS_BYTES_MAX } from '../http/body-bounds.ts'
import { renderErrorsWith, renderUnknownPathsWith } from '../http/errors.ts'
import { hideContentTypes, keepRawBodies } from '../http/raw-body.ts'
import type { Protocol } from '../protocol/protocol.ts'
import type { Declaration, Endpoint, FlowFacts } from './endpoint.ts'
import type { ChannelParts, ChannelSettings } from './parts.ts'
import { serveWithinBudget } from './source-budget.ts'

/** Endpoints that the same generations serve at the same place. */
interface EndpointGroup<P> {
  /** The first of them that reads the headers of a request serves it. */
  readonly protocols: readonly Protocol[]
  /** Before the path of every endpoint, for example `/v3/`. */
  readonly prefix: string
  readonly endpoints: readonly Endpoint<P>[]
}

interface Mount<P> {
  readonly groups: readonly EndpointGroup<P>[]
  readonly renderError: (error: PawlError, request: FastifyRequest, reply: FastifyReply) => void
}

/** Mounts the endpoints of an API for phones. Every request goes through the flow of its endpoint. */
export async function mountDeviceEndpoints<P extends Pick<ChannelParts, 'events' | 'settings' | 'platform' | 'sourceFailures'>>(
  app: FastifyInstance,
  parts: P,
  { groups, renderError }: Mount<P>,
): Promise<void> {
  keepRawBodies(app)
  const contentTypeOf = hideContentTypes(app)
  renderErrorsWith(app, parts.events, renderError)
  renderUnknownPathsWith(app, renderError)
  const all = groups.flatMap(({ endpoints, ...group }) => endpoints.map((endpoint) => ({ ...group, endpoint })))
  for (const { protocols, prefix, endpoint } of all) {
    // With this name, the stack of every failure has the path of the endpoint.
    const serve = Object.defineProperty(endpoint.prepare(parts, protocols), 'name', { value: endpoint.path })
    const handler = async (request: FastifyRequest, reply: FastifyReply) => {
      // Fastify compiles a schema once and remembers it.
      const serialize = reply.compileSerializationSchema(endpoint.response as Record<string, unknown>) as (
        value: unknown,
      ) => string
      const body = (request.body as Buffer | undefined) ?? NO_BODY
      const [, query] = splitOnce(request.raw.url ?? '', '?')
      const { method, headers } = request
      const contentType = contentTypeOf(request)
      const received = { method, headers, contentType, body, query, ip: request.ip }
      const text = await serveWithinBudget(parts, received, () => serve(received, serialize))
      return reply.type('application/json').send(text)
    }
    const bodyLimit = bodyLimitOf(endpoint.flow, parts.settings)
    // A code covers the method, too. A right code of a HEAD request would be used up for an answer that nobody reads.
    const options = { method: [...methodsOf(endpoint)], bodyLimit, handler, exposeHeadRoute: false }
    for (const url of urlsOf(prefix, endpoint)) app.route({ ...options, url })
  }
}

/** The paths of an endpoint, below that of its API. */
export const urlsOf = (prefix: string, { path, alsoAt = [] }: Declaration): readonly string[] => [prefix + path, ...alsoAt]

export const methodsOf = ({ methods }: Declaration): readonly HTTPMethods[] => methods ?? ['POST']

function bodyLimitOf({ covered }: FlowFacts, { signedBodyBytesMax }: Pick<ChannelSettings, 'signedBodyBytesMax'>): number {
  if (covered === undefined) return STRANGERS_BYTES_MAX
  return covered.by === 'envelope' ? covered.bytesMax : Math.min(covered.bytesMax ?? signedBodyBytesMax, signedBodyBytesMax)
}

function splitOnce(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator)
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}

const NO_BODY = Buffer.alloc(0)
