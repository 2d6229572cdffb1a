// Registers the endpoints of an API at the server: a route for each path, bodies as bytes, errors in the API's own form.
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import { STRANGERS_BYTES_MAX } from '../http/body-bounds.ts'
import { renderErrorsWith, renderUnknownPathsWith } from '../http/errors.ts'
import { hideContentTypes, keepRawBodies } from '../http/raw-body.ts'
import { sourceOf } from '../lib/address.ts'
import { type ErrorCode, PawlError } from '../lib/errors.ts'
import type { Protocol } from '../protocol/protocol.ts'
import type { Declaration, Endpoint, FlowFacts } from './endpoint.ts'
import type { ChannelParts, ChannelSettings } from './parts.ts'

/** Endpoints that the same generations serve at the same place. */
interface EndpointGroup<P> {
  /** The first of these generations that can read the headers of a request serves it. */
  readonly protocols: readonly Protocol[]
  /** Precedes the path of every endpoint, for example `/v3/`. */
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
    const serve = endpoint.prepare(parts, protocols)
    const handler = async (request: FastifyRequest, reply: FastifyReply) => {
      // Fastify compiles a schema once and caches the result.
      const serialize = reply.compileSerializationSchema(endpoint.response as Record<string, unknown>) as (
        value: unknown,
      ) => string
      const body = (request.body as Buffer | undefined) ?? NO_BODY
      const query = /\?(.*)/s.exec(request.raw.url ?? '')?.[1]
      const { method, headers } = request
      const contentType = contentTypeOf(request)
      const received = { method, headers, contentType, body, query, ip: request.ip }
      const text = await serveWithinBudget(parts, received, () => serve(received, serialize))
      return reply.type('application/json').send(text)
    }
    const bodyLimit = bodyLimitOf(endpoint.flow, parts.settings)
    // A code covers the method, too. A right code of a HEAD request would be used up for an answer that nobody reads.
    app.route({ method: [...methodsOf(endpoint)], url: prefix + endpoint.path, bodyLimit, handler, exposeHeadRoute: false })
  }
}

export const methodsOf = ({ methods }: Declaration): readonly HTTPMethods[] => methods ?? ['POST']

function bodyLimitOf({ covered }: FlowFacts, { signedBodyBytesMax }: Pick<ChannelSettings, 'signedBodyBytesMax'>): number {
  if (covered === undefined) return STRANGERS_BYTES_MAX
  return covered.by === 'envelope' ? covered.bytesMax : Math.min(covered.bytesMax ?? signedBodyBytesMax, signedBodyBytesMax)
}

const NO_BODY = Buffer.alloc(0)

/**
 * Serves a request if its source has failures left; else throws TOO_MANY_REQUESTS. A request with a fault that a stranger could have caused uses up
 * one failure, and one more for every 16 KiB of its body. Passes on errors of `serve`.
 */
async function serveWithinBudget<T>(
  { platform, sourceFailures }: Pick<ChannelParts, 'platform' | 'sourceFailures'>,
  { ip, body }: { readonly ip: string; readonly body: Uint8Array },
  serve: () => Promise<T>,
): Promise<T> {
  const now = platform.monotonic()
  const source = sourceOf(ip)
  const place = sourceFailures.takeIfLeft(source, now, 1 + Math.floor(body.length / BYTES_OF_A_FAILURE))
  if (place === undefined) {
    const retryAfterSeconds = sourceFailures.secondsLeft(source, now)
    throw new PawlError('TOO_MANY_REQUESTS', { detail: 'too many refused requests of one source', retryAfterSeconds })
  }
  let isFailure = false
  try {
    return await serve()
  } catch (error) {
    isFailure = error instanceof PawlError && STRANGERS_FAILURES.has(error.code)
    throw error
  } finally {
    if (isFailure) place.keep()
    else place.giveBack()
  }
}

const BYTES_OF_A_FAILURE = 16 * 1024
/** The error codes of requests without a right code, token or envelope. It omits refusals that need a right code, and failures of pawl. */
const STRANGERS_FAILURES: ReadonlySet<ErrorCode> = new Set([
  'REQUEST_INVALID',
  'AUTHENTICATION_CODE_INVALID',
  'AUTHENTICATION_REQUEST_INVALID',
  'AUTHENTICATION_HEADER_MISSING',
  'TOKEN_FAILED',
  'ENCRYPTION_FAILED',
  'ACTIVATION_FAILED',
  'TEMPORARY_KEY_FAILED',
  'VAULT_FAILED',
  'PASSWORD_CHANGE_FAILED',
  'BIOMETRY_FAILED',
  'UPGRADE_FAILED',
  'STATUS_FAILED',
])
