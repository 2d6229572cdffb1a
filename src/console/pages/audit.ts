// Shows the audit logs: changes of administrators, events of a user's phones, and the verification that no row was altered.
import type { AdminEvent, AdminEvents, Chain, DeviceEvent, DeviceEvents } from '../../api/cloud/admin/audit.ts'
import { type Query, unlessRefused } from '../api.ts'
import {
  actionForm,
  ago,
  badge,
  card,
  code,
  empty,
  field,
  more,
  pageHead,
  pager,
  sayDistance,
  searchForm,
  table,
  UNTYPED,
} from '../elements.ts'
import { readDeviceEvents, renderEvents } from '../device-events.ts'
import { html, type Markup } from '../markup.ts'
import { sayAction } from '../words.ts'
import { type Download, link, type Page, type PageCall, readTime, type View } from '../page.ts'

const PAGE = 50
/** The maximum that the API gives in one answer. */
const EXPORT_MAX = 1_000
const EXPORT = 'Export up to 1,000 rows'
const SEAL_LAG_SECONDS = 60

export const audit: Page = {
  path: '/audit',
  section: 'audit',
  render: (call) => renderAdministrators(call, undefined),
  actions: {
    verify: async (call) => {
      const report = await call.api.get<{ chains: readonly Chain[] }>('/admin/audit/verification')
      return renderAdministrators(call, report.chains)
    },
    export: async ({ api, query }) => {
      const { items } = await api.get<AdminEvents>('/admin/audit', {
        ...searchOf(query),
        before: query['before'],
        limit: EXPORT_MAX,
      })
      return toDownload('administrators', items)
    },
  },
}

export const auditDevices: Page = {
  path: '/audit/devices',
  section: 'audit',
  async render(call) {
    const { userId, before, from, to } = call.query
    const found = userId ? await readDevices(call, { before, limit: PAGE }) : { items: [] }
    const items = found?.items
    const fields = html`${search('userId', 'User', userId)}${day('from', 'From', from)}${day('to', 'To', to)}`
    return {
      title: 'Audit',
      body: html`${renderHead(call, 'devices')}${card(
        'What happened to the phones of a user',
        html`${searchForm(call, '/audit/devices', fields, { app: call.application })}${renderDevices(call, items)}${pager(call, '/audit/devices', found?.next, { kept: { userId, from, to } })}`,
        items !== undefined && items.length > 0 && actionForm(call, 'export', EXPORT, { tone: 'plain' }),
      )}`,
    }
  },
  actions: {
    export: async (call) => toDownload('devices', (await readDevices(call, { limit: EXPORT_MAX }))?.items ?? []),
  },
}

const searchOf = ({ username, action, from, to }: PageCall['query']): Query => ({
  username: username || undefined,
  action: action || undefined,
  timestampFrom: startOf(from),
  timestampTo: endOf(to),
})

/** Reads the events of a user's phones. Undefined for a user who never had a registration in the application. */
async function readDevices(call: PageCall, page: Query): Promise<DeviceEvents | undefined> {
  const { userId = '', from, to } = call.query
  if (call.application === '') return undefined
  const [timestampFrom, timestampTo] = [startOf(from), endOf(to)]
  // Chosen days replace the last 30 days. Without a first day they reach back to the beginning.
  const range = timestampFrom === undefined && timestampTo === undefined ? {} : { timestampFrom, timestampTo }
  return unlessRefused(readDeviceEvents(call, userId, { ...range, ...page }), 'ERROR_AUDIT')
}

// Days are in UTC.
const startOf = (date = '') => (date === '' ? undefined : readTime(`${date}T00:00:00.000`))
const endOf = (date = '') => (date === '' ? undefined : readTime(`${date}T23:59:59.999`))

