// One message of an inbox, as its user reads it.
import { at } from '../api.ts'
import { backTo, badge, card, code, exactTime, facts, guardedForm, pageHead } from '../elements.ts'
import { html } from '../markup.ts'
import { done, link, type Page, type PageCall } from '../page.ts'
import type { InboxMessage } from './inbox.ts'

interface Detail extends InboxMessage {
  readonly userId: string
  readonly body: string
}

const pathOf = ({ params }: PageCall): string => at`/inbox/messages/${params['id'] ?? ''}`

export const inboxMessage: Page = {
  path: '/inbox/:id',
  section: 'inbox',
  async render(call) {
    const { messageId, userId, subject, summary, body, type, isRead, timestampCreated } = await call.api.get<Detail>(pathOf(call))
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
      const { userId } = await call.api.get<Detail>(pathOf(call))
      await call.api.send('DELETE', pathOf(call))
      return done(call, '/inbox', 'removed', { userId })
    },
  },
}
