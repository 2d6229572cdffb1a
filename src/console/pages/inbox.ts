// A message that a user reads in the app.
import { actionForm, card, empty, field, pageHead, select } from '../elements.ts'
import { html } from '../markup.ts'
import { done, type Page } from '../page.ts'
import { needsApplication } from './registrations.ts'

export const inbox: Page = {
  path: '/inbox',
  section: 'inbox',
  async render(call) {
    if (call.application === undefined) return { title: 'Inbox', body: needsApplication(call, 'Inbox') }
    const head = pageHead('Inbox', {
      lead: `A message to a user of ${call.application}, which waits in the app until it is read.`,
    })
    if (!call.isActing)
      return {
        title: 'Inbox',
        body: html`${head}${empty('Not for this credential', 'Messages are written by back ends, and by administrators who may act for an application.')}`,
      }
    const { form } = call
    return {
      title: 'Inbox',
      body: html`${head}<div class="columns"><div>${card(
        'New message',
        actionForm(call, 'send', 'Put it into the inbox', {
          fields: html`${field(call, 'userId', 'User', { isRequired: true, placeholder: 'alice' })}
            ${field(call, 'subject', 'Subject', { isRequired: true })}
            ${field(call, 'summary', 'Summary', { isRequired: true, hint: 'What the list of messages shows.' })}
            ${select(
              'type',
              'Body is',
              [
                ['text', 'plain text'],
                ['html', 'HTML, which the app draws'],
              ],
              form.optional('type'),
            )}
            ${field(call, 'body', 'Body', { isRequired: true, rows: 8 })}`,
        }),
      )}</div><div>${card('Good to know', html`<p class="soft">The app learns of it when it next asks. No push is sent: the bank’s push sender does that. The API lists no messages of a user, so neither does this page.</p>`)}</div></div>`,
    }
  },
  actions: {
    send: async (call) => {
      const { form, api } = call
      const [userId, subject, summary, body] = ['userId', 'subject', 'summary', 'body'].map((name) => form.text(name))
      await api.send('POST', '/inbox/messages', { userId, subject, summary, body, type: form.text('type') || 'text' })
      return done(call, '/inbox', 'sent')
    },
  },
}
