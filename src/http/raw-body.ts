// Bodies as bytes: codes cover them exactly as they came, and parsing is the endpoint's decision.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import secureJsonParse from 'secure-json-parse'
import { fromUtf8 } from '../lib/bytes.ts'
import { PawlError } from '../lib/errors.ts'

/** Hands every body to the handler as a Buffer, whatever its content type; no body stays undefined. */
export function keepRawBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
}

/** Hides content types from Fastify, which refuses malformed ones; returns what gives the one a request was sent with. */
export function hideContentTypes(app: FastifyInstance): (request: FastifyRequest) => string | undefined {
  const contentTypes = new WeakMap<FastifyRequest, string>()
  app.addHook('onRequest', (request, _reply, done) => {
    const { headers } = request.raw
    if (headers['content-type'] !== undefined) {
      contentTypes.set(request, headers['content-type'])
      delete headers['content-type']
    }
    done()
  })
  return (request) => contentTypes.get(request)
}

/** Accepts JSON bodies only; an empty one counts as none. */
export function keepJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    try {
      done(null, body.length === 0 ? undefined : refuseUnstorable(parseJson(body as Buffer)))
    } catch (error) {
      done(error as Error)
    }
  })
}

/**
 * Parses JSON strictly: UTF-8 without byte order mark, at most 64 levels, no `__proto__`, no `constructor.prototype`. Throws PawlError
 * REQUEST_INVALID.
 */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    const text = fromUtf8(bytes)
    // The parser would skip it; what a code covers and what is parsed are to be the same bytes.
    if (text.startsWith('\uFEFF')) throw new SyntaxError('a byte order mark')
    // The parser takes any depth, and what walks the value later does not.
    if (isDeeperThan(text, DEPTH_MAX)) throw new SyntaxError('nested too deeply')
    return secureJsonParse.parse(text, undefined, { protoAction: 'error', constructorAction: 'error' })
  } catch (cause) {
    const violations = [{ fieldName: 'body', hint: 'must be JSON in UTF-8' }]
    throw new PawlError('REQUEST_INVALID', { detail: 'the body is not JSON', violations, cause })
  }
}

/**
 * Returns a JSON value unless a string or name in it cannot be stored: U+0000, which PostgreSQL text cannot hold, or half of a surrogate
 * pair, which UTF-8 cannot tell from another. Throws PawlError REQUEST_INVALID that names the member.
 */
export function refuseUnstorable(json: unknown): unknown {
  const fieldName = findUnstorable(json, '')
  if (fieldName === undefined) return json
  const violations = [{ fieldName, hint: 'must be Unicode text without U+0000' }]
  throw new PawlError('REQUEST_INVALID', { detail: 'a string cannot be stored', violations })
}

function findUnstorable(value: unknown, path: string): string | undefined {
  if (typeof value === 'string') return isStorable(value) ? undefined : path || 'body'
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, member] of Object.entries(value)) {
    if (!isStorable(name)) return path || 'body'
    const found = findUnstorable(member, path ? `${path}.${name}` : name)
    if (found !== undefined) return found
  }
  return undefined
}

const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

function isDeeperThan(text: string, depthMax: number): boolean {
  let depth = 0
  let isInString = false
  for (let i = 0; i < text.length; i += 1) {
    const character = text[i]
    if (isInString) {
      if (character === '\\') i += 1
      else if (character === '"') isInString = false
    } else if (character === '"') isInString = true
    else if (character === '{' || character === '[') depth += 1
    else if (character === '}' || character === ']') depth -= 1
    if (depth > depthMax) return true
  }
  return false
}

const DEPTH_MAX = 64
