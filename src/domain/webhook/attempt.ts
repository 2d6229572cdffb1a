// Makes one attempt to deliver a message of a webhook: composes it, signs it, and sends it to a checked address (cloud §9).
import type { KeyObject } from 'node:crypto'
import { importHmacKey } from '../../crypto/hash.ts'
import { toBase64 } from '../../lib/base64.ts'
import { utf8 } from '../../lib/bytes.ts'
import { JsonFault, parseForeignObject } from '../../lib/json.ts'
import { OutboundError, sendOutbound } from '../../lib/outbound.ts'
import { readParameters } from '../../storage/operation/operations.ts'
import type { WebhookRow } from '../../storage/webhook/webhooks.ts'
import { places } from '../secrets/secrets.ts'
import { chooseTexts, fillText } from '../template/template.ts'
import { composeBody, type OperationTexts, signMessage, type Snapshot, TEXT_ATTRIBUTES } from './message.ts'
import type { Patience } from './patience.ts'
import { parseRetryAfter } from './schedule.ts'
import { openBasicFor } from './basic.ts'
import { type DeliveryParts, readWebhook } from './webhook.ts'

interface Message {
  readonly deliveryId: string
  /** The id of the operation or activation. */
  readonly objectId: string
  /** JSON of a snapshot. */
  readonly payload: string
  /** The texts of the operation on the phone. When absent, they are read from the template. */
  readonly texts?: OperationTexts
}

/** A failed delivery. */
export interface Failure {
  readonly reason: string
  /** The status of the receiver's answer; undefined without an answer. */
  readonly status?: number
  readonly isGone?: boolean
  /** Milliseconds of the receiver's `Retry-After`. */
  readonly waitMs?: number | undefined
  /** Whether the failure concerns only this message, not the receiver. */
  readonly isOfOne?: boolean
}

/** Sends a message and waits for the answer for at most 10 s. Throws nothing: errors are returned as a failure. */
export async function attempt(
  parts: DeliveryParts,
  webhook: WebhookRow,
  message: Message,
  wait: Patience['wait'] = (answer) => answer,
): Promise<Failure | { readonly received: number }> {
  const { platform, settings } = parts
  try {
    const composed = await composeMessage(parts, webhook, message)
    const answer = sendOutbound({
      url: webhook.url,
      method: 'POST',
      ...composed,
      timeoutMs: TIMEOUT_MS,
      answerBytesMax: ANSWER_BYTES_MAX,
      rules: settings,
    })
    const { status, headers } = await wait(answer)
    if (status >= 200 && status < 300) return { received: status }
    const waitMs = parseRetryAfter(headers['retry-after'], platform.now())
    return { reason: `HTTP ${status}`, status, isGone: status === 410, waitMs }
  } catch (error) {
    if (error instanceof OutboundError) return { reason: error.message }
    // A secret that does not open concerns only this webhook, and a payload that is no JSON only this message. The message is tried again like any
    // failed one, and others go on.
    parts.events.webhookUnusable({ webhookId: webhook.webhookId, err: error })
    return { reason: 'the message could not be made, see the log' }
  }
}

/** Parses a payload. Throws JsonFault for one that somebody altered so that it is no JSON object of texts and numbers. */
export function parseSnapshot(payload: string): Snapshot {
  const members = parseForeignObject(utf8(payload))
  if (Object.values(members).every((value) => typeof value === 'string' || typeof value === 'number')) return members as Snapshot
  throw new JsonFault('an object with a member that is neither text nor number')
}

/** Composes the body of a message with the attributes that its webhook asks for now. Throws SyntaxError for an altered attribute. */
export async function composeMessageBody(
  parts: Pick<DeliveryParts, 'templateTexts'>,
  { kind, attributes }: Pick<WebhookRow, 'kind' | 'attributes'>,
  { objectId, snapshot, texts: given }: Pick<Message, 'objectId' | 'texts'> & { readonly snapshot: Snapshot },
): Promise<string> {
  const needsTexts = kind === 'OPERATION' && TEXT_ATTRIBUTES.some((name) => attributes.includes(name))
  const texts = needsTexts ? (given ?? (await readTexts(parts, snapshot))) : undefined
  return composeBody({ kind, objectId, attributes }, snapshot, texts)
}

