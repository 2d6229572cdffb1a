// Bodies as bytes: codes cover them exactly as they came, and parsing is the endpoint's decision.
import type { FastifyInstance } from 'fastify'
import secureJsonParse from 'secure-json-parse'
import { fromUtf8 } from '../lib/bytes.ts'
import { PawlError } from '../lib/errors.ts'

/** Hands every body to the handler as a Buffer, whatever its content type; no body stays undefined. */
export function keepRawBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
}

/** Accepts JSON bodies only; an empty one counts as none. */
export function keepJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    try {
      done(null, body.length === 0 ? undefined : parseJson(body as Buffer))
    } catch (error) {
      done(error as Error)
    }
  })
}

/**
 * Parses JSON strictly: UTF-8 without byte order mark, no `__proto__` or `constructor.prototype`, no NUL in any string (PostgreSQL text
 * cannot hold it). Throws PawlError REQUEST_INVALID.
 */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    const text = fromUtf8(bytes)
    // The parser would skip it; what a code covers and what is parsed are to be the same bytes.
    if (text.startsWith('\uFEFF')) throw new SyntaxError('a byte order mark')
    const value: unknown = secureJsonParse.parse(text, undefined, { protoAction: 'error', constructorAction: 'error' })
    // Both spellings of NUL: the raw byte is refused by JSON itself.
    if (text.includes('\\u0000') && containsNul(value)) throw new SyntaxError('a string contains U+0000')
    return value
  } catch (cause) {
    throw new PawlError('REQUEST_INVALID', {
      detail: 'the body is not JSON',
      violations: [{ fieldName: 'body', hint: 'must be JSON in UTF-8 without U+0000' }],
      cause,
    })
  }
}

function containsNul(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0')
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([key, member]) => key.includes('\0') || containsNul(member))
}
