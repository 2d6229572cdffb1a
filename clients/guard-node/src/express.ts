// The guard as Express middleware: `guard.requireCode`, `guard.requireToken` and `guard.encrypted`, before anything that parses bodies.
import type { Request, RequestHandler, Response } from 'express'
import {
  codeOfRoute,
  createGuard,
  type Guard,
  type GuardOptions,
  type Incoming,
  Refusal,
  requireResourceId,
  type RouteCodeOptions,
  type RouteEncryptionOptions,
  type TokenOptions,
  type Verified,
} from './guard.ts'
import { rawQuery, readBody } from './read-body.ts'

export interface ExpressGuard {
  /** For requests that the phone signs. */
  readonly requireCode: (options: RouteCodeOptions) => RequestHandler
  /** For reads with a token. */
  readonly requireToken: (options?: TokenOptions) => RequestHandler
  /** For requests that the phone encrypts. The handler sees the plaintext; what it answers below 300 is sealed. */
  readonly encrypted: (options?: RouteEncryptionOptions) => RequestHandler
}

declare global {
  // eslint-disable-next-line @typescript-eslint/no-namespace
  namespace Express {
    interface Request {
      /** Who sent the request. Undefined where the route has no guard. */
      pawl?: Verified
      /** The body as it came, where `keepRawBody` kept it. */
      pawlRawBody?: Buffer
    }
  }
}

/** For applications that parse every body: `app.use(express.json({ verify: keepRawBody }))`. */
export function keepRawBody(request: object, _response: unknown, body: Buffer): void {
  Object.assign(request, { pawlRawBody: body })
}

/** Middleware for the bank's routes: `app.post('/transfer', guard.requireCode({ resourceId: '/transfer' }), handler)`. */
export function createExpressGuard(options: GuardOptions): ExpressGuard {
  const guard = createGuard(options)
  return {
    requireCode: (code) => {
      requireResourceId(code)
      return guarded(guard, async (request, incoming) => {
        request.pawl = await guard.checkCode(incoming, codeOfRoute(code, request.params))
        return incoming.body
      })
    },
    requireToken: (token) =>
      guarded(guard, async (request, incoming) => {
        request.pawl = await guard.checkToken(incoming, token)
        return incoming.body
      }),
    encrypted: ({ code, ...encryption } = {}) => {
      if (code) requireResourceId(code)
      return guarded(guard, async (request, incoming, response) => {
        const opened = await guard.open(incoming, { ...encryption, ...(code && { code: codeOfRoute(code, request.params) }) })
        request.pawl = opened.verified
        sealAnswer(guard, response, opened.seal)
        return opened.plaintext
      })
    },
  }
}

type Check = (request: Request, incoming: Incoming, response: Response) => Promise<Uint8Array>

/** Has the request checked, and parses what the handler is to see. Whatever is thrown refuses the request. */
const guarded =
  (guard: Guard, check: Check): RequestHandler =>
  async (request, response, next) => {
    let isRight = false
    try {
      const body = await rawBodyOf(request, guard.bodyBytesMax)
      const { method, headers, ip: address = '', originalUrl } = request
      const seen = await check(request, { method, headers, query: rawQuery(originalUrl), body, address }, response)
      isRight = parseInto(request, response, seen)
    } catch (error) {
      request.resume()
      refuse(response, guard.refusalOf(error))
    }
    // Outside, so that what the handler throws is not taken for a refusal.
    if (isRight) next()
  }

/** Throws where something has read the body and kept no bytes: what was parsed cannot be checked. */
async function rawBodyOf(request: Request, bytesMax: number): Promise<Uint8Array> {
  const kept = request.pawlRawBody
  if (kept !== undefined && kept.length > bytesMax) throw new Refusal(413, 'BODY_TOO_LARGE')
  if (kept !== undefined) return kept
  if (request.readableDidRead && !hasNoBody(request))
    throw new TypeError(
      'the body was parsed before pawl saw it: put the guard first, or use express.json({ verify: keepRawBody })',
    )
  return readBody(request, bytesMax)
}

const hasNoBody = ({ headers }: Request): boolean =>
  headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0

/** Sets `request.body`: parsed where the request says that it is JSON, else the bytes. False when it is answered: that was no JSON. */
function parseInto(request: Request, response: Response, bytes: Uint8Array): boolean {
  // What body-parser sets, and asks: it reads no body a second time.
  Object.assign(request, { _body: true, body: bytes })
  if (bytes.length === 0) Object.assign(request, { body: undefined })
  else if (request.is('json')) {
    try {
      Object.assign(request, { body: JSON.parse(Buffer.from(bytes).toString('utf8')) })
    } catch {
      response
        .status(400)
        .type('json')
        .end(JSON.stringify({ status: 'ERROR', responseObject: { code: 'ERR_VALIDATION', message: 'no JSON' } }))
      return false
    }
  }
  return true
}

/** Keeps back what the handler writes, and sends it sealed. An error is no secret, and phones read errors as they are. */
function sealAnswer(guard: Guard, response: Response, seal: (plaintext: Uint8Array) => Promise<string>): void {
  const { write, end, writeHead, flushHeaders } = response
  const parts: { readonly bytes: Buffer; readonly isSecret: boolean }[] = []
  let isOver = false
  const keep = (part: unknown, encoding: unknown): void => {
    const isSecret = response.statusCode < 300
    if (typeof part === 'string')
      parts.push({ bytes: Buffer.from(part, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8'), isSecret })
    else if (part instanceof Uint8Array) parts.push({ bytes: Buffer.from(part), isSecret })
  }
  const send = (text: string | Buffer): void => {
    Object.assign(response, { write, end, writeHead, flushHeaders })
    response.end(text)
  }
  const finish = async (): Promise<void> => {
    const join = (kept: typeof parts) => Buffer.concat(kept.map(({ bytes }) => bytes))
    // What was written before the handler failed is of the answer that was to be sealed.
    if (response.statusCode >= 300) return send(join(parts.filter(({ isSecret }) => !isSecret)))
    const plaintext = join(parts)
    for (const name of ['content-length', 'etag', 'content-encoding']) response.removeHeader(name)
    try {
      const sealed = await seal(plaintext)
      response.setHeader('content-type', 'application/json')
      send(sealed)
    } catch (error) {
      const refusal = guard.refusalOf(error)
      response.statusCode = refusal.status
      response.setHeader('content-type', 'application/json')
      send(refusal.body)
    }
  }
  Object.assign(response, {
    flushHeaders: () => undefined,
    writeHead: (status: number, ...rest: unknown[]) => {
      response.statusCode = status
      for (const headers of rest)
        if (typeof headers === 'object' && headers !== null && !Array.isArray(headers))
          for (const [name, value] of Object.entries(headers)) response.setHeader(name, value as string)
      return response
    },
    write: (part: unknown, encoding: unknown, done: unknown) => {
      keep(part, encoding)
      callLast(encoding, done)
      return true
    },
    end: (part: unknown, encoding: unknown, done: unknown) => {
      if (isOver) return response
      isOver = true
      keep(part, encoding)
      response.once('finish', () => callLast(part, encoding, done))
      void finish()
      return response
    },
  })
}

function callLast(...args: readonly unknown[]): void {
  const done = args.find((one) => typeof one === 'function')
  if (typeof done === 'function') done()
}

function refuse(response: Response, { status, body }: { readonly status: number; readonly body: string }): void {
  // By a time limit of the bank. What is thrown here would end the process in Express 4.
  if (response.headersSent) return
  response.status(status).type('json').end(body)
}
