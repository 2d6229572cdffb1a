// Operations of an application: the search with its filters.
import type { ListedOperation } from '../answers.ts'
import { at } from '../api.ts'
import { ago, card, type Choice, empty, pageHead, sayState, searchForm, select, stateBadge, table } from '../elements.ts'
import { html, type Markup } from '../markup.ts'
import { link, type Page, type PageCall } from '../page.ts'
import { needsApplication } from './registrations.ts'

const PAGE = 25
const STATUSES: readonly Choice[] = [
  ['', 'Any status'],
  ...['PENDING', 'APPROVED', 'REJECTED', 'CANCELED', 'EXPIRED', 'FAILED'].map((status): Choice => [status, sayState(status)]),
]

interface Answer {
  readonly operations: readonly ListedOperation[]
  readonly nextCursor?: string
}

export const operations: Page = {
  path: '/operations',
  section: 'operations',
  async render(call) {
    const { application, query, api } = call
    if (application === undefined) return { title: 'Operations', body: needsApplication(call, 'Operations') }
    const { userId, status, cursor } = query
    const search = { userId, status, cursor, limit: PAGE }
    const answer = await api.get<Answer>(at`/admin/applications/${application}/operations`, search)
    const create = call.isActing && html`<a class="button is-primary" href="${link(call, '/operations/new')}">New operation</a>`
    return {
      title: 'Operations',
      body: html`${pageHead('Operations', { lead: 'What users are asked to approve on their phones.', actions: create })}
        ${card('Operations', html`${renderSearch(call, application)}${renderList(call, answer)}`)}`,
    }
  },
}

const renderSearch = (call: PageCall, app: string): Markup => {
  const { userId, status } = call.query
  return searchForm(
    call,
    '/operations',
    html`<div class="field"><label for="userId">User</label><input id="userId" name="userId" type="search" value="${userId ?? ''}" placeholder="Exact name" autocomplete="off"></div>
    ${select('status', 'Status', STATUSES, status)}`,
    { app },
  )
}

function renderList(call: PageCall, { operations: found, nextCursor }: Answer): Markup {
  const { userId, status, cursor } = call.query
  if (found.length === 0) {
    const isFiltered = [userId, status, cursor].some((value) => value !== undefined && value !== '')
    return isFiltered
      ? empty(
          'Nothing matches',
          'Try another status, or no user.',
          html`<a class="button is-plain" href="${link(call, '/operations')}">Show all</a>`,
        )
      : empty('No operation yet', 'Back ends create them with POST /operations; here you can make one by hand.')
  }
  const rows = found.map((one) => {
    const name = call.isActing
      ? html`<a href="${link(call, `/operations/${one.operationId}`)}">${one.template}</a>`
      : one.template
    return [
      html`${name}<br><small>${one.operationType}</small>`,
      one.userId ?? html`<span class="soft">nobody yet</span>`,
      html`${stateBadge(one.status)}${one.statusReason !== undefined && html`<br><small>${one.statusReason}</small>`}`,
      one.failureCount === 0 ? '–' : `${one.failureCount} of ${one.maxFailureCount}`,
      ago(call.now, one.timestampCreated),
    ]
  })
  return html`${table('Operations', ['Operation', 'User', 'Status', 'Wrong codes', 'Created'], rows)}${
    nextCursor !== undefined &&
    html`<p class="pager"><a href="${link(call, '/operations')}">Newest</a><a href="${link(call, '/operations', { userId, status, cursor: nextCursor })}">Older →</a></p>`
  }`
}
