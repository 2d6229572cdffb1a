// Delivers the outbox: at least once, in order for each object, by any process, with retries over a day (cloud §9).
import type { KeyObject } from 'node:crypto'
import { importHmacKey } from '../crypto/hmac.ts'
import { toBase64 } from '../lib/base64.ts'
import { fromUtf8, utf8 } from '../lib/bytes.ts'
import type { Events } from '../lib/events.ts'
import { OutboundError, sendOutbound } from '../lib/outbound.ts'
import {
  claimDeliveries,
  type ClaimedDelivery,
  claimProbe,
  type Lease,
  listDueWebhooks,
  listPushRegistrations,
  storeDelivered,
  storeFailed,
} from '../storage/webhook-deliveries.ts'
import { findWebhook, storeWebhookFailure, storeWebhookSuccess, type WebhookRow } from '../storage/webhooks.ts'
import { places } from './secrets.ts'
import { openBasic, type WebhookParts } from './webhook.ts'
import { composeBody, PUSH_TOKENS, signMessage, type Snapshot } from './webhook-message.ts'
import { ATTEMPTS_MAX, parseRetryAfter, probeMilliseconds, retryMilliseconds } from './webhook-schedule.ts'

export interface DeliveryParts extends WebhookParts {
  readonly events: Events
  readonly settings: WebhookParts['settings'] & { readonly webhookRetryBaseSeconds: number }
}

/** Tries everything that is due, all webhooks side by side, until nothing is; returns how many attempts that were. */
export async function deliverDue(parts: DeliveryParts): Promise<number> {
  for (let tried = 0; ; ) {
    const webhooks = await listDueWebhooks(parts.db, new Date(parts.platform.now()))
    const counts = await Promise.all(webhooks.map((webhookId) => deliverTo(parts, webhookId, () => false)))
    const sum = counts.reduce((total, count) => total + count, 0)
    if (sum === 0) return tried
    tried += sum
  }
}

/** Tries what is due for one webhook, a batch at a time, until nothing is or its turn is over; returns how many attempts that were. */
export async function deliverTo(parts: DeliveryParts, webhookId: string, isStopped: () => boolean): Promise<number> {
  let tried = 0
  for (let batch = 0; batch < BATCHES_IN_A_TURN && !isStopped(); batch += 1) {
    const count = await deliverBatch(parts, webhookId)
    if (count === 0) break
    tried += count
  }
  return tried
}

async function deliverBatch(parts: DeliveryParts, webhookId: string): Promise<number> {
  const { db, platform, settings } = parts
  const now = platform.now()
  const lease = { leaseId: platform.uuid(), at: new Date(now), until: new Date(now + LEASE_MS) }
  const due = await claimDeliveries(db, webhookId, lease, BATCH_ROWS)
  const probeMs = probeMilliseconds(settings.webhookRetryBaseSeconds)
  const claimed = due.length > 0 ? due : await claimProbe(db, webhookId, lease, new Date(now + probeMs))
  const webhook = claimed.length > 0 ? await findWebhook(db, webhookId) : undefined
  if (webhook === undefined) return 0
  const outcomes = await Promise.all(claimed.map((delivery) => deliverOne(parts, webhook, delivery, lease)))
  const delivered = outcomes.filter(Boolean).length
  if (delivered > 0) {
    const at = platform.now()
    await storeWebhookSuccess(db, webhookId, { delivered, at: new Date(at), failingSince: new Date(at - probeMs) })
  }
  return claimed.length
}

/** One attempt and what it changes; true when the message was received. */
async function deliverOne(parts: DeliveryParts, webhook: WebhookRow, delivery: ClaimedDelivery, lease: Lease): Promise<boolean> {
  const outcome = await attempt(parts, webhook, delivery)
  const at = new Date(parts.platform.now())
  if (outcome.isReceived) await storeDelivered(parts.db, delivery.sequence, lease.leaseId, at)
  else await recordFailure(parts, delivery, lease, outcome, at)
  return outcome.isReceived
}

type Outcome =
  | { readonly isReceived: true }
  | {
      readonly isReceived: false
      readonly reason: string
      readonly isGone?: boolean
      /** The receiver's own wish. */
      readonly waitMs?: number | undefined
    }

