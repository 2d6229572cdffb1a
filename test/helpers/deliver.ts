// Delivers webhooks and pushes for tests that run no loop.
import { deliverBatch, listDue } from '../../src/domain/webhook/delivery.ts'
import type { DeliveryParts } from '../../src/domain/webhook/webhook.ts'

/** Delivers all due messages of all webhooks in parallel, until none is due. Returns the number of attempts. */
export async function deliverDue(parts: DeliveryParts): Promise<number> {
  for (let tried = 0; ; ) {
    const webhooks = await listDue(parts)
    const counts = await Promise.all(webhooks.map((webhookId) => deliverBatch(parts, webhookId, (answer) => answer)))
    const sum = counts.reduce((total, count) => total + count, 0)
    if (sum === 0) return tried
    tried += sum
  }
}
