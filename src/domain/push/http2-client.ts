// One HTTP/2 connection to a server that the operator configured. It stays open while it is used, and is opened again when it is lost.
import type { ClientHttp2Session, IncomingHttpHeaders } from 'node:http2'
import { describeConnectionFailure, OutboundError } from '../../lib/outbound.ts'

interface Http2Request {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Http2Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Cut at 4 KiB. */
  readonly body: Buffer
}

interface Http2Client {
  /** Sends a POST. Throws OutboundError without an answer in time; its message names the server and no path. */
  readonly post: (request: Http2Request) => Promise<Http2Answer>
  readonly close: () => void
}

/** A client of `origin`, `https:` or, without TLS, `http:`. `timeoutMs`: from the request to the last byte of its answer, a connection included. */
export function createHttp2Client(origin: string, timeoutMs: number): Http2Client {
  let open: ClientHttp2Session | undefined

  const connect = (): ClientHttp2Session => {
    // Loaded at the first push, because few processes send any.
    const session = process.getBuiltinModule('node:http2').connect(origin)
    const forget = (): void => {
      if (open === session) open = undefined
    }
    // Requests that are under way fail by the errors of their own streams.
    session.setMaxListeners(0)
    session.on('error', forget)
    session.on('close', forget)
    session.on('goaway', forget)
    // A firewall may forget a silent connection, and tells neither side.
    session.setTimeout(IDLE_MS, () => session.close())
    return session
  }

  const post = async ({ path, headers, body }: Http2Request): Promise<Http2Answer> => {
    if (open === undefined || open.closed || open.destroyed) open = connect()
    const session = open
    let timer: NodeJS.Timeout | undefined
    try {
      return await new Promise<Http2Answer>((resolve, reject) => {
        timer = setTimeout(() => {
          const late = new OutboundError(
            `${origin} did not answer within ${timeoutMs / 1000} s: it has too much to do, or is not reached`,
          )
          reject(late)
          // Whoever hangs for one request hangs for the next one as well: that gets a new connection. Requests that wait beside this one fail with
          // it, also those whose answer has begun to come.
          session.destroy(late)
        }, timeoutMs)
        send(session, { path, headers, body }, { resolve, reject, origin })
      })
    } catch (error) {
      if (error instanceof OutboundError) throw error
      // A stream that has no connection names why in its cause.
      const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
      throw new OutboundError(`${origin} ${describeConnectionFailure(cause)}`, { cause })
    } finally {
      clearTimeout(timer)
    }
  }

  return { post, close: () => open?.destroy() }
}

function send(
  session: ClientHttp2Session,
  { path, headers, body }: Http2Request,
  { resolve, reject, origin }: { resolve: (answer: Http2Answer) => void; reject: (error: unknown) => void; origin: string },
): void {
  // A session that ends between two turns of the event loop throws here.
  const stream = session.request({ ':method': 'POST', ':path': path, ...headers })
  const chunks: Buffer[] = []
  let length = 0
  let answered: (IncomingHttpHeaders & { ':status'?: number | undefined }) | undefined
  stream.on('response', (incoming) => {
    answered = incoming
  })
  stream.on('data', (chunk: Buffer) => {
    length += chunk.length
    if (length <= ANSWER_BYTES_MAX) chunks.push(chunk)
    else stream.close()
  })
  // A connection that cannot be opened is told by the session; its streams only know that they were cancelled.
  session.once('error', reject)
  stream.on('error', reject)
  stream.on('close', () => {
    session.off('error', reject)
    const status = answered?.[':status']
    // An answer that was cut may lack what its status is judged by. Only rstCode tells it from a whole one.
    if (answered === undefined || status === undefined || stream.rstCode !== NO_ERROR)
      reject(new OutboundError(`${origin} closed the connection without a whole answer: its log may say why`))
    else resolve({ status, headers: answered, body: Buffer.concat(chunks) })
  })
  stream.end(body)
}

const IDLE_MS = 60_000
const ANSWER_BYTES_MAX = 4_096
/** RFC 9113 §7. */
const NO_ERROR = 0
