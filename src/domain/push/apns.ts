// Sends pushes to iPhones: HTTP/2 to Apple, with a token that pawl signs (mobile-token §7.1).
import { importPKCS8 } from 'jose/key/import'
import { SignJWT } from 'jose/jwt/sign'
import { StartError } from '../../lib/errors.ts'
import { createHttp2Client, type Http2Answer } from './http2-client.ts'
import { JsonFault, parseForeignObject } from '../../lib/json.ts'
import type { Platform } from '../../lib/platform.ts'
import type { PushMessage, PushMessageType } from './message.ts'
import { PUSH_TIMEOUT_MS, type PushAddress, type PushOutcome, type PushSender } from './sender.ts'

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

/** Throws StartError when the key is none of P-256. */
export async function createApnsSender(settings: ApnsSettings, platform: Pick<Platform, 'now' | 'uuid'>): Promise<PushSender> {
  const { topic, isLocalized } = settings
  const bearer = await createBearer(settings, platform)
  const clients = {
    production: createHttp2Client(new URL(settings.url).origin, PUSH_TIMEOUT_MS),
    development: createHttp2Client(new URL(settings.developmentUrl).origin, PUSH_TIMEOUT_MS),
  }

  const send = async (message: PushMessage, { token, environment }: PushAddress): Promise<PushOutcome> => {
    // The phone may have registered any text. Apple could end the connection for its path, and that would end it for all pushes.
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
    // A token that no phone has: Apple looks at the credentials first.
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

/** Whoever finds the phone reads these: nothing of the operation is in them. */
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
  // Too many pushes to one phone, or too many new tokens of pawl's own, which concern all phones.
  if (status === 429) return { ...failure, isOfOne: said !== 'TooManyProviderTokenUpdates' }
  const isOfOne = (status === 400 || status === 413) && !OF_ALL.has(said ?? '')
  return { ...failure, ...(isOfOne && { isOfOne, isFinal: true }) }
}

/** Refusals with status 400 that every push would get: what is configured is wrong. */
const OF_ALL: ReadonlySet<string> = new Set(['', 'BadTopic', 'MissingTopic', 'TopicDisallowed'])

/** What Apple says, if it looks like a word of Apple. */
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

/** The token that Apple is shown: the same for all pushes, a new one every 40 minutes. */
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
    /** Apple refuses who makes more than one in 20 minutes. */
    forget: () => {
      if (shown !== undefined && Math.abs(now() - shown.at) >= RENEWED_AT_LEAST_MS) shown = undefined
    },
  }
}

/** 32 bytes today; Apple reserves the right to more. */
const DEVICE_TOKEN = /^[0-9A-Fa-f]{1,1024}$/
const RENEWED_MS = 40 * 60_000
const RENEWED_AT_LEAST_MS = 20 * 60_000
const COLLAPSE_ID_MAX = 64
