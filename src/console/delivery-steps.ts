// What webhooks were told of one operation or registration, as steps of its timeline.
import type { Webhook } from './answers.ts'
import { at } from './api.ts'
import { type Delivery, sayDelivery } from './deliveries.ts'
import type { Step } from './elements.ts'
import { html } from './markup.ts'
import { link, type PageCall } from './page.ts'
import { sayState } from './words.ts'

/** The newest messages about the object, of each webhook of the application and kind. */
export async function readDeliverySteps(call: PageCall, kind: Webhook['kind'], objectId: string): Promise<readonly Step[]> {
  const { webhooks } = await call.api.get<{ webhooks: readonly Webhook[] }>('/admin/webhooks')
  const own = webhooks.filter((webhook) => webhook.application === call.application && webhook.kind === kind)
  const told = await Promise.all(
    own.map(async (webhook) => {
      const path = at`/admin/webhooks/${webhook.id}/deliveries`
      const { deliveries } = await call.api.get<{ deliveries: readonly Delivery[] }>(path, { objectId, limit: DELIVERIES_MAX })
      return deliveries.map((delivery) => toStep(call, webhook, delivery))
    }),
  )
  return told.flat()
}

function toStep(call: PageCall, webhook: Webhook, delivery: Delivery): Step {
  const { tone, says } = sayDelivery(delivery, call.now, webhook.isEnabled)
  const href = link(call, `/webhooks/${encodeURIComponent(webhook.id)}/deliveries/${encodeURIComponent(delivery.id)}`)
  const name = call.isAdmin ? html`<a href="${href}">${webhook.name}</a>` : webhook.name
  return { title: html`Webhook ${name} is told “${sayState(delivery.objectStatus)}”`, at: delivery.createdAt, tone, note: says }
}

const DELIVERIES_MAX = 20
