// Demands HTTP Basic, a client certificate or an access token before every route of a part of the server. A browser adds stored Basic credentials by
// itself, also to a request that a page of another site makes it send. Such writes are refused.
import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { PawlError, requestRefused } from '../lib/errors.ts'
import { exemptFromShares } from './load-limits.ts'

/** A login by password. `onGone` calls back when the caller disconnects, and returns a function that unsubscribes. */
interface BasicLogin {
  readonly username: string
  readonly source: string
  readonly onGone: (callback: () => void) => () => void
}

/** The ways to recognise callers without a password. */
interface OtherCallers<Caller> {
  /** Recognises a caller who shows no password; undefined when it does not know the caller. */
  readonly recognise?: (request: FastifyRequest) => Caller | undefined
  /** Finds the caller of a client certificate, when there is no other credential; refuses by throwing. */
  readonly certificate?: {
    readonly read: (request: FastifyRequest) => string | undefined
    readonly verify: (fingerprint: string, source: string) => Promise<Caller>
  }
  /** Checks an access token; refuses by throwing. Absent where none is taken. */
  readonly verifyToken?: ((token: string, source: string) => Promise<Caller>) | undefined
}

/**
 * Refuses requests to the routes of `app` whose caller neither `others` recognise nor `verify` accepts. Returns a function that gives the
 * caller of a request, from the hook onRequest on.
 */
export function requireCredentials<Caller extends object>(
  app: FastifyInstance,
  verify: (login: BasicLogin, password: string) => Promise<Caller>,
  { recognise = () => undefined, verifyToken, certificate }: OtherCallers<Caller> = {},
): (request: FastifyRequest) => Caller {
  const known = Symbol('caller')
  app.decorateRequest(known, undefined)
  const verifyOther = async (request: FastifyRequest): Promise<Caller | undefined> => {
    const { authorization } = request.headers
    if (authorization !== undefined) {
      const token = verifyToken && BEARER.exec(authorization)?.[1]
      return verifyToken && token !== undefined ? verifyToken(token, request.ip) : undefined
    }
    const fingerprint = certificate?.read(request)
    return certificate && fingerprint !== undefined ? certificate.verify(fingerprint, request.ip) : undefined
  }
  const verifyBasic = (request: FastifyRequest, answer: ServerResponse): Promise<Caller> => {
    const { username, password } = readBasic(request.headers.authorization)
    const onGone = (callback: () => void) => {
      answer.once('close', callback)
      return () => answer.off('close', callback)
    }
    return verify({ username, source: request.ip, onGone }, password)
  }
  app.addHook('onRequest', async (request, reply) => {
    const caller = recognise(request) ?? (await verifyOther(request)) ?? (await verifyBasic(request, reply.raw))
    request.setDecorator(known, caller)
    exemptFromShares(request)
  })
  return (request) => {
    const caller = request.getDecorator<Caller | undefined>(known)
    if (caller === undefined) throw new TypeError('a route was reached without credentials')
    return caller
  }
}

/** Parses user name and password of a header (RFC 7617 §2), in UTF-8 and without control characters. Throws PawlError CREDENTIALS_INVALID. */
function readBasic(header = ''): { readonly username: string; readonly password: string } {
  const text = Buffer.from(BASIC.exec(header)?.[1] ?? '', 'base64').toString()
  const { username, password } = NAME_AND_PASSWORD.exec(text)?.groups ?? {}
  if (username !== undefined && password !== undefined && !CONTROL.test(text)) return { username, password }
  throw new PawlError('CREDENTIALS_INVALID', { detail: 'Missing or bad formatted authorization header' })
}

const BASIC = /^Basic ([\w.~+/-]+=*)$/i
const NAME_AND_PASSWORD = /^(?<username>[^:]*):(?<password>.*)$/u
// oxlint-disable-next-line no-control-regex -- those that RFC 5234 calls CTL
const CONTROL = /[\x00-\x1F\x7F]/
/** RFC 6750 §2.1. */
const BEARER = /^Bearer ([\w.~+/-]+=*)$/i

/**
 * Refuses a write that a browser sent for a page of another site, by `Sec-Fetch-Site` or `Origin`. Besides the origin of the request, that of
 * `publicUrl` counts as pawl's own. Throws REQUEST_INVALID.
 */
export function refuseForeignPage({ headers, host }: FastifyRequest, publicUrl: string | undefined): void {
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    throw requestRefused('Sec-Fetch-Site', 'must be same-origin: other sites may not call this API')
  if (headers.origin !== undefined && !isOwn(headers.origin, host, publicUrl))
    throw requestRefused('Origin', 'must be this server: other sites may not call this API')
}

/**
 * Refuses a write that a page of another site may have sent: by `Sec-Fetch-Site` or `Origin`, and by a content type that a browser sends
 * without a preflight. DELETE may come without body and content type, because a browser always sends a preflight for it. Besides the origin of
 * the request, that of `publicUrl` counts as pawl's own. Throws REQUEST_INVALID.
 */
export function refuseCrossSiteWrite(request: FastifyRequest, publicUrl: string | undefined): void {
  const { method, headers } = request
  if (READS.has(method)) return
  refuseForeignPage(request, publicUrl)
  const type = headers['content-type']
  if (type === undefined ? method !== 'DELETE' : !JSON_TYPE.test(type))
    throw requestRefused('Content-Type', 'must be application/json')
}

/** Whether an origin is pawl's own. The scheme is not compared, because a proxy that ends TLS need not pass it on. */
function isOwn(origin: string, requestHost: string, publicUrl: string | undefined): boolean {
  if (!URL.canParse(origin)) return false
  const { protocol, host } = new URL(origin)
  if (protocol !== 'http:' && protocol !== 'https:') return false
  // Parsed with the same scheme, so that a default port is left out of both.
  const own = `${protocol}//${requestHost}`
  const isOurs = URL.canParse(own) && host === new URL(own).host
  return isOurs || (publicUrl !== undefined && host === new URL(publicUrl).host)
}

const READS = new Set(['GET', 'HEAD', 'OPTIONS'])
const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i
