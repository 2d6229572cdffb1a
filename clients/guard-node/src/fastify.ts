// The guard as a Fastify plugin: `app.requireCode`, `app.requireToken` and `app.encrypted` give the hooks of a route.
import { Readable } from 'node:stream'
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onSendAsyncHookHandler,
  preParsingHookHandler,
  RequestPayload,
} from 'fastify'
import {
  codeOfRoute,
  createGuard,
  type Guard,
  type GuardOptions,
  type Incoming,
  type OpenedRequest,
  requireResourceId,
  type RouteCodeOptions,
  type RouteEncryptionOptions,
  type TokenOptions,
  type Verified,
} from './guard.ts'
import { rawQuery, readBody } from './read-body.ts'

/** Hooks of one route. They run before anything parses the body. */
export interface RouteHooks {
  readonly preParsing: preParsingHookHandler
  readonly onSend?: onSendAsyncHookHandler<unknown>
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Who sent the request. Undefined where the route has no guard. */
    pawl: Verified | undefined
  }
  interface FastifyInstance {
    /** For requests that the phone signs. */
    requireCode: (options: RouteCodeOptions) => RouteHooks
    /** For reads with a token. */
    requireToken: (options?: TokenOptions) => RouteHooks
    /** For requests that the phone encrypts. The handler sees the plaintext; what it answers below 300 is sealed. */
    encrypted: (options?: RouteEncryptionOptions) => RouteHooks
  }
}

/** `app.register(pawlGuard, { url, username, password })`, and then routes as `app.post('/transfer', app.requireCode({ resourceId: '/transfer' }), …)`. */
export async function pawlGuard(app: FastifyInstance, options: GuardOptions): Promise<void> {
  const { useSemicolonDelimiter } = { ...app.initialConfig, ...app.initialConfig.routerOptions }
  // The query of `/a;to=thief?to=friend` would be another one for the handler than for the code.
  if (useSemicolonDelimiter)
    throw new TypeError('useSemicolonDelimiter must be off: queries that begin at a semicolon are not those that a code covers')
  const guard = createGuard(options)
  app.decorateRequest('pawl', undefined)
  app.decorate('requireCode', (code: RouteCodeOptions) => {
    requireResourceId(code)
    return {
      preParsing: guarded(guard, async (request, incoming) => {
        request.pawl = await guard.checkCode(incoming, codeOfRoute(code, request.params))
      }),
    }
  })
  app.decorate('requireToken', (token?: TokenOptions) => ({
    preParsing: guarded(guard, async (request, incoming) => {
      request.pawl = await guard.checkToken(incoming, token)
    }),
  }))
  app.decorate('encrypted', (encryption?: RouteEncryptionOptions) => encryptedHooks(guard, encryption))
}
// Routes beside the plugin use its decorators, so it opens no scope of its own.
Object.assign(pawlGuard, { [Symbol.for('skip-override')]: true, [Symbol.for('fastify.display-name')]: 'pawl-guard' })

function encryptedHooks(guard: Guard, { code, ...options }: RouteEncryptionOptions = {}): RouteHooks {
  if (code) requireResourceId(code)
  const opened = new WeakMap<FastifyRequest, OpenedRequest>()
  return {
    preParsing: guarded(guard, async (request, incoming) => {
      const one = await guard.open(incoming, { ...options, ...(code && { code: codeOfRoute(code, request.params) }) })
      opened.set(request, one)
      request.pawl = one.verified
      return one.plaintext
    }),
    onSend: async (request, reply, payload) => {
      const one = opened.get(request)
      // An error is no secret, and phones read errors as they are.
      if (one === undefined || reply.statusCode >= 300) return payload
      try {
        const sealed = await one.seal(await bytesOf(payload))
        // The hash of an answer tells which it is.
        reply.header('content-type', 'application/json').removeHeader('content-length').removeHeader('etag')
        return sealed
      } catch (error) {
        return answer(reply, guard.refusalOf(error))
      }
    },
  }
}

type Check = (request: FastifyRequest, incoming: Incoming) => Promise<Buffer | void>

/**
 * Reads the body, has it checked, and hands on the bytes that the handler is to see. Whatever is thrown refuses the request. Calls `done` for a
 * request that is served, and never for another: an async hook that returns after its answer is taken for one that lets the request through
 * where the phone has gone away and the answer waits for other hooks.
 */
const guarded =
  (guard: Guard, check: Check): preParsingHookHandler =>
  (request, reply, payload, done) => {
    checked(guard, check, request, payload as Readable).then(
      (seen) => done(null, seen),
      (error: unknown) => {
        // What nobody reads would be read as the next request of the connection.
        payload.resume()
        const refusal = guard.refusalOf(error)
        reply.code(refusal.status).type('application/json').send(refusal.body)
      },
    )
  }

async function checked(guard: Guard, check: Check, request: FastifyRequest, payload: Readable): Promise<RequestPayload> {
  const body = await readBody(payload, guard.bodyBytesMax)
  const { method, headers, ip: address } = request
  const seen = await check(request, { method, headers, query: rawQuery(request.raw.url ?? ''), body, address })
  return asPayload(seen ?? body, body.length)
}

/** `received`: length of what came, which Fastify compares with the header. */
function asPayload(bytes: Buffer, received: number): RequestPayload {
  return Object.assign(Readable.from(bytes.length > 0 ? [bytes] : [], { objectMode: false }), { receivedEncodedLength: received })
}

function answer(reply: FastifyReply, refusal: { readonly status: number; readonly body: string }): string {
  reply.code(refusal.status).header('content-type', 'application/json').removeHeader('content-length')
  return refusal.body
}

async function bytesOf(payload: unknown): Promise<Uint8Array> {
  if (payload === null || payload === undefined) return new Uint8Array()
  if (typeof payload === 'string') return Buffer.from(payload)
  if (payload instanceof Uint8Array) return payload
  if (payload instanceof Readable) return readBody(payload, ANSWER_BYTES_MAX)
  throw new TypeError('an answer that is neither text, bytes nor a stream cannot be sealed')
}

/** What one seal takes. */
const ANSWER_BYTES_MAX = 262_144
