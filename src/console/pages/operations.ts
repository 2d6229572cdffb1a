// Searches operations of an application, with filters.
import type { ListedOperation } from '../../api/cloud/admin/operations.ts'
import { at } from '../api.ts'
import { ago, type Choice, chips, type Column, empty, listCard, pageHead, reason, stateBadge, table } from '../elements.ts'
import { html } from '../markup.ts'
import { readShown, sayOperation, type ShownOperation } from '../phone-preview.ts'
import { link, type Page, type PageCall } from '../page.ts'
import { userList } from '../user-search.ts'
import { sayState } from '../words.ts'

const PAGE = 25
const STATUSES: readonly Choice[] = [
  ['', 'All'],
  ...['PENDING', 'APPROVED', 'REJECTED', 'CANCELED', 'EXPIRED', 'FAILED'].map((one): Choice => [one, sayState(one)]),
]
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
    const { status, cursor } = query
    const list = await userList<ListedOperation>(call, {
      path: '/operations',
      filters: { status },
      chips: (kept) => chips(call, '/operations', 'status', 'Status', STATUSES, kept),
      async read(users) {
        const search = { ...users, status, cursor, limit: PAGE }
        const answer = await api.get<Answer>(at`/admin/applications/${application}/operations`, search)
        return { items: answer.operations, nextCursor: answer.nextCursor }
      },
      async render(items) {
        // Only the application, and administrators who may act for it, see the content of an operation.
        const shown = call.isActing
          ? await readShown(
              call,
              items.map(({ operationId }) => operationId),
            )
          : undefined
        const rows = items.map((one) => renderRow(call, one, shown?.get(one.operationId)))
        return table('Operations', COLUMNS, rows)
      },
      none: empty('No operation yet', 'Back ends create them with POST /operations; here you can make one by hand.'),
      noneFits: 'Try another status, or no user.',
    })
    const create = call.isActing && html`<a class="button is-primary" href="${link(call, '/operations/new')}">New operation</a>`
    return {
      title: 'Operations',
      body: html`${pageHead('Operations', { lead: 'What users are asked to approve on their phones.', actions: create })}
        ${listCard('Operations', list)}`,
    }
  },
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
