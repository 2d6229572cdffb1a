// Sends pushes to iPhones: HTTP/2 to Apple, with a token that pawl signs (mobile-token §7.1).
import type { ClientHttp2Session, IncomingHttpHeaders } from 'node:http2'
import { importPKCS8 } from 'jose/key/import'
import { SignJWT } from 'jose/jwt/sign'
import { StartError } from '../../lib/errors.ts'
import { JsonFault, parseForeignObject } from '../../lib/json.ts'
import type { Platform } from '../../lib/platform.ts'
import {
  PUSH_TIMEOUT_MS,
  type PushAddress,
  type PushMessage,
  type PushMessageType,
  type PushOutcome,
  type PushSender,
} from './push.ts'
import { describeConnectionFailure, OutboundError } from '../../lib/outbound.ts'

interface ApnsSettings {
  /** PEM, PKCS #8. */
  readonly key: string
  readonly keyId: string
  readonly teamId: string
  readonly topic: string
  readonly url: string
  readonly developmentUrl: string
  readonly isLocalized: boolean
}

/** Creates the sender for Apple. Throws StartError when the key is not a private key on P-256. */
export async function createApnsSender(settings: ApnsSettings, platform: Pick<Platform, 'now' | 'uuid'>): Promise<PushSender> {
  const { topic, isLocalized } = settings
  const bearer = await createBearer(settings, platform)
  const clients = {
    production: createHttp2Client(new URL(settings.url).origin, PUSH_TIMEOUT_MS),
    development: createHttp2Client(new URL(settings.developmentUrl).origin, PUSH_TIMEOUT_MS),
  }

  const send = async (message: PushMessage, { token, environment }: PushAddress): Promise<PushOutcome> => {
    // A phone may have registered any text. A wrong path could make Apple end the connection, and that would stop all pushes.
    if (!DEVICE_TOKEN.test(token)) return { reason: 'a push token that Apple has none like', isOfOne: true, isGone: true }
    const answer = await clients[environment ?? 'production'].post({
      path: `/3/device/${token}`,
      headers: {
        authorization: `bearer ${await bearer.show()}`,
        'apns-id': message.deliveryId,
        'apns-topic': topic,
        'apns-push-type': 'alert',
        'apns-priority': '10',
        'apns-expiration': String(Math.floor(message.until / 1000)),
        ...(message.collapseId.length <= COLLAPSE_ID_MAX && { 'apns-collapse-id': message.collapseId }),
      },
      body: composeBody(message, isLocalized),
    })
    if (answer.status === 403) bearer.forget()
    return judge(answer)
  }

  return {
    url: settings.url,
    send,
    // This tries a token that no phone has: Apple checks the credentials first.
    findProblem: async () => {
      const data = { messageType: 'mtoken.operationInit' } as const
      const message = { deliveryId: platform.uuid(), collapseId: 'test', until: platform.now(), data }
      const outcome = await send(message, { token: '0'.repeat(64), environment: 'production' })
      return 'received' in outcome || outcome.isGone === true ? undefined : outcome.reason
    },
    close: () => {
      for (const client of Object.values(clients)) client.close()
    },
  }
}

const composeBody = ({ data }: PushMessage, isLocalized: boolean): string => {
  const { messageType } = data
  const alert = isLocalized ? { 'loc-key': messageType } : { body: TEXTS[messageType] }
  return JSON.stringify({ aps: { alert, sound: 'default', 'mutable-content': 1 }, ...data })
}

/** Anybody who finds the phone can read these texts, so they say nothing about the operation. */
const TEXTS: Readonly<Record<PushMessageType, string>> = {
  'mtoken.operationInit': 'There is something for you to approve.',
  'mtoken.operationFinished': 'A request is over.',
  'mtoken.inboxMessage.new': 'You have a new message.',
}

function judge({ status, headers, body }: Http2Answer): PushOutcome {
  if (status === 200) return { received: status }
  const { reason: said, timestamp } = readRefusal(body)
  const reason = said === undefined ? `HTTP ${status}` : `HTTP ${status} ${said}`
  const failure = { reason, status, retryAfter: headers['retry-after'] }
  if (status === 410 || said === 'BadDeviceToken')
    return { ...failure, isOfOne: true, isGone: true, ...(timestamp !== undefined && { goneSince: timestamp }) }
  // Either one phone got too many pushes, or pawl made too many new bearer tokens, which concerns all phones.
  if (status === 429) return { ...failure, isOfOne: said !== 'TooManyProviderTokenUpdates' }
  const isOfOne = (status === 400 || status === 413) && !OF_ALL.has(said ?? '')
  return { ...failure, ...(isOfOne && { isOfOne, isFinal: true }) }
}

