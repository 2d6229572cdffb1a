// Describes deliveries of webhooks in words: the outcome, the next attempt, and the reason. Also renders them as steps of the timeline of an
// operation or registration.
import type { Delivery } from '../api/cloud/admin/webhook-deliveries.ts'
import type { Webhook } from '../api/cloud/admin/webhooks.ts'
import { ago, badge, type Step, type Tone } from './elements.ts'
import { html, type Markup } from './markup.ts'
import { at } from './api.ts'
import { link, type PageCall } from './page.ts'
import { sayState } from './words.ts'

/** The badge of a delivery in a list. */
export const deliveryBadge = ({ status, attempts }: Delivery): Markup =>
  status === 'DELIVERED'
    ? badge('good', 'Delivered')
    : status === 'DEAD'
      ? badge('bad', 'Given up')
      : attempts > 0
        ? badge('bad', 'Fails')
        : badge('wait', 'Waiting')

/** The outcome of a delivery, or the time and reason of its next attempt. `now`: milliseconds. `isEnabled`: the webhook is switched on. */
export function sayDelivery(delivery: Delivery, now: number, isEnabled: boolean): { readonly tone: Tone; readonly says: Markup } {
  const { status, attempts, isBehindEarlier, nextAttemptAt = 0, lastError, finishedAt } = delivery
  const tried = attempts === 1 ? 'one attempt' : `${attempts} attempts`
  if (status === 'DELIVERED')
    return {
      tone: 'good',
      says: html`taken${attempts > 1 && html` at attempt ${attempts}`}${finishedAt !== undefined && html`, ${ago(now, finishedAt)}`}`,
    }
  const why = lastError !== undefined && html`: ${lastError}`
  if (status === 'DEAD') return { tone: 'bad', says: html`given up after ${tried}${why}` }
  if (!isEnabled) return { tone: 'off', says: html`waits, because the webhook is switched off` }
  if (isBehindEarlier === true)
    return { tone: 'wait', says: html`waits, because an earlier message about it was not delivered yet` }
  const next = nextAttemptAt <= now ? html`now` : ago(now, nextAttemptAt)
  if (attempts === 0 && lastError === undefined)
    return {
      tone: 'wait',
      says:
        nextAttemptAt <= now ? html`is sent at once` : html`waits, because the receiver asked for a pause, first attempt ${next}`,
    }
  return {
    tone: 'bad',
    says: html`${attempts === 0 ? 'sent again' : html`failed ${attempts === 1 ? 'once' : attempts === 2 ? 'twice' : `${attempts} times`}`}, next attempt ${next}${why}`,
  }
}

/** Reads the newest 20 messages about an operation or activation, for each webhook of that kind in the application. */
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
  const href = link(call, at`/webhooks/${webhook.id}/deliveries/${delivery.id}`)
  const name = call.isAdmin ? html`<a href="${href}">${webhook.name}</a>` : webhook.name
  return { title: html`Webhook ${name} is told “${sayState(delivery.objectStatus)}”`, at: delivery.createdAt, tone, note: says }
}

const DELIVERIES_MAX = 20
