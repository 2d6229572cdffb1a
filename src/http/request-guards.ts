// Guards every request and answer of every API, whether its path is known or not.
import type { FastifyInstance } from 'fastify'
import { PawlError } from '../lib/errors.ts'

/** Headers of every answer; an endpoint whose answer may be kept says so itself. */
export const ANSWER_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const

/** Forbids caches and guessed types, and refuses requests with more than one `Host` (RFC 9112 §3.2). For the server as a whole. */
export function guardRequests(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    void reply.headers(ANSWER_HEADERS)
    done(hasSecondHost(request.raw.rawHeaders) ? SECOND_HOST : undefined)
  })
}

/** Names stand at the even places. Node keeps the first value only; a proxy before it may have gone by the second. */
function hasSecondHost(rawHeaders: readonly string[]): boolean {
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  return hosts > 1
}

const SECOND_HOST = new PawlError('REQUEST_INVALID', {
  detail: 'more than one header Host',
  violations: [{ fieldName: 'request', hint: 'must have one header Host' }],
})