async function attempt(parts: DeliveryParts, webhook: WebhookRow, delivery: ClaimedDelivery): Promise<Outcome> {
  const { platform, settings } = parts
  if (webhook.url.startsWith('http:') && !settings.webhookAllowHttp) return { isReceived: false, reason: 'http is not allowed' }
  try {
    const { status, headers } = await sendOutbound({
      url: webhook.url,
      method: 'POST',
      ...(await composeMessage(parts, webhook, delivery)),
      timeoutMs: TIMEOUT_MS,
      answerBytesMax: ANSWER_BYTES_MAX,
      arePrivateAllowed: settings.webhookAllowPrivateAddresses,
    })
    if (status >= 200 && status < 300) return { isReceived: true }
    const waitMs = parseRetryAfter(headers['retry-after'], platform.now())
    return { isReceived: false, reason: `HTTP ${status}`, isGone: status === 410, waitMs }
  } catch (error) {
    if (error instanceof OutboundError) return { isReceived: false, reason: describe(error) }
    // A secret that does not open concerns this webhook alone: it waits like any that fails, and the others go on.
    parts.events.webhookUnusable({ webhookId: webhook.webhookId, err: error })
    return { isReceived: false, reason: 'the message could not be made, see the log' }
  }
}

async function composeMessage(
  parts: DeliveryParts,
  webhook: WebhookRow,
  { deliveryId, objectId, payload }: ClaimedDelivery,
): Promise<{ body: string; headers: Record<string, string> }> {
  const snapshot = JSON.parse(payload) as Snapshot
  const attributes = webhook.attributes.split(',').filter(Boolean)
  const later = attributes.includes(PUSH_TOKENS) ? { [PUSH_TOKENS]: await openPushTokens(parts, snapshot) } : {}
  const body = composeBody({ kind: webhook.kind, objectId, attributes }, snapshot, later)
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

async function openPushTokens({ db, recordKeys }: DeliveryParts, { applicationId, userId }: Snapshot): Promise<unknown> {
  const rows = userId === undefined ? [] : await listPushRegistrations(db, String(applicationId), String(userId))
  return rows.map(({ activationId, platform, environment, pushToken }) => ({
    activationId,
    platform,
    ...(environment !== null && { environment }),
    token: fromUtf8(recordKeys.open(places.pushToken(activationId), pushToken)),
  }))
}

async function recordFailure(
  parts: DeliveryParts,
  { sequence, deliveryId, webhookId, ...before }: ClaimedDelivery,
  { leaseId, at: triedAt }: Lease,
  { reason, isGone = false, waitMs = 0 }: Exclude<Outcome, { isReceived: true }>,
  at: Date,
): Promise<void> {
  const { db, events, platform } = parts
  const base = parts.settings.webhookRetryBaseSeconds
  // An attempt ahead of its schedule, because the receiver may be back, costs the delivery nothing.
  const isEarly = triedAt < before.scheduledAt
  const attempts = before.attempts + (isEarly ? 0 : 1)
  const retryMs = Math.max(waitMs, retryMilliseconds(attempts, base, platform))
  const nextAttemptAt = isEarly ? before.scheduledAt : attempts < ATTEMPTS_MAX ? new Date(at.getTime() + retryMs) : null
  // The webhook first, so that a process that ends in between leaves no failure that its next success does not know of.
  await storeWebhookFailure(db, webhookId, {
    at,
    probeAt: new Date(at.getTime() + Math.max(waitMs, probeMilliseconds(base))),
    pausedUntil: waitMs > 0 ? new Date(at.getTime() + waitMs) : null,
    disabledReason: isGone ? reason : null,
  })
  await storeFailed(db, sequence, leaseId, { attempts, nextAttemptAt, reason, at })
  events.webhookAttemptFailed({ webhookId, deliveryId, attempts, reason })
  if (nextAttemptAt === null) events.webhookDeliveryDead({ webhookId, deliveryId, reason })
  if (isGone) events.webhookDisabled({ webhookId, reason })
}

/** The host and what the system said, without path and query, which may hold a secret of the receiver. */
function describe({ message, cause }: OutboundError): string {
  const code = typeof cause === 'object' && cause !== null && 'code' in cause ? String(cause.code) : undefined
  if (code === 'ABORT_ERR') return `${message} within ${TIMEOUT_MS / 1000} s`
  return code === undefined ? message : `${message} (${code})`
}

const TIMEOUT_MS = 10_000
const ANSWER_BYTES_MAX = 4_096
// Three times what an attempt may take: whoever holds a delivery longer is gone.
const LEASE_MS = 30_000
const BATCH_ROWS = 16
const BATCHES_IN_A_TURN = 16
