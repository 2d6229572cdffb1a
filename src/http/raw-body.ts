// Keeps bodies as bytes, because codes cover them exactly as they came. Each endpoint decides whether and when to parse.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { asBuffer, fromUtf8 } from '../lib/bytes.ts'
import { PawlError } from '../lib/errors.ts'
import { isJsonObject, isStorable } from '../lib/json.ts'

/** Hands every body to the handler as a Buffer, with any content type. A request without a body has undefined. */
export function keepRawBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
}

/** Hides content types from Fastify, which refuses malformed ones. Returns a function that gives the content type of a request. */
export function hideContentTypes(app: FastifyInstance): (request: FastifyRequest) => string | undefined {
  const hidden = Symbol('content type')
  app.decorateRequest(hidden, undefined)
  app.addHook('onRequest', (request, _reply, done) => {
    const { headers } = request.raw
    if (headers['content-type'] !== undefined) {
      request.setDecorator(hidden, headers['content-type'])
      // The member is set to undefined: if it were deleted, V8 would look up every other header more slowly.
      headers['content-type'] = undefined
    }
    done()
  })
  return (request) => request.getDecorator<string | undefined>(hidden)
}

/** Accepts JSON bodies only; an empty one counts as none. */
export function keepJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    try {
      const bytes = body as Buffer
      done(null, bytes.length === 0 ? undefined : refuseUnstorable(parseJson(bytes), bytes))
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
    // The parser would skip a byte order mark, but the parsed bytes must be those that a code covers.
    if (text.startsWith('\uFEFF')) throw new SyntaxError('a byte order mark')
    // The parser accepts any depth, but code that walks the value later does not.
    if (isDeeperThan(bytes, DEPTH_MAX)) throw new SyntaxError('nested too deeply')
    const value: unknown = JSON.parse(text)
    if (MAY_NAME_PROTOTYPE.test(text) && namesPrototype(value)) throw new SyntaxError('a name of a prototype')
    return value
  } catch (cause) {
    const hint =
      'must be JSON in UTF-8 of at most 64 levels, without byte order mark and without a member __proto__ or constructor.prototype'
    const violations = [{ fieldName: 'body', hint }]
    throw new PawlError('REQUEST_INVALID', { detail: 'the body is not JSON', violations, cause })
  }
}

/** One of the names of a prototype, or an escape with which a name may be written. */
const MAY_NAME_PROTOTYPE = /__proto__|constructor|\\u00/

/** Whether an object in a JSON value has a member that code which copies members would use as a prototype. */
function namesPrototype(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { constructor } = value as { readonly constructor: unknown }
  if (Object.hasOwn(value, '__proto__')) return true
  if (Object.hasOwn(value, 'constructor') && isJsonObject(constructor) && Object.hasOwn(constructor, 'prototype')) return true
  return Object.values(value).some(namesPrototype)
}

/**
 * Returns a JSON value, unless a string or name in it cannot be stored: U+0000, which a text in PostgreSQL cannot contain, or half of a surrogate
 * pair, which UTF-8 cannot encode. Throws PawlError REQUEST_INVALID that names the member. `bytes` are those that the whole value was parsed from;
 * with them, most values need not be walked.
 */
export function refuseUnstorable<T>(json: T, bytes?: Uint8Array): T {
  // JSON in UTF-8 can contain either only as an escape. Without an escape there is no need to walk the value.
  if (bytes !== undefined && !UNSTORABLE_ESCAPE.test(latin1(bytes))) return json
  const path = findUnstorable(json)
  if (path === undefined) return json
  const violations = [{ fieldName: path.join('.') || 'body', hint: 'must be Unicode text without U+0000' }]
  throw new PawlError('REQUEST_INVALID', { detail: 'a string cannot be stored', violations })
}

/** The path to the first value that cannot be stored, or to the object with a name that cannot be stored. */
function findUnstorable(value: unknown): string[] | undefined {
  if (typeof value === 'string') return isStorable(value) ? undefined : []
  if (typeof value !== 'object' || value === null) return undefined
  if (Array.isArray(value)) return findInList(value)
  for (const [name, member] of Object.entries(value)) {
    const path = isStorable(name) ? findUnstorable(member) : []
    if (path !== undefined) return isStorable(name) ? [name, ...path] : []
  }
  return undefined
}

function findInList(list: readonly unknown[]): string[] | undefined {
  for (let i = 0; i < list.length; i += 1) {
    const path = findUnstorable(list[i])
    if (path !== undefined) return [String(i), ...path]
  }
  return undefined
}

/** One character for each byte: only ASCII is searched, so nothing has to be decoded. */
const latin1 = (bytes: Uint8Array): string => asBuffer(bytes).toString('latin1')

/** U+0000 or a surrogate. A match may be a whole pair, or the text of an escape behind an escaped backslash. */
const UNSTORABLE_ESCAPE = /\\u(?:0000|d[89a-f])/i

/**
 * Whether brackets outside of strings are nested deeper than `depthMax`. Bytes are enough, because in UTF-8 no other character contains one of
 * these bytes.
 */
function isDeeperThan(bytes: Uint8Array, depthMax: number): boolean {
  let depth = 0
  for (let i = 0; i < bytes.length && depth <= depthMax; i += 1) {
    const byte = bytes[i]
    if (byte === QUOTE) i = endOfString(bytes, i + 1)
    else if (byte === OPENING_BRACE || byte === OPENING_BRACKET) depth += 1
    else if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) depth -= 1
  }
  return depth > depthMax
}

/** The index of the quote that ends a string. */
function endOfString(bytes: Uint8Array, start: number): number {
  let i = start
  while (i < bytes.length && bytes[i] !== QUOTE) i += bytes[i] === BACKSLASH ? 2 : 1
  return i
}

const QUOTE = 0x22
const OPENING_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSING_BRACKET = 0x5d
const OPENING_BRACE = 0x7b
const CLOSING_BRACE = 0x7d
const DEPTH_MAX = 64
