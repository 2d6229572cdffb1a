// Lists the applications, and creates new ones.
import type { Application } from '../../api/cloud/admin/applications.ts'
import { at } from '../api.ts'
import { actionForm, badge, card, empty, field, pageHead, table } from '../elements.ts'
import { html } from '../markup.ts'
import { done, link, type Page, type PageCall } from '../page.ts'

export const applications: Page = {
  path: '/applications',
  section: 'applications',
  async render(call) {
    const { applications: found } = await call.api.get<{ applications: readonly Application[] }>('/admin/applications')
    return {
      title: 'Applications',
      body: html`${pageHead('Applications', { lead: 'An application is one mobile app of the bank, with the keys that are compiled into it.' })}
        <div class="columns"><div>${card(
          'Applications',
          table(
            'Applications',
            ['Application', 'Protocols', ['Oldest version', 'away'], ['', 'side']],
            found.map((one) => renderRow(call, one)),
            empty('None yet', 'Make the first one: the next page shows what the mobile app needs.'),
          ),
        )}</div><div>${call.isAdmin && card('New application', renderCreate(call))}</div></div>`,
    }
  },
  actions: {
    create: async (call) => {
      const { form, api } = call
      const id = form.text('id')
      await api.send('POST', '/admin/application', { id })
      return done({ ...call, application: id }, at`/applications/${id}`, 'created')
    },
  },
}

const renderRow = (call: PageCall, { id, isDefault, algorithms, isProtocol3Admitted, minimumProtocolVersion }: Application) => [
  html`<a href="${link({ ...call, application: id }, at`/applications/${id}`)}">${id}</a>`,
  html`${isProtocol3Admitted && '3 and '}4<br><small>${algorithms.join(', ')}</small>`,
  minimumProtocolVersion ?? html`<span class="soft">any</span>`,
  isDefault && badge('info', 'Default'),
]

const renderCreate = (call: PageCall) =>
  actionForm(call, 'create', 'Create', {
    fields: (own) =>
      field(own, 'id', 'Name', {
        isRequired: true,
        placeholder: 'my-app',
        hint: 'The name cannot be changed later. Phones do not see it.',
      }),
  })