async function composeMessage(
  parts: DeliveryParts,
  webhook: WebhookRow,
  message: Message,
): Promise<{ body: string; headers: Record<string, string> }> {
  const { deliveryId, payload, ...content } = message
  const snapshot = parseSnapshot(payload)
  const body = await composeMessageBody(parts, webhook, { ...content, snapshot })
  const timestamp = Math.floor(parts.platform.now() / 1000)
  const basic = openBasicFor(parts.recordKeys, parts.installationKeys.webhookMac, webhook)
  return {
    body,
    headers: {
      'content-type': 'application/json',
      'user-agent': 'pawl',
      'webhook-id': deliveryId,
      'idempotency-key': deliveryId,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signMessage(openSecrets(parts, webhook), deliveryId, timestamp, body),
      ...(basic !== undefined && { authorization: `Basic ${toBase64(utf8(basic))}` }),
    },
  }
}

/** Returns the keys that sign now: the current one, and during a rotation also the previous one. */
function openSecrets({ recordKeys, platform }: DeliveryParts, webhook: WebhookRow): readonly KeyObject[] {
  const { webhookId, secret, previousSecret, previousSecretExpiresAt } = webhook
  const importKey = (bytes: Uint8Array) => ({ key: importHmacKey(bytes) })
  const { key } = recordKeys.openCached(places.webhookSecret(webhookId), secret, importKey)
  if (previousSecret === null || (previousSecretExpiresAt?.getTime() ?? 0) <= platform.now()) return [key]
  return [key, recordKeys.openCached(places.webhookPreviousSecret(webhookId), previousSecret, importKey).key]
}

async function readTexts(
  { templateTexts }: Pick<DeliveryParts, 'templateTexts'>,
  snapshot: Snapshot,
): Promise<OperationTexts | undefined> {
  const revisionId = String(snapshot['templateRevisionId'])
  const stored = (await templateTexts([revisionId])).get(revisionId)
  if (stored === undefined) return undefined
  const { texts } = chooseTexts(stored, [String(snapshot['language'])])
  const parameters = readParameters(String(snapshot['parameters']))
  const fill = (text: string): string => fillText(text, parameters).text
  return { title: fill(texts.title), message: fill(texts.message), summary: texts.summary && fill(texts.summary) }
}

const TIMEOUT_MS = 10_000
const ANSWER_BYTES_MAX = 4_096

/** The result of a trial. */
interface Trial {
  /** The webhook-id of the message. */
  readonly id: string
  readonly isDelivered: boolean
  /** The status of the receiver's answer; absent without an answer. */
  readonly status?: number
  /** The reason of a failure. */
  readonly error?: string
  readonly durationMs: number
}

/**
 * Sends a message with the event `test` to a webhook, which may be disabled. Checks of the address, signature, credentials and time-out are those
 * of every delivery. Nothing is queued, and the counts of the webhook stay. The message names an object that does not exist, and its attributes are
 * examples. Throws ADMINISTRATION_REFUSED when the webhook does not exist.
 */
export async function tryWebhook(parts: DeliveryParts, webhookId: string): Promise<Trial> {
  const { platform } = parts
  const webhook = await readWebhook(parts, webhookId)
  const id = platform.uuid()
  const startedAt = platform.monotonic()
  const outcome = await attempt(parts, webhook, {
    deliveryId: id,
    objectId: platform.uuid(),
    payload: JSON.stringify(exampleOf(webhook, platform.now())),
    texts: { title: 'Test', message: 'A test of this webhook', summary: undefined },
  })
  const durationMs = Math.round(platform.monotonic() - startedAt)
  if ('received' in outcome) return { id, isDelivered: true, status: outcome.received, durationMs }
  const { reason, status } = outcome
  return { id, isDelivered: false, ...(status !== undefined && { status }), error: reason, durationMs }
}

/** Example members for both kinds; a message has those that its webhook asks for. The status is one in which nothing is decided yet. */
const exampleOf = ({ applicationId, kind }: WebhookRow, now: number): Snapshot => ({
  event: 'test',
  userId: 'test',
  applicationId,
  status: kind === 'OPERATION' ? 'PENDING' : 'CREATED',
  operationType: 'test',
  parameters: '{}',
  data: 'A2',
  failureCount: 0,
  maxFailureCount: 5,
  signatureTypes: 'possession_knowledge',
  timestampCreated: now,
  timestampExpires: now + 300_000,
  template: 'test',
  language: 'en',
  activationName: 'Test',
  platform: 'unknown',
  deviceInfo: 'unknown',
})
