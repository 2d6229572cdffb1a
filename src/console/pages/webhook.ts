// Shows one webhook: its deliveries, a form to send them again, and its settings.
import type { Delivery } from '../../api/cloud/admin/webhook-deliveries.ts'
import type { Webhook, WebhookTest } from '../../api/cloud/admin/webhooks.ts'
import { at } from '../api.ts'
import { deliveryBadge, sayDelivery } from '../deliveries.ts'
import {
  actionForm,
  ago,
  backTo,
  card,
  check,
  chips,
  type Choice,
  code,
  type Column,
  empty,
  exactTime,
  facts,
  field,
  guardedForm,
  live,
  pageHead,
  pager,
  sayAge,
  table,
} from '../elements.ts'
import { sayState } from '../words.ts'
import { html, type Markup } from '../markup.ts'
import { done, link, type Page, type PageCall, requireUnchanged, type View } from '../page.ts'
import { readWebhook, showSecret, webhookFields, webhookState } from './webhooks.ts'

interface Deliveries {
  readonly deliveries: readonly Delivery[]
  readonly next?: string
}

const STATUSES: readonly Choice[] = [
  ['', 'All'],
  ['WAITING', 'Waiting'],
  ['DELIVERED', 'Delivered'],
  ['DEAD', 'Given up'],
]

const pathOf = ({ params }: PageCall): string => at`/admin/webhooks/${params.id}`
const home = ({ params }: PageCall): string => at`/webhooks/${params.id}`
/** The stored values that the form shows and replaces. */
const settingsOf = ({ name, url, attributes, basicUsername, isEnabled }: Webhook) => [
  name,
  url,
  attributes,
  basicUsername,
  isEnabled,
]

const replay = (body: (call: PageCall) => unknown) => async (call: PageCall) => {
  await call.api.send('POST', `${pathOf(call)}/deliveries`, body(call))
  return done(call, home(call), 'replayed')
}

async function render(call: PageCall, trial?: WebhookTest): Promise<View> {
  const { status, before } = call.query
  const [one, found] = await Promise.all([
    call.api.get<Webhook>(pathOf(call)),
    call.api.get<Deliveries>(`${pathOf(call)}/deliveries`, { status, before, limit: 12 }),
  ])
  return {
    title: one.name,
    body: html`${pageHead(one.name, { back: backTo(link(call, '/webhooks'), 'Webhooks'), lead: html`${webhookState(one)} for ${one.url}` })}
        <div class="columns"><div>${card('Deliveries', html`${chips(call, home(call), 'status', 'Status', STATUSES)}${live('deliveries', link(call, home(call), call.query), 5, renderDeliveries(call, one, found))}`, renderReplay(call, one))}</div>
        <div>${call.isAdmin && renderTest(call, trial)}${card('How it is doing', renderFigures(one))}${call.isAdmin && renderSetUp(call, one)}</div></div>`,
  }
}

export const webhook: Page = {
  path: '/webhooks/:id',
  section: 'webhooks',
  render: (call) => render(call),
  actions: {
    test: async (call) => render(call, await call.api.send<WebhookTest>('POST', `${pathOf(call)}/test`)),
    replay: replay(({ form }) => ({ deliveryId: form.text('deliveryId') })),
    replayDead: replay(() => ({ status: 'DEAD' })),
    save: async (call) => {
      const one = await call.api.get<Webhook>(pathOf(call))
      requireUnchanged(call, settingsOf(one))
      const settings = { ...readWebhook(call.form, one.basicUsername), isEnabled: call.form.isChecked('isEnabled') }
      await call.api.send('PUT', pathOf(call), settings)
      return done(call, home(call), 'saved')
    },
    secret: async (call) => {
      const keepPreviousSeconds = Number(call.form.text('keepPreviousSeconds') || '0')
      const { secret } = await call.api.send<{ secret: string }>('POST', `${pathOf(call)}/secret`, { keepPreviousSeconds })
      return showSecret(call, call.params.id, secret, 'New secret')
    },
    remove: async (call) => {
      await call.api.send('DELETE', pathOf(call))
      return done(call, '/webhooks', 'removed')
    },
  },
}

const renderReplay = (call: PageCall, { dead }: Webhook): Markup | false =>
  call.isAdmin && dead > 0 && actionForm(call, 'replayDead', `Send all ${dead} that were given up`, { tone: 'plain' })

/** The receiver's answer to the last test message, or the offer to send one. */
const renderTest = (call: PageCall, trial: WebhookTest | undefined): Markup =>
  card(
    'Test',
    html`${trial === undefined ? html`<p class="soft">Sends a signed message with the event <code>test</code> now, and shows what the receiver answers. Nothing is queued.</p>` : renderTrial(trial)}
      ${actionForm({ ...call, here: link(call, home(call)) }, 'test', trial === undefined ? 'Send a test message' : 'Send another', { tone: 'plain' })}`,
  )

