// Shows the inbox of a user: which messages were written and read, and one message as its user reads it. Also writes a new message.
import type { Message, MessageDetail } from '../../api/cloud/inbox.ts'
import { at } from '../api.ts'
import {
  actionForm,
  ago,
  backTo,
  badge,
  card,
  type Choice,
  code,
  empty,
  exactTime,
  facts,
  field,
  guardedForm,
  pageHead,
  pager,
  searchForm,
  select,
  table,
  UNTYPED,
} from '../elements.ts'
import { html, type Markup } from '../markup.ts'
import { done, link, type Page, type PageCall } from '../page.ts'

const PAGE = 20
const TYPES: readonly Choice[] = [
  ['text', 'plain text'],
  ['html', 'HTML, which the app draws'],
]
const SHOWN: readonly Choice[] = [
  ['', 'All'],
  ['true', 'Unread'],
]

export const inbox: Page = {
  path: '/inbox',
  section: 'inbox',
  async render(call) {
    const { application, query, api, isActing } = call
    const userId = query['userId'] || undefined
    const search = { userId, onlyUnread: query['onlyUnread'], page: query['page'], limit: PAGE }
    const { messages } =
      userId === undefined || !isActing
        ? { messages: [] }
        : await api.get<{ messages: readonly Message[] }>('/inbox/messages', search)
    const fields = html`${field(UNTYPED, 'userId', 'User', { id: 'of', type: 'search', value: userId, placeholder: 'Exact name' })}
      ${select(UNTYPED, 'onlyUnread', 'Messages', SHOWN, { value: query['onlyUnread'] })}`
    const list = card(
      'Messages',
      html`${searchForm(call, '/inbox', fields, { app: application })}${renderList(call, userId, messages)}`,
    )
    return {
      title: 'Inbox',
      body: html`${pageHead('Inbox', { lead: 'Messages that users read in the app, beside what they approve.' })}
        <div class="columns"><div>${list}</div><div>${isActing && card('New message', renderForm(call, userId))}</div></div>`,
    }
  },
  actions: {
    send: async (call) => {
      const { form, api } = call
      const userId = form.text('userId')
      const [subject, summary, body] = ['subject', 'summary', 'body'].map((name) => form.text(name))
      await api.send('POST', '/inbox/messages', { userId, subject, summary, body, type: form.text('type') })
      return done(call, '/inbox', 'sent', { userId })
    },
  },
}

function renderList(call: PageCall, userId: string | undefined, found: readonly Message[]): Markup {
  if (userId === undefined) return empty('Whose inbox?', 'Name a user: messages are read one user at a time.')
  if (!call.isActing)
    return empty('Not for this credential', 'Messages belong to an application; administrators who may act for it read them.')
  const { onlyUnread, page } = call.query
  if (found.length === 0)
    return empty(
      'No message',
      onlyUnread || page
        ? 'None that fits.'
        : html`<strong>${userId}</strong> was sent nothing yet. The form writes the first message.`,
    )
  const rows = found.map(({ messageId, subject, summary, isRead, timestampCreated }) => [
    html`<a href="${link(call, at`/inbox/${messageId}`)}">${subject}</a><br><small>${summary}</small>`,
    isRead ? badge('off', 'Read') : badge('info', 'Unread'),
    ago(call.now, timestampCreated),
  ])
  const next = found.length === PAGE ? Number(page ?? 0) + 1 : undefined
  return html`${table('Messages', ['Message', ['State', 'side'], 'Sent'], rows)}${pager(call, '/inbox', next, { by: 'page', kept: { userId, onlyUnread } })}`
}

const renderForm = (call: PageCall, userId: string | undefined): Markup =>
  html`${actionForm(call, 'send', 'Put it into the inbox', {
    fields: (own) => html`${field(own, 'userId', 'User', { isRequired: true, placeholder: 'alice', value: userId })}
      ${field(own, 'subject', 'Subject', { isRequired: true })}
      ${field(own, 'summary', 'Summary', { isRequired: true, hint: 'What the list of messages shows.' })}
      ${select(own, 'type', 'Body is', TYPES)}
      ${field(own, 'body', 'Body', { isRequired: true, rows: 6 })}`,
  })}<p class="hint">The app shows the message when it next asks for messages. If pawl sends pushes, a push tells the phone (docs/PUSH.md).</p>`

const pathOf = ({ params }: PageCall): string => at`/inbox/messages/${params.id}`

export const inboxMessage: Page = {
  path: '/inbox/:id',
  section: 'inbox',
  async render(call) {
    const { messageId, userId, subject, summary, body, type, isRead, timestampCreated } = await call.api.get<MessageDetail>(
      pathOf(call),
    )
    const back = backTo(link(call, '/inbox', { userId }), `Inbox of ${userId}`)
    const remove = guardedForm(call, 'remove', 'Remove the message', {
      question: `${userId} does not find it in the app any more.`,
    })
    return {
      title: subject,
      body: html`${pageHead(subject, { back, lead: summary })}
        <div class="columns"><div>${card(type === 'html' ? 'Body, in HTML' : 'Body', html`<div class="letter${type === 'html' && html` is-source`}">${body}</div>`)}</div>
        <div>${card(
          'Message',
          facts([
            ['To', html`<a href="${link(call, '/registrations', { userId })}">${userId}</a>`],
            ['State', isRead ? badge('off', 'Read') : badge('info', 'Unread')],
            ['Sent', exactTime(timestampCreated)],
            ['Message', code(messageId, 'the id of the message')],
          ]),
        )}${call.isActing && card('Actions', remove)}</div></div>`,
    }
  },
  actions: {
    remove: async (call) => {
      const { userId } = await call.api.get<MessageDetail>(pathOf(call))
      await call.api.send('DELETE', pathOf(call))
      return done(call, '/inbox', 'removed', { userId })
    },
  },
}
