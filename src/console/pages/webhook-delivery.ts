// Shows one delivery of a webhook: its message, the answer of the receiver, and the next attempt.
import type { Delivery } from '../../api/cloud/admin/webhook-deliveries.ts'
import type { Webhook } from '../../api/cloud/admin/webhooks.ts'
import { at } from '../api.ts'
import { deliveryBadge, sayDelivery } from '../deliveries.ts'
import { actionForm, backTo, card, code, exactTime, facts, live, pageHead, type Step, timeline } from '../elements.ts'
import { html, type Markup } from '../markup.ts'
import { done, link, type Page, type PageCall } from '../page.ts'
import { sayState } from '../words.ts'

const webhookOf = ({ params }: PageCall): string => at`/admin/webhooks/${params.id}`

export const webhookDelivery: Page = {
  path: '/webhooks/:id/deliveries/:deliveryId',
  section: 'webhooks',
  async render(call) {
    const [webhook, one] = await Promise.all([
      call.api.get<Webhook>(webhookOf(call)),
      call.api.get<Delivery & { readonly body: string }>(`${webhookOf(call)}${at`/deliveries/${call.params.deliveryId}`}`),
    ])
    const back = backTo(link(call, at`/webhooks/${webhook.id}`), webhook.name)
    const isWaiting = one.status === 'WAITING'
    return {
      title: `Delivery to ${webhook.name}`,
      body: html`${pageHead(html`Message “${sayState(one.objectStatus)}”`, { back, lead: html`to ${webhook.url}` })}
        ${live(
          'delivery',
          link(call, home(call)),
          isWaiting ? 5 : undefined,
          html`<div class="columns"><div>${card('What is sent', html`<pre>${pretty(one.body)}</pre><p class="hint">${isWaiting ? 'As the next attempt sends it.' : 'With the attributes that the webhook asks for now.'} In one line on the wire, signed.</p>`)}${card('Timeline', timeline(call.now, stepsOf(call, webhook, one)))}</div>
        <div>${card('Delivery', renderFacts(call, webhook, one))}${call.isAdmin && card('Actions', actionForm(call, 'replay', one.status === 'WAITING' ? 'Try it now' : 'Send again', { tone: 'plain' }))}</div></div>`,
        )}`,
    }
  },
  actions: {
    replay: async (call) => {
      await call.api.send('POST', `${webhookOf(call)}/deliveries`, { deliveryId: call.params.deliveryId })
      return done(call, home(call), 'replayed')
    },
  },
}

const home = ({ params }: PageCall): string => at`/webhooks/${params.id}/deliveries/${params.deliveryId}`

const pretty = (body: string): string => (body === '' ? '' : JSON.stringify(JSON.parse(body), undefined, 2))

function renderFacts(call: PageCall, { kind }: Webhook, one: Delivery): Markup {
  const { id, objectId, attempts, lastError, createdAt, finishedAt } = one
  const isOperation = kind === 'OPERATION'
  const href = link(call, at`/${isOperation ? 'operations' : 'registrations'}/${objectId}`)
  return facts([
    ['State', deliveryBadge(one)],
    ['About', html`<a href="${href}">${isOperation ? 'the operation' : 'the registration'}</a> <small>${objectId}</small>`],
    ['Attempts', attempts],
    lastError !== undefined && ['Last answer', lastError],
    ['Made', exactTime(createdAt)],
    finishedAt !== undefined && ['Ended', exactTime(finishedAt)],
    ['Message', code(id, 'the id of the message')],
  ])
}

function stepsOf(call: PageCall, { isEnabled }: Webhook, one: Delivery): readonly Step[] {
  const { tone, says } = sayDelivery(one, call.now, isEnabled)
  const { status, createdAt, finishedAt } = one
  return [
    { title: 'The message was made', at: createdAt, tone: 'info' },
    {
      title: status === 'DELIVERED' ? 'The receiver took it' : status === 'DEAD' ? 'It was given up' : 'It waits',
      at: finishedAt,
      tone,
      note: says,
    },
  ]
}