const renderTrial = ({ id, isDelivered, status, error, durationMs }: WebhookTest): Markup =>
  html`<div class="notice is-${isDelivered ? 'good' : 'bad'}" role="status"><p><strong>${isDelivered ? 'The receiver took it' : 'The receiver did not take it'}</strong></p></div>
    ${facts([
      ['Answer', status === undefined ? 'none' : html`HTTP ${status}`],
      error !== undefined && ['Problem', html`${error}${status !== undefined && html`<br><small>${adviceOn(status)}</small>`}`],
      ['Took', `${durationMs} ms`],
      ['Message', code(id, 'the id of the message')],
    ])}`

/** The most frequent cause of a status of the receiver. */
function adviceOn(status: number): string {
  if (status === 401 || status === 403) return 'It checks the signature with another secret, or wants other credentials.'
  if (status === 404 || status === 405) return 'The address leads elsewhere: check its path.'
  if (status === 410) return 'It wants no more messages: a delivery would switch the webhook off.'
  if (status >= 300 && status < 400) return 'Redirects are not followed: enter the address that it names.'
  return status >= 500 ? 'The receiver failed: its log says why.' : 'The receiver refuses the message.'
}

const COLUMNS: readonly Column[] = ['Message', ['Delivery', 'side'], 'What comes next', 'Made', ['', 'away']]

function renderDeliveries(call: PageCall, webhook: Webhook, { deliveries, next }: Deliveries): Markup {
  if (deliveries.length === 0)
    return empty(
      'No delivery',
      'Each change of an operation or a registration makes one. Create an operation, and it is here within a second.',
    )
  const rows = deliveries.map((one) => [
    html`${call.isAdmin ? html`<a href="${link(call, home(call) + at`/deliveries/${one.id}`)}">${sayState(one.objectStatus)}</a>` : sayState(one.objectStatus)}<br><small>${renderObject(call, webhook, one.objectId)}</small>`,
    deliveryBadge(one),
    html`<small>${sayDelivery(one, call.now, webhook.isEnabled).says}</small>`,
    ago(call.now, one.createdAt),
    call.isAdmin &&
      actionForm({ ...call, here: link(call, home(call)) }, 'replay', one.status === 'WAITING' ? 'Try now' : 'Send again', {
        tone: 'plain',
        hidden: { deliveryId: one.id },
      }),
  ])
  return html`${table('Deliveries', COLUMNS, rows)}${pager(call, home(call), next, { kept: { status: call.query['status'] } })}`
}

/** Names the operation or registration of a message. Callers who only read have no page of an operation. */
function renderObject(call: PageCall, { kind }: Webhook, id: string): Markup {
  const name = html`${kind === 'OPERATION' ? 'operation' : 'registration'} ${id.slice(0, 8)}`
  if (kind === 'OPERATION' && !call.isActing) return name
  const href = link(call, at`/${kind === 'OPERATION' ? 'operations' : 'registrations'}/${id}`)
  return html`<a class="quiet nowrap" href="${href}" title="${id}">${name}</a>`
}

const renderFigures = ({
  waiting,
  delivered,
  dead,
  failuresInRow,
  lagSeconds,
  createdAt,
  previousSecretExpiresAt,
  basicUsername,
  kind,
  id,
}: Webhook): Markup =>
  facts([
    ['Tells of', kind === 'OPERATION' ? 'operations' : 'registrations'],
    ['Waiting', html`${waiting} ${lagSeconds >= 5 && html`<small>the oldest for ${sayAge(lagSeconds)}</small>`}`],
    ['Delivered', delivered],
    ['Given up', dead],
    ['Failures in a row', failuresInRow],
    basicUsername !== undefined && ['HTTP Basic as', basicUsername],
    previousSecretExpiresAt !== undefined && ['Previous secret until', exactTime(previousSecretExpiresAt)],
    ['Created', exactTime(createdAt)],
    ['Webhook', code(id, 'the id of the webhook')],
  ])

const renderSetUp = (call: PageCall, one: Webhook): Markup =>
  card(
    'Set-up',
    html`${actionForm(call, 'save', 'Save', {
      seen: settingsOf(one),
      fields: (own) => html`${check(own, 'isEnabled', 'Switched on', one.isEnabled)}${webhookFields(own, one)}`,
    })}
    <div class="actions">${guardedForm(call, 'secret', 'New secret', { question: 'The receiver needs the new one.', fields: (own) => field(own, 'keepPreviousSeconds', 'Seconds that messages are signed with both', { type: 'number', value: '86400' }) })}
    ${guardedForm(call, 'remove', 'Remove', { question: 'What waits is not sent any more.' })}</div>`,
  )
