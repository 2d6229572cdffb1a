// Searches registrations of an application, and begins a new one.
import type { ListedRegistration } from '../answers.ts'
import { at } from '../api.ts'
import {
  actionForm,
  ago,
  backTo,
  card,
  chips,
  type Choice,
  type Column,
  empty,
  field,
  listCard,
  more,
  pageHead,
  select,
  stateBadge,
  table,
} from '../elements.ts'
import { html, type Markup } from '../markup.ts'
import { done, link, type Page, type PageCall } from '../page.ts'
import { type FoundUsers, searchUsers, userFilter, userForm, userPager } from '../user-search.ts'
import { sayState } from '../words.ts'

interface Answer {
  readonly registrations: readonly ListedRegistration[]
  readonly nextCursor?: string
}

const STATES = ['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED']
const COLUMNS: readonly Column[] = ['User', ['State', 'side'], 'Phone', ['Protocol', 'away'], 'Last used']

export const registrations: Page = {
  path: '/registrations',
  section: 'registrations',
  async render(call) {
    const { application, query } = call
    if (application === undefined) return { title: 'Registrations', body: needsApplication(call, 'Registrations') }
    const { state, protocolVersion, cursor } = query
    const found = await searchUsers(
      call,
      (users) => {
        const search = { ...users, state, protocolVersion, cursor, limit: 25 }
        return call.api.get<Answer>(at`/admin/applications/${application}/registrations`, search)
      },
      (answer) => answer.registrations.length === 0,
    )
    const create =
      call.isActing && html`<a class="button is-primary" href="${link(call, '/registrations/new')}">Register a user</a>`
    return {
      title: 'Registrations',
      body: html`${pageHead('Registrations', { lead: 'A registration binds one phone to one user.', actions: create })}
        ${listCard('Phones', html`${renderSearch(call)}${renderList(call, found)}`)}`,
    }
  },
}

export const registrationNew: Page = {
  path: '/registrations/new',
  section: 'registrations',
  async render(call) {
    const back = backTo(link(call, '/registrations'), 'Registrations')
    return {
      title: 'Register a user',
      body: html`${pageHead('Register a user', { back, lead: 'The next page shows the QR code that the app scans.' })}
        ${call.isActing ? card('User', renderCreate(call)) : empty('Not for this credential', 'Registrations are created by back ends, and by administrators who may act for an application.')}`,
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
      return done(call, at`/registrations/${activationId}`, 'created')
    },
  },
}

/** The content of pages about an application if there is none. */
export const needsApplication = (call: PageCall, title: string): Markup =>
  html`${pageHead(title)}${empty(
    'There is no application yet',
    'Users, operations and webhooks belong to an application.',
    call.isAdmin && html`<a class="button is-primary" href="${link(call, '/applications')}">Create the first one</a>`,
  )}`

function renderSearch(call: PageCall): Markup {
  const { state, protocolVersion } = call.query
  const filter = { ...userFilter(call), state, protocolVersion }
  const choice = (name: 'state' | 'protocolVersion', label: string, value: string | undefined) => ({
    label,
    href: link(call, '/registrations', { ...filter, [name]: value }),
    isChosen: (call.query[name] || undefined) === value,
  })
  return html`${userForm(call, '/registrations', { state, protocolVersion })}
    ${chips('State', [choice('state', 'All', undefined), ...STATES.map((one) => choice('state', sayState(one), one))])}
    ${chips('Protocol', [choice('protocolVersion', 'Any protocol', undefined), choice('protocolVersion', 'Protocol 3', '3'), choice('protocolVersion', 'Protocol 4', '4')])}`
}

function renderList(call: PageCall, { answer, isAnywhere }: FoundUsers<Answer>): Markup {
  const { registrations: found, nextCursor } = answer
  const { state, protocolVersion } = call.query
  const filter = { ...userFilter(call), state, protocolVersion }
  if (found.length === 0) {
    const isFiltered = Object.values(filter).some((value) => value !== undefined && value !== '')
    return isFiltered
      ? html`${empty(
          'Nothing matches',
          nextCursor === undefined
            ? 'No registration is in that state, or no name holds that. Capitals do not matter.'
            : 'Nothing among the newest: there are older ones.',
          html`<a class="button is-plain" href="${link(call, '/registrations')}">Show all</a>`,
        )}${userPager(call, '/registrations', filter, isAnywhere, nextCursor)}`
      : empty('No phone yet', 'Register a user, and let the app scan the QR code that the next page shows.')
  }
  const rows = found.map((one) => [
    html`<a href="${link(call, at`/registrations/${one.activationId}`)}">${one.userId}</a>`,
    stateBadge(one.state),
    one.name === undefined
      ? html`<span class="soft">no phone yet</span>`
      : html`${one.name}<br><small>${one.platform}${one.deviceInfo !== undefined && html` · ${one.deviceInfo}`}</small>`,
    one.protocolVersion !== undefined &&
      html`<span title="${one.algorithm ?? ''}">${one.highestProtocolVersion ?? one.protocolVersion}</span>`,
    one.timestampLastUsed === undefined ? html`<span class="nowrap">never used</span>` : ago(call.now, one.timestampLastUsed),
  ])
  return html`${table('Registrations', COLUMNS, rows)}${userPager(call, '/registrations', filter, isAnywhere, nextCursor)}`
}

const OTP_PHASES: readonly Choice[] = [
  ['ON_COMMIT', 'at the commit, by the bank'],
  ['ON_KEY_EXCHANGE', 'by the phone, which is then active at once'],
]

const renderCreate = (call: PageCall): Markup =>
  actionForm(call, 'create', 'Register', {
    fields: (own) => html`${field(own, 'newUserId', 'User', { isRequired: true, apiName: 'userId', placeholder: 'alice' })}
      ${more(
        'With a one-time password',
        html`<div class="fields">
        ${field(own, 'otp', 'One-time password', { hint: 'Sent to the user some other way; it is asked for when the phone is bound.' })}
        ${select(own, 'otpPhase', 'Asked for', OTP_PHASES)}</div>`,
        own.refusal !== undefined,
      )}`,
  })
