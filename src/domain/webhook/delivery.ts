// Delivers the outbox: each message at least once, in order for each object, by any process, with retries over a day (cloud §9).
import {
  claimDeliveries,
  type ClaimedDelivery,
  claimProbe,
  dropDelivery,
  type Lease,
  listDueWebhooks,
  storeDelivered,
  storeFailures,
} from '../../storage/webhook/deliveries.ts'
import { findWebhook, storeWebhookFailure, storeWebhookSuccess, type WebhookRow } from '../../storage/webhook/webhooks.ts'
import { attemptPush, type Dropped } from '../push/deliver.ts'
import { attempt, type Failure } from './attempt.ts'
import type { Patience } from './patience.ts'
import { ATTEMPTS_MAX, parseRetryAfter, probeMilliseconds, retryMilliseconds } from './schedule.ts'
import type { DeliveryParts } from './webhook.ts'

/** Lists webhooks with due deliveries, and such providers of pushes that this process has credentials for. */
export const listDue = ({ db, platform, pushSenders }: DeliveryParts): Promise<readonly string[]> =>
  listDueWebhooks(db, new Date(platform.now()), [...pushSenders.keys()])

/** Tries due deliveries of one webhook, at most 16 at once. Returns the number of attempts. `wait` waits for the answer of each request. */
export async function deliverBatch(parts: DeliveryParts, webhookId: string, wait: Patience['wait']): Promise<number> {
  const { db, platform, settings } = parts
  const now = platform.now()
  const lease = { leaseId: platform.uuid(), at: new Date(now), until: new Date(now + LEASE_MS) }
  const due = await claimDeliveries(db, webhookId, lease, BATCH_ROWS)
  const probeMs = probeMilliseconds(settings.webhookRetryBaseSeconds)
  const claimed = due.length > 0 ? due : await claimProbe(db, webhookId, lease, new Date(now + probeMs))
  const sending = claimed.length > 0 ? await findSending(parts, webhookId, wait) : undefined
  if (sending === undefined) return 0
  const { send, sentTo } = sending
  const outcomes = await Promise.all(claimed.map((delivery) => deliverOne({ parts, leaseId: lease.leaseId, send }, delivery)))
  const failed = outcomes.filter((outcome) => typeof outcome === 'object')
  const delivered = outcomes.filter((outcome) => outcome === 'delivered').length
  if (failed.length > 0) await recordFailures(parts, { webhookId, sentTo }, lease, failed)
  if (delivered > 0) {
    parts.events.webhookDelivered({ webhookId, count: delivered })
    const at = platform.now()
    await storeWebhookSuccess(db, webhookId, { sentTo, delivered, at: new Date(at), failingSince: new Date(at - probeMs) })
  }
  return claimed.length
}

/** Sends a message of a webhook, or a push of a provider. */
interface Sending {
  readonly send: (delivery: ClaimedDelivery) => Promise<Failure | { readonly received: number } | { readonly dropped: Dropped }>
  /** The webhook as it is now; undefined for a provider of pushes. */
  readonly sentTo: WebhookRow | undefined
}

/** Finds the function that sends; undefined when the webhook does not exist any more. */
async function findSending(parts: DeliveryParts, webhookId: string, wait: Patience['wait']): Promise<Sending | undefined> {
  const push = parts.pushSenders.get(webhookId)
  if (push !== undefined) return { send: sendPushes(parts, push, wait), sentTo: undefined }
  const webhook = await findWebhook(parts.db, webhookId)
  if (webhook === undefined) return undefined
  return {
    send: ({ deliveryId, objectId, payload }) => attempt(parts, webhook, { deliveryId, objectId, payload }, wait),
    sentTo: webhook,
  }
}

const sendPushes =
  (parts: DeliveryParts, push: Parameters<typeof attemptPush>[1], wait: Patience['wait']): Sending['send'] =>
  async ({ activationId, ...delivery }) => {
    const result = await attemptPush(parts, push, { ...delivery, activationId: activationId ?? '' }, wait)
    if (!('reason' in result)) return result
    const { retryAfter, isOfOne = false, reason } = result
    return { reason, isOfOne, waitMs: parseRetryAfter(retryAfter, parts.platform.now()) }
  }

