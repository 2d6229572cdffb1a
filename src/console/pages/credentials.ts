// Shows and changes credentials of the bank's API, and lists who is signed in at the console.
import type { Credential } from '../../api/cloud/admin/users.ts'
import { endSession, listLiveSessions, type ListedSession } from '../../domain/credential/session.ts'
import { isStorable } from '../../lib/json.ts'
import { at, Refusal } from '../api.ts'
import {
  actionForm,
  ago,
  badge,
  card,
  type Choice,
  exactTime,
  field,
  guardedForm,
  pageHead,
  secretView,
  select,
  table,
} from '../elements.ts'
import { html, type Markup } from '../markup.ts'
import { done, link, type Page, type PageCall, readTime, type View } from '../page.ts'

const ROLES: readonly Choice[] = [
  ['integration', 'back end'],
  ['verification', 'asks whether requests of phones are genuine'],
  ['read-only', 'may only read'],
  ['admin', 'administrator'],
  ['internal', 'internal'],
]
const ROLE_NAMES = new Map(ROLES)
const RIGHT_NAMES = new Map([
  ['envelopes:application', 'opens envelopes of the application'],
  ['keys:derive', 'may derive keys of envelopes'],
])

export const credentials: Page = {
  path: '/credentials',
  section: 'credentials',
  async render(call) {
    const [{ users }, sessions] = await Promise.all([
      call.api.get<{ users: readonly Credential[] }>('/admin/users'),
      listLiveSessions(call.parts),
    ])
    const own = sessions.filter(({ username }) => call.isAdmin || username === call.session.caller.username)
    return {
      title: 'Credentials',
      body: html`${pageHead('Credentials', { lead: 'Who may call the bank’s API, and who is signed in here.' })}
        <div class="columns"><div>${card(
          'Credentials',
          table(
            'Credentials',
            ['User name', 'Role', ['State', 'side'], ['', 'wide']],
            users.map((user) => renderUser(call, user)),
          ),
        )}
        ${card(
          'Sessions of the console',
          table(
            'Sessions',
            ['User name', 'From', ['Last used', 'away'], ['Ends', 'away'], ['', 'side']],
            own.map((session) => renderSession(call, session)),
          ),
        )}</div>
        <div>${call.isAdmin && card('New credential', renderCreate(call))}</div></div>`,
    }
  },
  actions: {
    create: async (call) => {
      const { form, api } = call
      const application = form.optional('application')
      const expires = form.optional('expiresAt')
      const body = {
        username: form.text('username'),
        role: form.text('role'),
        ...(application !== undefined && { application }),
        ...(expires !== undefined && { expiresAt: readTime(expires) }),
      }
      const { username, password } = await api.send<{ username: string; password: string }>('POST', '/admin/users', body)
      return showPassword(call, username, password)
    },
    password: async (call) => {
      const name = call.form.text('username')
      const keepPreviousSeconds = Number(call.form.text('keepPreviousSeconds') || '0')
      const { password } = await call.api.send<{ password: string }>('POST', at`/admin/users/${name}/password`, {
        keepPreviousSeconds,
      })
      return showPassword(call, name, password)
    },
    remove: async (call) => {
      await call.api.send('DELETE', at`/admin/users/${call.form.text('username')}`)
      return done(call, '/credentials', 'removed')
    },
    end: async (call) => {
      const sessionId = call.form.text('sessionId')
      const session = (await listLiveSessions(call.parts)).find((one) => one.sessionId === sessionId)
      const by = call.session.caller.username
      if (session !== undefined && session.username !== by && !call.isAdmin)
        throw new Refusal(403, 'Only an administrator ends the session of another', [])
      // An administrator may end sessions that the list does not show.
      if (session !== undefined || (call.isAdmin && isStorable(sessionId))) await endSession(call.parts, sessionId, by)
      return done(call, '/credentials', 'ended')
    },
  },
}

const showPassword = (call: PageCall, username: string, password: string): View =>
  secretView(username, 'Its password', '', password, link(call, '/credentials'))

function renderUser(call: PageCall, { username, role, application, isDisabled, expiresAt, rights = [] }: Credential) {
  const isSelf = username === call.session.caller.username
  const hasEnded = isDisabled || (expiresAt !== undefined && expiresAt <= call.now)
  return [
    html`<strong>${username}</strong>${isSelf && html` <small>you</small>`}`,
    html`<span class="words">${ROLE_NAMES.get(role) ?? role}</span>${application !== undefined && html`<br><small>in ${application}</small>`}${rights.map((right) => html`<br><small>${RIGHT_NAMES.get(right) ?? right}</small>`)}`,
    html`${hasEnded ? badge('off', isDisabled ? 'Disabled' : 'Ended') : badge('good', 'Valid')}${expiresAt !== undefined && html`<br><small>until ${exactTime(expiresAt)}</small>`}`,
    call.isAdmin &&
      html`<div class="actions">${guardedForm(call, 'password', 'New password', {
        hidden: { username },
        question: isSelf ? 'This also ends your sessions here.' : `Its sessions end.`,
        fields: (own) =>
          field(own, 'keepPreviousSeconds', 'Seconds that the old one stays valid', {
            id: `keep-${username}`,
            type: 'number',
            value: '0',
          }),
      })}${!isSelf && guardedForm(call, 'remove', 'Remove', { hidden: { username }, question: `Nobody can log in as ${username} any more.` })}</div>`,
  ]
}

const renderSession = (call: PageCall, { sessionId, username, source, lastSeenAt, createdAt, expiresAt }: ListedSession) => [
  html`<strong>${username}</strong>${sessionId === call.session.sessionId && html` <small>this one</small>`}`,
  html`${source}<br><small>since ${ago(call.now, createdAt.getTime())}</small>`,
  ago(call.now, lastSeenAt.getTime()),
  ago(call.now, expiresAt.getTime()),
  actionForm(call, 'end', 'End', { tone: 'plain', hidden: { sessionId } }),
]

const renderCreate = (call: PageCall): Markup =>
  actionForm(call, 'create', 'Create', {
    fields: (own) => html`${field(own, 'username', 'User name', { isRequired: true, placeholder: 'core-banking' })}
      ${select(own, 'role', 'Role', ROLES)}
      ${select(own, 'application', 'Application', [['', 'none'], ...call.applications.map(({ id }): Choice => [id, id])], { value: call.application, hint: 'A back end needs one. A reader without one reads everything.' })}
      ${field(own, 'expiresAt', 'Ends (UTC)', { type: 'datetime-local', hint: 'Never, when it is left empty.' })}`,
  })
