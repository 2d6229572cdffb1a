// Searches registrations of an application, and begins a new one.
import type { ListedRegistration } from '../../api/cloud/admin/registrations.ts'
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
import { userList } from '../user-search.ts'
import { sayState } from '../words.ts'

interface Answer {
  readonly registrations: readonly ListedRegistration[]
  readonly nextCursor?: string
}

const STATES: readonly Choice[] = [
  ['', 'All'],
  ...['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED'].map((one): Choice => [one, sayState(one)]),
]
const PROTOCOLS: readonly Choice[] = [
  ['', 'Any protocol'],
  ['3', 'Protocol 3'],
  ['4', 'Protocol 4'],
]
const COLUMNS: readonly Column[] = ['User', ['State', 'side'], 'Phone', ['Protocol', 'away'], 'Last used']

export const registrations: Page = {
  path: '/registrations',
  section: 'registrations',
  async render(call) {
    const { application, query, api } = call
    const { state, protocolVersion, cursor } = query
    const path = '/registrations'
    const list = await userList<ListedRegistration>(call, {
      path,
      filters: { state, protocolVersion },
      chips: (kept) => [
        chips(call, path, 'state', 'State', STATES, kept),
        chips(call, path, 'protocolVersion', 'Protocol', PROTOCOLS, kept),
      ],
      async read(users) {
        const search = { ...users, state, protocolVersion, cursor, limit: 25 }
        const answer = await api.get<Answer>(at`/admin/applications/${application}/registrations`, search)
        return { items: answer.registrations, nextCursor: answer.nextCursor }
      },
      render: async (items) =>
        table(
          'Registrations',
          COLUMNS,
          items.map((one) => renderRow(call, one)),
        ),
      none: empty('No phone yet', 'Register a user, and let the app scan the QR code that the next page shows.'),
      noneFits: 'No registration is in that state, or no name holds that. Capitals do not matter.',
    })
    const create =
      call.isActing && html`<a class="button is-primary" href="${link(call, '/registrations/new')}">Register a user</a>`
    return {
      title: 'Registrations',
      body: html`${pageHead('Registrations', { lead: 'A registration binds one phone to one user.', actions: create })}
        ${listCard('Phones', list)}`,
    }
  },
}

const renderRow = (call: PageCall, one: ListedRegistration) => [
  html`<a href="${link(call, at`/registrations/${one.activationId}`)}">${one.userId}</a>`,
  stateBadge(one.state),
  one.name === undefined
    ? html`<span class="soft">no phone yet</span>`
    : html`${one.name}<br><small>${one.platform}${one.deviceInfo !== undefined && html` · ${one.deviceInfo}`}</small>`,
  one.protocolVersion !== undefined &&
    html`<span title="${one.algorithm ?? ''}">${one.highestProtocolVersion ?? one.protocolVersion}</span>`,
  one.timestampLastUsed === undefined ? html`<span class="nowrap">never used</span>` : ago(call.now, one.timestampLastUsed),
]

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
      const { form, api, application } = call
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
