// Shows and changes configuration items of an application or of one activation. Apps of protocol 4 read them.
import type { Item } from '../../api/cloud/admin/config.ts'
import { at, parseJsonField, type Query } from '../api.ts'
import {
  actionForm,
  badge,
  card,
  type Choice,
  empty,
  field,
  guardedForm,
  pageHead,
  searchForm,
  select,
  table,
  UNTYPED,
} from '../elements.ts'
import { html, type Markup } from '../markup.ts'
import { done, type Page, type PageCall, requireUnchanged } from '../page.ts'

const SCOPES: readonly Choice[] = [
  ['APPLICATION', 'every app, activated or not'],
  ['ACTIVATION', 'activated apps'],
]

/** The path of the items: those of an activation if the page names one, else of the application. */
const pathOf = ({ application, query: { activation } }: PageCall): string =>
  activation ? at`/admin/activations/${activation}/config` : at`/admin/applications/${application}/config`
const readItems = async (call: PageCall) => (await call.api.get<{ config: readonly Item[] }>(pathOf(call))).config
/** The scope of an item of an application. Items of an activation have no scope. */
const scopeOf = ({ form, query: { activation } }: PageCall): Query => (activation ? {} : { scope: form.text('scope') })

export const config: Page = {
  path: '/config',
  section: 'config',
  async render(call) {
    const { application, query, isAdmin } = call
    const activation = query['activation'] || undefined
    const items = await readItems(call)
    const owner =
      activation === undefined ? html`of <strong>${application}</strong>` : html`of the activation <code>${activation}</code>`
    const rows = items.map((item) => [
      html`<strong>${item.key}</strong>`,
      html`<code>${JSON.stringify(item.value)}</code>`,
      item.scope === 'APPLICATION' ? badge('info', 'Every app') : badge('good', 'Activated apps'),
      isAdmin &&
        guardedForm(call, 'remove', 'Remove', {
          hidden: { key: item.key, scope: item.scope },
          question: `Apps are given no ${item.key} any more.`,
        }),
    ])
    return {
      title: 'Configuration',
      body: html`${pageHead('Configuration', { lead: html`Items ${owner} that its app reads, in protocol 4.` })}
        <div class="columns"><div>${card('Items', table('Items', ['Name', ['Value', 'wide'], ['For', 'side'], ['', 'wide']], rows, empty('No item', 'An item is a name and a JSON value, for instance a limit that the app shows.')))}</div>
        <div>${isAdmin && card('Store an item', renderForm(call, items))}${card('Of one activation', searchForm(call, '/config', field(UNTYPED, 'activation', 'Activation', { type: 'search', value: activation }), { app: application }))}</div></div>`,
    }
  },
  actions: {
    store: async (call) => {
      const path = `${pathOf(call)}${at`/${call.form.text('key')}`}`
      requireUnchanged(call, await readItems(call))
      const value = parseJsonField('value', call.form.text('value'))
      await call.api.send('PUT', path, { value }, scopeOf(call))
      return done(call, '/config', 'saved', { activation: call.query['activation'] })
    },
    remove: async (call) => {
      await call.api.send('DELETE', `${pathOf(call)}${at`/${call.form.text('key')}`}`, undefined, scopeOf(call))
      return done(call, '/config', 'removed', { activation: call.query['activation'] })
    },
  },
}

const renderForm = (call: PageCall, items: readonly Item[]): Markup =>
  actionForm(call, 'store', 'Store', {
    // An item of the same name is replaced, and the page shows all of them.
    seen: items,
    fields: (own) => html`${field(own, 'key', 'Name', { isRequired: true, placeholder: 'payments.limit' })}
      ${field(own, 'value', 'Value', { isRequired: true, rows: 4, placeholder: '{"daily": 500}', hint: 'JSON; an item of this name is replaced.' })}
      ${!call.query['activation'] && select(own, 'scope', 'For', SCOPES)}`,
  })
