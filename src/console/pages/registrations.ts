// Registrations of an application: the search, and the beginning of a new one.
import type { ListedRegistration } from '../answers.ts'
import { at } from '../api.ts'
import {
  actionForm,
  ago,
  card,
  type Choice,
  empty,
  field,
  pageHead,
  sayState,
  searchForm,
  select,
  stateBadge,
  table,
} from '../elements.ts'
import { html, type Markup } from '../markup.ts'
import { done, link, type Page, type PageCall } from '../page.ts'

interface Answer {
  readonly registrations: readonly ListedRegistration[]
  readonly nextCursor?: string
}

const STATES: readonly Choice[] = [
  ['', 'Any state'],
  ...['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED'].map((state): Choice => [state, sayState(state)]),
]
const PROTOCOLS: readonly Choice[] = [
  ['', 'Any protocol'],
  ['3', '3'],
  ['4', '4'],
]

export const registrations: Page = {
  path: '/registrations',
  section: 'registrations',
  async render(call) {
    const { application, query } = call
    if (application === undefined) return { title: 'Registrations', body: needsApplication(call, 'Registrations') }
    const { userId, state, protocolVersion, cursor } = query
    const answer = await call.api.get<Answer>(at`/admin/applications/${application}/registrations`, {
      userId,
      state,
      protocolVersion,
      cursor,
      limit: 25,
    })
    return {
      title: 'Registrations',
      body: html`${pageHead('Registrations', { lead: 'A registration binds one phone to one user.' })}
        <div class="columns"><div>${card('Phones', html`${renderSearch(call, application)}${renderList(call, answer)}`)}</div>
        <div>${call.isActing && card('Register a user', renderCreate(call))}</div></div>`,
    }
  },
  actions: {
    create: async (call) => {
      const { form, api, application = '' } = call
      const otp = form.optional('otp')
      const { activationId } = await api.send<{ activationId: string }>(
        'POST',
        at`/admin/applications/${application}/registrations`,
        {
          userId: form.text('newUserId'),
          ...(otp !== undefined && { otp, otpPhase: form.text('otpPhase') }),
        },
      )
      return done(call, `/registrations/${encodeURIComponent(activationId)}`, 'created')
    },
  },
}

/** What pages about an application show when there is none. */
export const needsApplication = (call: PageCall, title: string): Markup =>
  html`${pageHead(title)}${empty(
    'There is no application yet',
    'Users, operations and webhooks belong to an application.',
    call.isAdmin && html`<a class="button is-primary" href="${link(call, '/applications')}">Create the first one</a>`,
  )}`

const renderSearch = (call: PageCall, app: string): Markup => {
  const { userId, state, protocolVersion } = call.query
  return searchForm(
    call,
    '/registrations',
    html`<div class="field"><label for="userId">User</label><input id="userId" name="userId" type="search" value="${userId ?? ''}" placeholder="Exact name" autocomplete="off"></div>
    ${select('state', 'State', STATES, state)}${select('protocolVersion', 'Protocol', PROTOCOLS, protocolVersion)}`,
    { app },
  )
}

function renderList(call: PageCall, { registrations: found, nextCursor }: Answer): Markup {
  const { userId, state, protocolVersion } = call.query
  if (found.length === 0) {
    const isFiltered = [userId, state, protocolVersion].some((value) => value !== undefined && value !== '')
    return isFiltered
      ? empty(
          'Nothing matches',
          'User names are compared as they are, capitals included.',
          html`<a class="button is-plain" href="${link(call, '/registrations')}">Show all</a>`,
        )
      : empty('No phone yet', 'Register a user, and let the app scan the QR code that the next page shows.')
  }
  const rows = found.map((one) => [
    html`<a href="${link(call, `/registrations/${encodeURIComponent(one.activationId)}`)}">${one.userId}</a>`,
    stateBadge(one.state),
    html`${one.name ?? '–'}<br><small>${[one.platform, one.deviceInfo].filter(Boolean).join(' · ')}</small>`,
    one.protocolVersion === undefined ? '–' : html`${one.protocolVersion}<br><small>${one.algorithm}</small>`,
    one.timestampLastUsed === undefined ? html`<span class="soft">never</span>` : ago(call.now, one.timestampLastUsed),
  ])
  return html`${table('Registrations', ['User', 'State', 'Phone', 'Protocol', 'Last used'], rows)}${
    nextCursor !== undefined &&
    html`<p class="pager"><a href="${link(call, '/registrations')}">Newest</a><a href="${link(call, '/registrations', { userId, state, protocolVersion, cursor: nextCursor })}">Older →</a></p>`
  }`
}

const renderCreate = (call: PageCall): Markup =>
  actionForm(call, 'create', 'Register', {
    fields: html`${field(call, 'newUserId', 'User', { isRequired: true, apiName: 'userId', placeholder: 'alice' })}
      <details class="more"><summary>With a one-time password</summary><div class="fields">
      ${field(call, 'otp', 'One-time password', { hint: 'Sent to the user some other way; it is asked for when the phone is bound.' })}
      ${select(
        'otpPhase',
        'Asked for',
        [
          ['ON_COMMIT', 'at the commit, by the bank'],
          ['ON_KEY_EXCHANGE', 'by the phone, which is then active at once'],
        ],
        'ON_COMMIT',
      )}</div></details>`,
  })
