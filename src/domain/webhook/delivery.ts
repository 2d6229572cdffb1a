// Delivers the outbox: at least once, in order for each object, by any process, with retries over a day (cloud §9).
import type { KeyObject } from 'node:crypto'
import { importHmacKey } from '../../crypto/hmac.ts'
import { toBase64 } from '../../lib/base64.ts'
import { utf8 } from '../../lib/bytes.ts'
import type { Events } from '../../lib/events.ts'
import { OutboundError, sendOutbound } from '../../lib/outbound.ts'
import {
  claimDeliveries,
  type ClaimedDelivery,
  claimProbe,
  type Lease,
  listDueWebhooks,
  storeDelivered,
  storeFailures,
} from '../../storage/webhook-deliveries.ts'
import { findWebhook, storeWebhookFailure, storeWebhookSuccess, type WebhookRow } from '../../storage/webhooks.ts'
import { places } from '../secrets/secrets.ts'
import { chooseTexts, fillText, type OperationParameters } from '../template/template.ts'
import type { ReadTemplateTexts } from '../template/texts.ts'
import { openBasic, type WebhookParts } from './webhook.ts'
import { composeBody, type OperationTexts, signMessage, type Snapshot, TEXT_ATTRIBUTES } from './message.ts'
import { ATTEMPTS_MAX, parseRetryAfter, probeMilliseconds, retryMilliseconds } from './schedule.ts'

export interface DeliveryParts extends WebhookParts {
  readonly events: Events
  readonly templateTexts: ReadTemplateTexts
  readonly settings: WebhookParts['settings'] & { readonly webhookRetryBaseSeconds: number }
}

/** Tries everything that is due, all webhooks side by side, until nothing is; returns how many attempts that were. */
export async function deliverDue(parts: DeliveryParts): Promise<number> {
  for (let tried = 0; ; ) {
    const webhooks = await listDueWebhooks(parts.db, new Date(parts.platform.now()))
    const counts = await Promise.all(webhooks.map((webhookId) => deliverBatch(parts, webhookId)))
    const sum = counts.reduce((total, count) => total + count, 0)
    if (sum === 0) return tried
    tried += sum
  }
}

/** Tries what is due for one webhook, at most 16 deliveries side by side; returns how many attempts that were. */
export async function deliverBatch(parts: DeliveryParts, webhookId: string): Promise<number> {
  const { db, platform, settings } = parts
  const now = platform.now()
  const lease = { leaseId: platform.uuid(), at: new Date(now), until: new Date(now + LEASE_MS) }
  const due = await claimDeliveries(db, webhookId, lease, BATCH_ROWS)
  const probeMs = probeMilliseconds(settings.webhookRetryBaseSeconds)
  const claimed = due.length > 0 ? due : await claimProbe(db, webhookId, lease, new Date(now + probeMs))
  const webhook = claimed.length > 0 ? await findWebhook(db, webhookId) : undefined
  if (webhook === undefined) return 0
  const outcomes = await Promise.all(claimed.map((delivery) => deliverOne(parts, webhook, delivery, lease.leaseId)))
  const failed = outcomes.filter((outcome) => outcome !== undefined)
  const delivered = claimed.length - failed.length
  if (failed.length > 0) await recordFailures(parts, webhookId, lease, failed)
  if (delivered > 0) {
    parts.events.webhookDelivered({ webhookId, count: delivered })
    const at = platform.now()
    await storeWebhookSuccess(db, webhookId, { delivered, at: new Date(at), failingSince: new Date(at - probeMs) })
  }
  return claimed.length
}

interface Failed {
  readonly delivery: ClaimedDelivery
  readonly failure: Failure
}

/** One attempt. A message that was received is stored as delivered at once: a process that ends before that sends it a second time. */
async function deliverOne(
  parts: DeliveryParts,
  webhook: WebhookRow,
  delivery: ClaimedDelivery,
  leaseId: string,
): Promise<Failed | undefined> {
  const failure = await attempt(parts, webhook, delivery)
  if (failure !== undefined) return { delivery, failure }
  await storeDelivered(parts.db, delivery.sequence, leaseId, new Date(parts.platform.now()))
  return undefined
}

interface Failure {
  readonly reason: string
  readonly isGone?: boolean
  /** The receiver's own wish. */
  readonly waitMs?: number | undefined
}

/** Sends the message; undefined when it was received. */
async function attempt(parts: DeliveryParts, webhook: WebhookRow, delivery: ClaimedDelivery): Promise<Failure | undefined> {
  const { platform, settings } = parts
  if (webhook.url.startsWith('http:') && !settings.webhookAllowHttp) return { reason: 'http is not allowed' }
  try {
    const { status, headers } = await sendOutbound({
      url: webhook.url,
      method: 'POST',
      ...(await composeMessage(parts, webhook, delivery)),
      timeoutMs: TIMEOUT_MS,
      answerBytesMax: ANSWER_BYTES_MAX,
      arePrivateAllowed: settings.webhookAllowPrivateAddresses,
    })
    if (status >= 200 && status < 300) return undefined
    const waitMs = parseRetryAfter(headers['retry-after'], platform.now())
    return { reason: `HTTP ${status}`, isGone: status === 410, waitMs }
  } catch (error) {
    if (error instanceof OutboundError) return { reason: describe(error) }
    // A secret that does not open concerns this webhook alone: it waits like any that fails, and the others go on.
    parts.events.webhookUnusable({ webhookId: webhook.webhookId, err: error })
    return { reason: 'the message could not be made, see the log' }
  }
}

