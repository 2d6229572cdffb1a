// Shows the first page: the health of the server, recent traffic, and open tasks.
import type { AdminEvent } from '../../api/cloud/admin/audit.ts'
import type { ListedOperation } from '../../api/cloud/admin/operations.ts'
import type { ListedRegistration } from '../../api/cloud/admin/registrations.ts'
import type { Webhook } from '../../api/cloud/admin/webhooks.ts'
import type { Look } from '../../metrics/metrics.ts'
import { at, unlessRefused } from '../api.ts'
import { ago, card, empty, facts, live, pageHead, sayAge, sayDistance, type Tone } from '../elements.ts'
import { type Attention, DAY_MS, findProblems, findTasks, pinTone, renderTasks } from '../attention.ts'
import { html, type Markup } from '../markup.ts'
import { link, type Page, type PageCall } from '../page.ts'
import { type Mark, plot, processPlots } from '../plot.ts'
import { sayAction } from '../words.ts'
import { deliveryState } from './webhooks.ts'

/** The maximum that the API gives in one answer. */
const OPERATIONS_MAX = 1_000

export const overview: Page = {
  path: '/',
  section: 'overview',
  async render(call) {
    const state = await readState(call)
    return {
      title: 'Overview',
      body: html`${pageHead('Overview', { lead: html`What happens in <strong>${call.application}</strong>. The page keeps itself up to date.` })}
        ${live(
          'overview',
          call.here,
          10,
          html`<div class="stack">${renderTasks(findTasks({ ...state, problems: findProblems(state.seen, state.isReady, call.now) }, (path, query) => link(call, path, query), call.now))}${renderFigures(call, state)}
          <div class="columns">
            <div>${card('Operations of a day', renderOperations(call, state.operations))}${card('The last hour of this process', processPlots(state.seen, call.now), html`<small>pawl ${state.seen.version}, ${state.seen.database}, up ${sayAge(call.now / 1000 - state.seen.startedAt)}</small>`)}</div>
            <div>${renderQueues(call, state.webhooks)}${renderChanges(call, state.changes)}</div>
          </div></div>`,
        )}`,
    }
  },
}

interface State extends Omit<Attention, 'problems'> {
  readonly isReady: boolean
  readonly seen: Look
  readonly operations: readonly ListedOperation[]
  readonly changes: readonly AdminEvent[]
}

async function readState({ api, parts, application }: PageCall): Promise<State> {
  const [seen, health, { operations }, { registrations, nextCursor }, { webhooks }, { providers }, { domains }, { items }] =
    await Promise.all([
      parts.metrics.look(),
      api.get('/health/ready').then(
        () => true,
        () => false,
      ),
      api.get<Pick<State, 'operations'>>(at`/admin/applications/${application}/operations`, { limit: OPERATIONS_MAX }),
      api.get<{ registrations: ListedRegistration[]; nextCursor?: string }>(
        at`/admin/applications/${application}/registrations`,
        {
          state: 'PENDING_COMMIT',
          limit: 5,
        },
      ),
      api.get<Pick<State, 'webhooks'>>('/admin/webhooks'),
      api.get<Pick<State, 'providers'>>('/admin/push'),
      api.get<Pick<State, 'domains'>>(at`/admin/apps/${application}`),
      unlessRefused(api.get<{ items: AdminEvent[] }>('/admin/audit', { limit: 6 })).then((found) => found ?? { items: [] }),
    ])
  const own = webhooks.filter((webhook) => webhook.application === application)
  const pending = { pending: registrations, isPendingCut: nextCursor !== undefined }
  return { isReady: health, seen, operations, ...pending, webhooks: own, providers, domains, changes: items }
}

