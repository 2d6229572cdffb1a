// Demands HTTP Basic, a client certificate or an access token before every route of a part of the server.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { PawlError } from '../lib/errors.ts'
import { toPawlError } from './errors.ts'
import { exemptFromShares } from './load-limits.ts'

/** A login by password. `onGone` calls back when the caller disconnects, and returns a function that unsubscribes. */
export interface BasicLogin {
  readonly username: string
  readonly source: string
  readonly onGone: (callback: () => void) => () => void
}

/** How callers without a password are recognised. */
export interface OtherCallers<Caller> {
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
  const callerOf = (request: FastifyRequest): Caller | undefined => request.getDecorator(known)
  const accept = (request: FastifyRequest, caller: Caller): void => {
    request.setDecorator(known, caller)
    exemptFromShares(request)
  }
  const verifyOther = async (request: FastifyRequest): Promise<Caller | undefined> => {
    const { authorization } = request.headers
    if (authorization !== undefined) {
      const token = verifyToken && BEARER.exec(authorization)?.[1]
      return verifyToken && token !== undefined ? verifyToken(token, request.ip) : undefined
    }
    const fingerprint = certificate?.read(request)
    return certificate && fingerprint !== undefined ? certificate.verify(fingerprint, request.ip) : undefined
  }
  app.addHook('onRequest', async (request) => {
    const caller = recognise(request) ?? (await verifyOther(request))
    if (caller !== undefined) accept(request, caller)
  })
  app.addHook('onRequest', async (request, { raw: reply }) => {
    if (callerOf(request) !== undefined) return
    const { username, password } = readBasic(request.headers.authorization)
    const onGone = (callback: () => void) => {
      reply.once('close', callback)
      return () => reply.off('close', callback)
    }
    try {
      accept(request, await verify({ username, source: request.ip, onGone }, password))
    } catch (error) {
      throw toPawlError(error)
    }
  })
  return (request) => {
    const caller = callerOf(request)
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