/** Refusals with status 400 that every push would get, because the configuration is wrong. */
const OF_ALL: ReadonlySet<string> = new Set(['', 'BadTopic', 'MissingTopic', 'TopicDisallowed'])

/** Reads the reason in Apple's answer, if it looks like one. */
function readRefusal(body: Uint8Array): { reason?: string; timestamp?: number } {
  try {
    const { reason, timestamp } = parseForeignObject(body)
    return {
      ...(typeof reason === 'string' && /^[A-Za-z]{1,64}$/.test(reason) && { reason }),
      ...(typeof timestamp === 'number' && { timestamp }),
    }
  } catch (error) {
    if (error instanceof JsonFault) return {}
    throw error
  }
}

/** Creates the token that authenticates pawl at Apple. All pushes share one for 40 minutes. */
async function createBearer({ key, keyId, teamId }: ApnsSettings, { now }: Pick<Platform, 'now'>) {
  const signingKey = await importPKCS8(key, 'ES256').catch(() => {
    throw new StartError('PAWL_APNS_KEY: not a private key of P-256')
  })
  let shown: { readonly at: number; readonly token: Promise<string> } | undefined
  const show = (): Promise<string> => {
    const at = now()
    if (shown === undefined || Math.abs(at - shown.at) >= RENEWED_MS) {
      const jwt = new SignJWT()
        .setProtectedHeader({ alg: 'ES256', kid: keyId })
        .setIssuer(teamId)
        .setIssuedAt(Math.floor(at / 1000))
      shown = { at, token: jwt.sign(signingKey) }
    }
    return shown.token
  }
  return {
    show,
    /** Drops the token, unless it is younger than 20 minutes: Apple refuses clients that make more in that time. */
    forget: () => {
      if (shown !== undefined && Math.abs(now() - shown.at) >= RENEWED_AT_LEAST_MS) shown = undefined
    },
  }
}

interface Http2Request {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

interface Http2Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Cut at 4 KiB. */
  readonly body: Buffer
}

interface Http2Client {
  /** Sends a POST. Throws OutboundError when no answer comes in time. Its message names the server and no path. */
  readonly post: (request: Http2Request) => Promise<Http2Answer>
  readonly close: () => void
}

/**
 * Creates a client with one HTTP/2 connection to `origin`, `https:` or, without TLS, `http:`. The connection stays open while it is used, and is
 * opened again when it is lost. `timeoutMs` counts from the request to the last byte of its answer, and includes connecting.
 */
export function createHttp2Client(origin: string, timeoutMs: number): Http2Client {
  let open: ClientHttp2Session | undefined

  const connect = (): ClientHttp2Session => {
    // The module is loaded at the first push, because few processes send any.
    const session = process.getBuiltinModule('node:http2').connect(origin)
    const forget = (): void => {
      if (open === session) open = undefined
    }
    // Requests that are under way fail by the errors of their own streams. Each listens to the session, so the limit of listeners is off.
    session.setMaxListeners(0)
    session.on('error', forget)
    session.on('close', forget)
    session.on('goaway', forget)
    // A firewall may forget a silent connection without telling either side.
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
          // A server that hangs for one request also hangs for the next. So the next request gets a new connection. Other waiting requests fail
          // with this one, also those whose answer has begun.
          session.destroy(late)
        }, timeoutMs)
        sendRequest(session, { path, headers, body }, { resolve, reject, origin })
      })
    } catch (error) {
      if (error instanceof OutboundError) throw error
      // The error of a stream without a connection has the reason in its cause.
      const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
      throw new OutboundError(`${origin} ${describeConnectionFailure(cause)}`, { cause })
    } finally {
      clearTimeout(timer)
    }
  }

  return { post, close: () => open?.destroy() }
}

function sendRequest(
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
  // The session reports why a connection cannot be opened. Its streams report only that they were cancelled.
  session.once('error', reject)
  stream.on('error', reject)
  stream.on('close', () => {
    session.off('error', reject)
    const status = answered?.[':status']
    // A cut answer may lack the part that decides. Only rstCode shows that an answer was cut.
    if (answered === undefined || status === undefined || stream.rstCode !== NO_ERROR)
      reject(new OutboundError(`${origin} closed the connection without a whole answer: its log may say why`))
    else resolve({ status, headers: answered, body: Buffer.concat(chunks) })
  })
  stream.end(body)
}

/** A token has 32 bytes today. Apple reserves the right to more. */
const DEVICE_TOKEN = /^[0-9A-Fa-f]{1,1024}$/
const RENEWED_MS = 40 * 60_000
const RENEWED_AT_LEAST_MS = 20 * 60_000
const COLLAPSE_ID_MAX = 64
const IDLE_MS = 60_000
const ANSWER_BYTES_MAX = 4_096
/** The error code NO_ERROR (RFC 9113 §7). */
const NO_ERROR = 0