function renderFigures(call: PageCall, { isReady, operations, webhooks, domains }: State): Markup {
  const recent = operations.filter(({ timestampCreated }) => timestampCreated > call.now - DAY_MS)
  const decided = recent.filter(({ status }) => ['APPROVED', 'REJECTED', 'FAILED', 'EXPIRED'].includes(status))
  const approved = decided.filter(({ status }) => status === 'APPROVED').length
  const waiting = operations.filter(({ status }) => status === 'PENDING').length
  const failures = recent.filter(({ status }) => status === 'FAILED').length
  const queue = webhooks.reduce((sum, webhook) => sum + webhook.waiting, 0)
  const dead = webhooks.reduce((sum, webhook) => sum + webhook.dead, 0)
  // Ended pins stay until somebody removes them.
  const pins = domains.flatMap(({ certificates }) => certificates)
  const ends = pins.filter(({ isExpired }) => !isExpired).map(({ expires }) => expires * 1000)
  const firstEnd = ends.length === 0 ? undefined : Math.min(...ends)
  const endTone = firstEnd === undefined ? (pins.length > 0 ? 'bad' : undefined) : pinTone(firstEnd, call.now)
  // Operations that the answer has no room for are counted in none of the figures.
  const more = recent.length === OPERATIONS_MAX ? '+' : ''
  const moreWait = operations.length === OPERATIONS_MAX ? '+' : ''
  return html`<div class="figures">
    ${figure('Service', isReady ? 'Ready' : 'Not ready', isReady ? 'database takes writes' : 'the database does not answer', isReady ? 'good' : 'bad')}
    ${figure('Operations, 24 hours', `${recent.length}${more}`, waiting === 1 && moreWait === '' ? 'one waits for its phone' : `${waiting}${moreWait} wait for their phones`, undefined, link(call, '/operations'))}
    ${figure('Approved', decided.length === 0 ? '–' : `${Math.round((approved / decided.length) * 100)} %`, `of ${decided.length}${more} that ended`)}
    ${figure('Failed', `${failures}${more}`, 'too many wrong codes', failures > 0 ? 'bad' : undefined, link(call, '/operations', { status: 'FAILED' }))}
    ${figure('Webhook queue', String(queue), dead > 0 ? `${dead} given up` : 'none given up', dead > 0 ? 'bad' : undefined, link(call, '/webhooks'))}
    ${figure('Next certificate', firstEnd === undefined ? '–' : sayDistance(firstEnd - call.now), firstEnd !== undefined ? 'until a pin ends' : pins.length > 0 ? 'all pins have ended' : 'none is pinned', endTone === 'good' ? undefined : endTone, link(call, '/certificates'))}
  </div>`
}

function figure(name: string, value: string, note: string, tone?: Tone, href?: string): Markup {
  const body = html`<span class="figure-name">${name}</span><span class="figure-value${tone !== undefined && html` is-${tone}`}">${value}</span><small>${note}</small>`
  return href === undefined ? html`<div class="figure">${body}</div>` : html`<a class="figure" href="${href}">${body}</a>`
}

function renderOperations(call: PageCall, operations: readonly ListedOperation[]): Markup {
  const dayAgo = call.now - DAY_MS
  // For a busy application the answer does not reach back a day. The plot then begins with the oldest operation in it, and says so.
  const isCut = operations.length === OPERATIONS_MAX
  const from = isCut ? Math.max(dayAgo, operations.at(-1)?.timestampCreated ?? dayAgo) : dayAgo
  const recent = operations.filter(({ timestampCreated }) => timestampCreated >= from)
  if (recent.length === 0) {
    return empty(
      'No operation in 24 hours',
      'An operation is what a user is asked to approve: a login, a payment.',
      call.isActing && html`<a class="button is-plain" href="${link(call, '/operations/new')}">Create one</a>`,
    )
  }
  const marks = recent.map(({ timestampCreated, status }) => ({ time: timestampCreated, kind: KINDS[status] ?? 'rest' }) as const)
  const label = `${recent.length} operations since ${sayDistance(from - call.now)}`
  return html`${plot(marks, { from, to: call.now, label })}${from > dayAgo && html`<p class="hint">Only the newest ${OPERATIONS_MAX} are counted here.</p>`}
    <p class="legend"><span class="good">approved</span><span class="bad">rejected or failed</span><span>waiting, expired, canceled</span></p>`
}

const KINDS: Readonly<Record<string, Mark['kind']>> = { APPROVED: 'good', REJECTED: 'bad', FAILED: 'bad' }

function renderQueues(call: PageCall, webhooks: readonly Webhook[]): Markup {
  if (webhooks.length === 0)
    return card('Webhooks', html`<p class="soft">None: back ends have to ask what became of an operation.</p>`)
  return card(
    'Webhooks',
    facts(
      webhooks.map((one) => [
        html`<a href="${link(call, at`/webhooks/${one.id}`)}">${one.name}</a>`,
        html`<span class="wrapped">${deliveryState(one)} <small>${one.waiting} waiting${one.lagSeconds >= 5 && html`, the oldest for ${sayAge(one.lagSeconds)}`}</small></span>`,
      ]),
    ),
  )
}

const renderChanges = (call: PageCall, changes: readonly AdminEvent[]): Markup =>
  card(
    'Latest changes',
    changes.length === 0
      ? html`<p class="soft">No administrator has changed anything yet.</p>`
      : html`<ul class="steps">${changes.map(
          ({ username, action, target, timestamp }) =>
            html`<li>${sayAction(action)} ${target}<br><small>${username} · ${ago(call.now, timestamp)}</small></li>`,
        )}</ul>`,
    html`<a href="${link(call, '/audit')}">All</a>`,
  )