async function renderAdministrators(call: PageCall, chains: readonly Chain[] | undefined): Promise<View> {
  const { username, action, from, to, before } = call.query
  const { items, next } = await call.api.get<AdminEvents>('/admin/audit', {
    ...searchOf(call.query),
    before,
    limit: PAGE,
  })
  const fields = html`${search('username', 'Administrator', username)}${search('action', 'Action', action)}${day('from', 'From', from)}${day('to', 'To', to)}`
  const list = table(
    'Changes',
    ['What', 'By', 'When', ['Change', 'wide']],
    items.map((one) => renderEvent(call, one)),
    empty('Nothing matches', 'Each change by an administrator is here, until it is older than PAWL_ADMIN_AUDIT_RETENTION_DAYS.'),
  )
  return {
    title: 'Audit',
    body: html`${renderHead(call, 'administrators')}${card('State of the logs', renderChains(chains, (await call.parts.metrics.look()).sealLagSeconds), actionForm(call, 'verify', 'Verify now', { tone: 'plain' }))}
      ${card(
        'What administrators changed',
        html`${searchForm(call, '/audit', fields, { app: call.application })}${list}${pager(call, '/audit', next, { kept: { username, action, from, to } })}`,
        items.length > 0 && actionForm(call, 'export', EXPORT, { tone: 'plain' }),
      )}`,
  }
}

function renderHead(call: PageCall, tab: 'administrators' | 'devices'): Markup {
  const current = (own: string) => own === tab && html` aria-current="page"`
  return html`${pageHead('Audit', { lead: 'Rows are only ever added, and sealed in a chain a few seconds later.' })}
    <nav class="tabs" aria-label="Logs"><a href="${link(call, '/audit')}"${current('administrators')}>Administrators</a><a href="${link(call, '/audit/devices')}"${current('devices')}>Phones of a user</a></nav>`
}

const search = (name: string, label: string, value: string | undefined): Markup =>
  field(UNTYPED, name, label, { type: 'search', value })
const day = (name: string, label: string, value: string | undefined): Markup =>
  field(UNTYPED, name, label, { type: 'date', value })

const renderEvent = (call: PageCall, { action, target, username, timestamp, before, after }: AdminEvent) => [
  html`${sayAction(action)} ${target}`,
  username,
  ago(call.now, timestamp),
  more(
    'Show',
    html`<p class="hint">${action}</p>${(before !== undefined || after !== undefined) && html`<pre>${renderChange(before, after)}</pre>`}`,
  ),
]

const renderChange = (before: unknown, after: unknown): string =>
  `before ${JSON.stringify(before, undefined, 2) ?? 'nothing'}\nafter ${JSON.stringify(after, undefined, 2) ?? 'nothing'}`

function renderDevices(call: PageCall, items: readonly DeviceEvent[] | undefined): Markup {
  if (items === undefined)
    return empty(
      'Nobody of that name',
      'No user of this name has or had a registration here. Names are compared whole, capitals included.',
    )
  if (!call.query['userId']) return empty('Whose phones?', 'Name a user: the log is read one user at a time.')
  const none = empty(
    'Nothing found',
    'Nothing has happened to the phones of this user in the last 30 days, or in the days that you chose.',
  )
  return renderEvents(call, items, none)
}

function renderChains(chains: readonly Chain[] | undefined, sealLagSeconds: number): Markup {
  const lag =
    sealLagSeconds < SEAL_LAG_SECONDS
      ? html`${badge('good', 'Sealed')} Every row older than a few seconds is sealed.`
      : html`${badge('wait', 'Behind')} The oldest row without a seal is from ${sayDistance(-sealLagSeconds * 1000)}.`
  if (chains === undefined)
    return html`<p>${lag}</p><p class="soft">A verification reads every row and checks its seal. The longer the logs are, the longer it takes. It changes nothing.</p>`
  const rows = chains.map(({ chain, isIntact, sealed, unsealed, headPosition, headSeal, fault }) => [
    html`<strong>${chain}</strong>`,
    isIntact
      ? badge('good', 'Intact')
      : html`${badge('bad', 'Altered')}<br><small>${fault?.problem} ${fault?.position !== undefined && `at ${fault.position}`}</small>`,
    html`${sealed} sealed<br><small>${unsealed} wait for their seal</small>`,
    html`${headPosition} ${code(headSeal, 'the seal of the head')}`,
  ])
  return table('Chains', ['Log', ['State', 'side'], 'Rows', ['Head, to be noted elsewhere', 'wide']], rows)
}

const toDownload = (name: string, items: readonly unknown[]): Download => ({
  fileName: `pawl-audit-${name}.jsonl`,
  type: 'application/x-ndjson; charset=utf-8',
  text: items.map((item) => `${JSON.stringify(item)}\n`).join(''),
})