interface Batch extends Pick<Sending, 'send'> {
  readonly parts: DeliveryParts
  readonly leaseId: string
}

interface Failed {
  readonly delivery: ClaimedDelivery
  readonly failure: Failure
}

/** Makes one attempt. A received message is stored as delivered at once. A process that ends before that causes a second delivery. */
async function deliverOne({ parts, leaseId, send }: Batch, delivery: ClaimedDelivery): Promise<Failed | 'delivered' | 'dropped'> {
  const outcome = await send(delivery)
  if ('reason' in outcome) return { delivery, failure: outcome }
  if ('dropped' in outcome) {
    await dropDelivery(parts.db, delivery.sequence, leaseId)
    return 'dropped'
  }
  await storeDelivered(parts.db, delivery.sequence, leaseId, new Date(parts.platform.now()))
  return 'delivered'
}

async function recordFailures(
  parts: DeliveryParts,
  { webhookId, sentTo }: { readonly webhookId: string } & Pick<Sending, 'sentTo'>,
  lease: Lease,
  failed: readonly Failed[],
): Promise<void> {
  const { db, events, platform, settings } = parts
  const at = new Date(platform.now())
  const ofAll = failed.filter(({ failure }) => failure.isOfOne !== true)
  const waitMs = Math.max(0, ...ofAll.map(({ failure }) => failure.waitMs ?? 0))
  const gone = failed.find(({ failure }) => failure.isGone)?.failure.reason ?? null
  // The failure of the webhook is stored first. If the process ends then, the next success still finds a failing webhook, and retries its
  // deliveries.
  const isUnchanged =
    ofAll.length === 0 ||
    (await storeWebhookFailure(db, webhookId, {
      sentTo,
      failed: ofAll.length,
      at,
      probeAt: new Date(at.getTime() + Math.max(waitMs, probeMilliseconds(settings.webhookRetryBaseSeconds))),
      pausedUntil: waitMs > 0 ? new Date(at.getTime() + waitMs) : null,
      disabledReason: gone,
    }))
  // An administrator has changed the webhook meanwhile. The receiver of now gets the failed messages at once.
  const next = (one: Failed): Schedule =>
    isUnchanged
      ? schedule(parts, one, lease, at)
      : { attempts: one.delivery.attempts, nextAttemptAt: at, reason: one.failure.reason }
  const scheduled = failed.map((one) => ({ ...one.delivery, ...next(one) }))
  await storeFailures(db, lease.leaseId, scheduled, at)
  events.webhookAttemptsFailed({ webhookId, failed: failed.length, reason: failed[0]?.failure.reason ?? '' })
  for (const { deliveryId, nextAttemptAt, reason } of scheduled) {
    if (nextAttemptAt === null) events.webhookDeliveryDead({ webhookId, deliveryId, reason })
  }
  if (gone !== null && isUnchanged) events.webhookDisabled({ webhookId, reason: gone })
}

interface Schedule {
  readonly attempts: number
  /** Null when the delivery is not tried again. */
  readonly nextAttemptAt: Date | null
  readonly reason: string
}

/** Computes the time of the next attempt. */
function schedule(
  { platform, settings }: DeliveryParts,
  { delivery, failure: { reason, waitMs = 0 } }: Failed,
  lease: Lease,
  at: Date,
): Schedule {
  // This attempt was a probe ahead of its schedule, so it does not count.
  if (lease.at < delivery.scheduledAt) return { attempts: delivery.attempts, nextAttemptAt: delivery.scheduledAt, reason }
  const attempts = delivery.attempts + 1
  if (attempts >= ATTEMPTS_MAX) return { attempts, nextAttemptAt: null, reason }
  const retryMs = Math.max(waitMs, retryMilliseconds(attempts, settings.webhookRetryBaseSeconds, platform))
  return { attempts, nextAttemptAt: new Date(at.getTime() + retryMs), reason }
}

// Three times the limit of an attempt. A process that holds a delivery longer has ended.
const LEASE_MS = 30_000
const BATCH_ROWS = 16
