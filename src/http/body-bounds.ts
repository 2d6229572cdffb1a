// Limits the length of bodies. The body of a stranger has at most 16 KiB, with any content type. The `bodyLimit` of a route allows more where its
// hook onRequest has refused strangers before the body is read, or where a code or an envelope covers the body
// (docs/decisions/0001-work-for-strangers.md).
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { PawlError, requestRefused } from '../lib/errors.ts'

/**
 * The longest body of a sender who has proved nothing. The longest such body of a client is an upgrade with the keys of ML-KEM-1024 and
 * ML-DSA-87.
 */
export const STRANGERS_BYTES_MAX = 16 * 1024
/** The longest body of a route that identifies the caller before it reads the body. */
export const CALLERS_BYTES_MAX = 256 * 1024

/**
 * Refuses a body whose declared length is too long, before it is read, and a body in too many chunks. An answer before the end of its request
 * ends the connection, unless the rest is known to be short. It applies to the whole server.
 */
export function boundBodies(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { headers } = request.raw
    if (headers['transfer-encoding'] !== undefined) boundPieces(app.server, request.raw, reply.raw)
    else if (lengthOf(headers) > STRANGERS_BYTES_MAX && lengthOf(headers) > request.routeOptions.bodyLimit)
      // An unknown path is answered 404 for every body.
      return done(request.is404 ? new PawlError('PATH_UNKNOWN') : tooLong(request.routeOptions.bodyLimit))
    done()
  })
  app.addHook('onSend', ({ raw }, reply, _payload, done) => {
    if (!raw.complete && lengthOf(raw.headers) > CALLERS_BYTES_MAX) {
      void reply.header('connection', 'close')
      // Node would go on reading until the other side closes, too.
      reply.raw.once('finish', () => raw.socket.destroy())
    }
    done()
  })
  // Node would answer an unknown expectation by itself and read the body to its end, however long that is. It need not be met (RFC 9110
  // §10.1.1).
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
}

/** The length of the body by the headers; a body in chunks may have any. */
const lengthOf = (headers: IncomingMessage['headers']): number =>
  headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Number.POSITIVE_INFINITY

const tooLong = (bytesMax: number): PawlError => requestRefused('body', `must have at most ${bytesMax} bytes`)

/**
 * Limits the chunks of a body. Node passes on each chunk by itself, and a chunk of one byte costs as much as one of 64 KiB. Beyond a number
 * that no client reaches, the connection is ended, with an answer if there was none.
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
    // Node then reads no further.
    return false
  }
}

export const TOO_MANY_PIECES = 'PAWL_TOO_MANY_PIECES'
// 256 KiB in the smallest segments of TCP are 490 chunks.
const PIECES_MAX = 512
