// Lists the webhooks of an application with their state, and creates new ones.
import type { PushProvider } from '../../api/cloud/admin/push.ts'
import type { Webhook } from '../../api/cloud/admin/webhooks.ts'
import { at } from '../api.ts'
import { PUSH_PROVIDERS, type Queue } from '../attention.ts'
import {
  actionForm,
  badge,
  card,
  type Choice,
  empty,
  field,
  more,
  pageHead,
  sayDistance,
  secretView,
  select,
  table,
  type Typed,
} from '../elements.ts'
import { html, type Markup } from '../markup.ts'
import { type Form, link, type Page, type PageCall, type View } from '../page.ts'

const WEBHOOK_KINDS: readonly Choice[] = [
  ['OPERATION', 'operations'],
  ['ACTIVATION', 'registrations'],
]

export const webhooks: Page = {
  path: '/webhooks',
  section: 'webhooks',
  async render(call) {
    const { application } = call
    const [{ webhooks: all }, { providers }] = await Promise.all([
      call.api.get<{ webhooks: readonly Webhook[] }>('/admin/webhooks'),
      call.api.get<{ providers: readonly PushProvider[] }>('/admin/push'),
    ])
    const found = all.filter((one) => one.application === application)
    return {
      title: 'Webhooks',
      body: html`${pageHead('Webhooks', { lead: 'pawl tells these servers of the bank what became of operations and registrations.' })}
        <div class="columns"><div>${card(
          'Webhooks',
          table(
            'Webhooks',
            ['Webhook', 'Tells of', ['State', 'side'], 'Waiting', ['Delivered', 'away'], ['Given up', 'away']],
            found.map((one) => renderRow(call, one)),
            empty('None yet', 'Without one a back end has to ask what became of an operation.'),
          ),
        )}${providers.length > 0 && card('Pushes of all applications', renderProviders(providers))}</div>
        <div>${call.isAdmin && card('New webhook', renderCreate(call))}</div></div>`,
    }
  },
  actions: {
    create: async (call) => {
      const { form, api, application } = call
      const created = await api.send<Webhook & { secret: string }>('POST', '/admin/webhooks', {
        application,
        kind: form.text('kind'),
        ...readWebhook(form),
      })
      return showSecret(call, created.id, created.secret, 'Webhook created')
    },
  },
}

/**
 * Reads the members that the forms of a new and of an existing webhook share. `stored`: the user name of HTTP Basic that the webhook has. The
 * password stays if none is typed and the user name is unchanged. If both lines are empty, HTTP Basic is removed.
 */
export function readWebhook(form: Form, stored?: string) {
  const [username, password = ''] = [form.text('basicUsername'), form.all('basicPassword')[0]]
  const isKept = username === (stored ?? '') && password === ''
  return {
    name: form.text('name'),
    url: form.text('url'),
    attributes: form.words('attributes'),
    ...(!isKept && { basic: username === '' && password === '' ? null : { username, password } }),
  }
}

export const showSecret = (call: PageCall, id: string, secret: string, title: string): View =>
  secretView(title, 'Its secret', 'The receiver checks signatures with it. ', secret, link(call, at`/webhooks/${id}`))

/** Whether the messages of a webhook or push provider arrive. */
export function deliveryState({ isEnabled, failuresInRow }: Queue): Markup {
  if (!isEnabled) return badge('off', 'Off')
  return failuresInRow > 0 ? badge('bad', `${failuresInRow} failures in a row`) : badge('good', 'Gets through')
}

export const webhookState = (one: Webhook): Markup =>
  html`${deliveryState(one)}${!one.isEnabled && html` <small>${one.disabledReason}</small>`}`

const waitingCell = ({ waiting, lagSeconds }: Queue): Markup =>
  html`${waiting}${lagSeconds >= 5 && html`<br><small>oldest ${sayDistance(-lagSeconds * 1000)}</small>`}`

const renderRow = (call: PageCall, one: Webhook) => [
  html`<a href="${link(call, at`/webhooks/${one.id}`)}">${one.name}</a><br><small>${one.url}</small>`,
  html`<span class="nowrap">${one.kind === 'OPERATION' ? 'operations' : 'registrations'}</span>`,
  webhookState(one),
  waitingCell(one),
  one.delivered,
  one.dead > 0 ? html`<strong>${one.dead}</strong>` : 0,
]

const renderProviders = (providers: readonly PushProvider[]): Markup =>
  table(
    'Providers of pushes',
    ['Provider', ['State', 'side'], 'Waiting', ['Delivered', 'away'], ['Given up', 'away']],
    providers.map((one) => [
      PUSH_PROVIDERS[one.provider],
      html`${deliveryState(one)}${one.isEnabled && one.lastError !== undefined && html`<br><small>${one.lastError}</small>`}`,
      waitingCell(one),
      one.delivered,
      one.dead,
    ]),
  )

export const webhookFields = (own: Typed, one?: Webhook): Markup =>
  html`${field(own, 'name', 'Name', { isRequired: true, value: one?.name, placeholder: 'Core banking' })}
    ${field(own, 'url', 'Address', { type: 'url', isRequired: true, value: one?.url, placeholder: 'https://receiver.bank.example/pawl' })}
    ${field(own, 'attributes', 'Attributes', { value: one?.attributes.join(' '), hint: 'What messages carry beside the event, separated by spaces: status, userId, parameters … docs/WEBHOOKS.md lists them.' })}
    ${more(
      'HTTP Basic at the receiver',
      html`<div class="fields">
      ${field(own, 'basicUsername', 'User name', { value: one?.basicUsername, apiName: 'username' })}
      ${field(own, 'basicPassword', 'Password', { type: 'password', apiName: 'password', autocomplete: 'new-password', hint: one?.basicUsername !== undefined ? 'Left empty, the one that is there stays.' : undefined })}</div>`,
      own.refusal !== undefined,
    )}`

const renderCreate = (call: PageCall): Markup =>
  actionForm(call, 'create', 'Create', {
    fields: (own) => html`${select(own, 'kind', 'Tells of', WEBHOOK_KINDS)}${webhookFields(own)}`,
  })
