// Sends a test message while an administrator waits for the answer of the receiver (cloud §9).
import type { WebhookRow } from '../../storage/webhook/webhooks.ts'
import { attempt } from './attempt.ts'
import type { Snapshot } from './message.ts'
import { readWebhook, type DeliveryParts } from './webhook.ts'

/** What became of a trial. */
interface Trial {
  /** The webhook-id of the message. */
  readonly id: string
  readonly isDelivered: boolean
  /** The status of the receiver's answer; absent without an answer. */
  readonly status?: number
  /** The reason why it counts as not delivered. */
  readonly error?: string
  readonly durationMs: number
}

/**
 * Sends a message with the event `test` to a webhook, which may be disabled, on the way of every delivery: the same checks of the address,
 * signature, credentials and time-out. Nothing is queued, and the figures of the webhook stay. Its object does not exist, and its
 * attributes are examples. Throws ADMINISTRATION_REFUSED when there is no such webhook.
 */
export async function tryWebhook(parts: DeliveryParts, webhookId: string): Promise<Trial> {
  const { platform } = parts
  const webhook = await readWebhook(parts, webhookId)
  const id = platform.uuid()
  const startedAt = platform.monotonic()
  const outcome = await attempt(parts, webhook, {
    deliveryId: id,
    objectId: platform.uuid(),
    snapshot: exampleOf(webhook, platform.now()),
    texts: { title: 'Test', message: 'A test of this webhook', summary: undefined },
  })
  const durationMs = Math.round(platform.monotonic() - startedAt)
  if ('received' in outcome) return { id, isDelivered: true, status: outcome.received, durationMs }
  const { reason, status } = outcome
  return { id, isDelivered: false, ...(status !== undefined && { status }), error: reason, durationMs }
}

/** The members of both kinds, of which a message takes those that its webhook asks for. The status is one that decides nothing. */
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
