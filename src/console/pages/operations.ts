// Searches operations of an application, with filters.
import type { ListedOperation } from '../answers.ts'
import { at } from '../api.ts'
import { ago, chips, type Column, empty, listCard, pageHead, reason, stateBadge, table } from '../elements.ts'
import { html, type Markup } from '../markup.ts'
import { readShown, sayOperation, type ShownOperation } from '../phone-preview.ts'
import { link, type Page, type PageCall } from '../page.ts'
import { type FoundUsers, searchUsers, userFilter, userForm, userPager } from '../user-search.ts'
import { sayState } from '../words.ts'
import { needsApplication } from './registrations.ts'

const PAGE = 25
const STATUSES = ['PENDING', 'APPROVED', 'REJECTED', 'CANCELED', 'EXPIRED', 'FAILED']
const COLUMNS: readonly Column[] = ['Operation', 'User', ['Status', 'side'], 'Created']

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
    const { status, cursor } = query
    const found = await searchUsers(
      call,
      (users) => api.get<Answer>(at`/admin/applications/${application}/operations`, { ...users, status, cursor, limit: PAGE }),
      (answer) => answer.operations.length === 0,
    )
    // Only the application, and administrators who may act for it, see the content of an operation.
    const shown = call.isActing ? await readShown(call, found.answer.operations.map(idOf)) : NOTHING
    const create = call.isActing && html`<a class="button is-primary" href="${link(call, '/operations/new')}">New operation</a>`
    return {
      title: 'Operations',
      body: html`${pageHead('Operations', { lead: 'What users are asked to approve on their phones.', actions: create })}
        ${listCard('Operations', html`${renderSearch(call)}${renderList(call, found, shown)}`)}`,
    }
  },
}

const idOf = ({ operationId }: ListedOperation): string => operationId
const NOTHING: ReadonlyMap<string, ShownOperation> = new Map()

function renderSearch(call: PageCall): Markup {
  const { status } = call.query
  const filter = userFilter(call)
  const choice = (label: string, value: string | undefined) => ({
    label,
    href: link(call, '/operations', { ...filter, status: value }),
    isChosen: (status || undefined) === value,
  })
  return html`${userForm(call, '/operations', { status })}${chips('Status', [choice('All', undefined), ...STATUSES.map((one) => choice(sayState(one), one))])}`
}

function renderList(call: PageCall, { answer, isAnywhere }: FoundUsers<Answer>, shown: typeof NOTHING): Markup {
  const { operations: found, nextCursor } = answer
  const { status, cursor } = call.query
  const filter = { ...userFilter(call), status }
  if (found.length === 0) {
    const isFiltered = [...Object.values(filter), cursor].some((value) => value !== undefined && value !== '')
    return isFiltered
      ? html`${empty(
          'Nothing matches',
          nextCursor === undefined ? 'Try another status, or no user.' : 'Nothing among the newest: there are older ones.',
          html`<a class="button is-plain" href="${link(call, '/operations')}">Show all</a>`,
        )}${userPager(call, '/operations', filter, isAnywhere, nextCursor)}`
      : empty('No operation yet', 'Back ends create them with POST /operations; here you can make one by hand.')
  }
  const rows = found.map((one) => renderRow(call, one, shown.get(one.operationId)))
  return html`${table('Operations', COLUMNS, rows)}${userPager(call, '/operations', filter, isAnywhere, nextCursor)}`
}

/** Renders an operation as the phone shows it. Callers who only read see only its template. */
function renderRow(call: PageCall, one: ListedOperation, shown: ShownOperation | undefined) {
  const { operationId, userId, status, statusReason, template, operationType, failureCount, maxFailureCount } = one
  const line = shown && sayOperation(shown.form)
  const name = line?.title ?? template
  return [
    html`${call.isActing ? html`<a href="${link(call, `/operations/${operationId}`)}">${name}</a>` : name}<br><small>${line?.detail !== undefined && html`${line.detail} · `}${line === undefined ? operationType : template}</small>`,
    userId === undefined
      ? html`<span class="soft">nobody yet</span>`
      : html`<a class="quiet" href="${link(call, '/registrations', { userId })}">${userId}</a>`,
    html`${stateBadge(status)}${statusReason !== undefined && html`<br><small>${reason(statusReason)}</small>`}${failureCount > 0 && html`<br><small>${failureCount} of ${maxFailureCount} wrong codes</small>`}`,
    ago(call.now, one.timestampCreated),
  ]
}
