// Limits the length of bodies. The body of a stranger has at most 16 KiB, whatever its content type. The `bodyLimit` of a route allows more
// where its hook onRequest has refused strangers before the body is read, or where a code or an envelope covers the body
// (docs/decisions/0001-work-for-strangers.md).
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { PawlError } from '../lib/errors.ts'

/** The longest body of which nothing is proved. The longest that needs as much is an upgrade with the keys of ML-KEM-1024 and ML-DSA-87. */
export const STRANGERS_BYTES_MAX = 16 * 1024
/** The longest body of a route that has found out who calls before it reads it. */
export const CALLERS_BYTES_MAX = 256 * 1024

/**
 * Refuses a body that says that it is too long before any of it is read, and one that comes in too many pieces. An answer that comes before
 * the end of its request ends the connection, unless what is left is known to be short. For the server as a whole.
 */
export function boundBodies(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { headers } = request.raw
    if (headers['transfer-encoding'] !== undefined) boundPieces(app.server, request.raw, reply.raw)
    else if (lengthOf(headers) > STRANGERS_BYTES_MAX && lengthOf(headers) > request.routeOptions.bodyLimit)
      // A path is unknown whatever the body is.
      return done(request.is404 ? new PawlError('PATH_UNKNOWN') : tooLong(request.routeOptions.bodyLimit))
    done()
  })
  app.addHook('onSend', ({ raw }, reply, _payload, done) => {
    if (!raw.complete && lengthOf(raw.headers) > CALLERS_BYTES_MAX) {
      void reply.header('connection', 'close')
      // Node would read on until the other side has closed as well.
      reply.raw.once('finish', () => raw.socket.destroy())
    }
    done()
  })
  // Node would answer an unknown expectation by itself and read the body to its end, however long that is. It need not be met (RFC 9110
  // §10.1.1).
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
}

/** What the headers say of the length of the body; a body in chunks may have any. */
const lengthOf = (headers: IncomingMessage['headers']): number =>
  headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Number.POSITIVE_INFINITY

const tooLong = (bytesMax: number): PawlError =>
  new PawlError('REQUEST_INVALID', {
    detail: 'the body is too long',
    violations: [{ fieldName: 'body', hint: `must have at most ${bytesMax} bytes` }],
  })

/**
 * Node hands over each chunk of a body by itself, and one of a byte costs as much as one of 64 KiB. A number that no client reaches ends the
 * connection, with an answer if there was none.
 */
function boundPieces(server: Server, raw: IncomingMessage, answer: ServerResponse): void {
  const push = raw.push.bind(raw)
  let pieces = 0
  raw.push = (piece: unknown): boolean => {
    if (piece !== null) pieces += 1
    if (pieces <= PIECES_MAX) return push(piece)
    if (pieces === PIECES_MAX + 1) {
      if (!answer.headersSent) server.emit('clientError', Object.assign(new Error(), { code: TOO_MANY_PIECES }), raw.socket)
      raw.socket.destroySoon()
    }
    // Node reads no further.
    return false
  }
}

/** The code of the error by which the server refuses such a body. */
export const TOO_MANY_PIECES = 'PAWL_TOO_MANY_PIECES'
// 256 KiB in the smallest segments of TCP are 490.
const PIECES_MAX = 512