async function composeMessage(
  parts: DeliveryParts,
  webhook: WebhookRow,
  { deliveryId, objectId, payload }: ClaimedDelivery,
): Promise<{ body: string; headers: Record<string, string> }> {
  const snapshot = JSON.parse(payload) as Snapshot
  const { attributes } = webhook
  const needsTexts = webhook.kind === 'OPERATION' && TEXT_ATTRIBUTES.some((name) => attributes.includes(name))
  const texts = needsTexts ? await readTexts(parts, snapshot) : undefined
  const body = composeBody({ kind: webhook.kind, objectId, attributes }, snapshot, texts)
  const timestamp = Math.floor(parts.platform.now() / 1000)
  const basic = openBasic(parts, webhook)
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

/** The keys that sign now: the current one, and during a rotation the one before. */
function openSecrets({ recordKeys, platform }: DeliveryParts, webhook: WebhookRow): readonly KeyObject[] {
  const { webhookId, secret, previousSecret, previousSecretExpiresAt } = webhook
  const importKey = (bytes: Uint8Array) => ({ key: importHmacKey(bytes) })
  const { key } = recordKeys.openCached(places.webhookSecret(webhookId), secret, importKey)
  if (previousSecret === null || (previousSecretExpiresAt?.getTime() ?? 0) <= platform.now()) return [key]
  return [key, recordKeys.openCached(places.webhookPreviousSecret(webhookId), previousSecret, importKey).key]
}

async function recordFailures(parts: DeliveryParts, webhookId: string, lease: Lease, failed: readonly Failed[]): Promise<void> {
  const { db, events, platform, settings } = parts
  const at = new Date(platform.now())
  const waitMs = Math.max(...failed.map(({ failure }) => failure.waitMs ?? 0))
  const gone = failed.find(({ failure }) => failure.isGone)?.failure.reason ?? null
  // The webhook comes first: if the process ends in between, its next success still finds that it had failed, and catches up.
  await storeWebhookFailure(db, webhookId, {
    failed: failed.length,
    at,
    probeAt: new Date(at.getTime() + Math.max(waitMs, probeMilliseconds(settings.webhookRetryBaseSeconds))),
    pausedUntil: waitMs > 0 ? new Date(at.getTime() + waitMs) : null,
    disabledReason: gone,
  })
  const scheduled = failed.map((one) => ({ ...one.delivery, ...schedule(parts, one, lease, at) }))
  await storeFailures(db, lease.leaseId, scheduled, at)
  events.webhookAttemptsFailed({ webhookId, failed: failed.length, reason: failed[0]?.failure.reason ?? '' })
  for (const { deliveryId, nextAttemptAt, reason } of scheduled) {
    if (nextAttemptAt === null) events.webhookDeliveryDead({ webhookId, deliveryId, reason })
  }
  if (gone !== null) events.webhookDisabled({ webhookId, reason: gone })
}

/** When a delivery is tried again; null for never. */
function schedule(
  { platform, settings }: DeliveryParts,
  { delivery, failure: { reason, waitMs = 0 } }: Failed,
  lease: Lease,
  at: Date,
): { attempts: number; nextAttemptAt: Date | null; reason: string } {
  // An attempt ahead of its schedule, because the receiver may be back, costs the delivery nothing.
  if (lease.at < delivery.scheduledAt) return { attempts: delivery.attempts, nextAttemptAt: delivery.scheduledAt, reason }
  const attempts = delivery.attempts + 1
  if (attempts >= ATTEMPTS_MAX) return { attempts, nextAttemptAt: null, reason }
  const retryMs = Math.max(waitMs, retryMilliseconds(attempts, settings.webhookRetryBaseSeconds, platform))
  return { attempts, nextAttemptAt: new Date(at.getTime() + retryMs), reason }
}

async function readTexts({ templateTexts }: DeliveryParts, snapshot: Snapshot): Promise<OperationTexts | undefined> {
  const revisionId = String(snapshot['templateRevisionId'])
  const stored = (await templateTexts([revisionId])).get(revisionId)
  if (stored === undefined) return undefined
  const { texts } = chooseTexts(stored, [String(snapshot['language'])])
  const parameters = JSON.parse(String(snapshot['parameters'])) as OperationParameters
  const fill = (text: string): string => fillText(text, parameters).text
  return { title: fill(texts.title), message: fill(texts.message), summary: texts.summary && fill(texts.summary) }
}

/** The host and what the system said, without path and query, which may hold a secret of the receiver. */
function describe({ message, cause }: OutboundError): string {
  const code = typeof cause === 'object' && cause !== null && 'code' in cause ? String(cause.code) : undefined
  if (code === 'ABORT_ERR') return `${message} within ${TIMEOUT_MS / 1000} s`
  return code === undefined ? message : `${message} (${code})`
}

const TIMEOUT_MS = 10_000
const ANSWER_BYTES_MAX = 4_096
// Three times what an attempt may take: a process that holds a delivery longer has ended.
const LEASE_MS = 30_000
const BATCH_ROWS = 16
