// All that back ends had verified of one registration.
import { at } from '../api.ts'
import type { ListedRegistration } from '../answers.ts'
import { backTo, empty, listCard, pageHead, pager } from '../elements.ts'
import { html } from '../markup.ts'
import { link, type Page } from '../page.ts'
import { readVerifications, renderVerifications } from '../verifications.ts'

const PAGE = 50

export const registrationVerifications: Page = {
  path: '/registrations/:id/verifications',
  section: 'registrations',
  async render(call) {
    const { api, application = '', params, query } = call
    const id = params['id'] ?? ''
    const one = await api.get<ListedRegistration>(at`/admin/applications/${application}/registrations/${id}`, { limit: 1 })
    const { items, next } = await readVerifications(call, one, PAGE, query['before'])
    const here = `/registrations/${encodeURIComponent(one.activationId)}`
    const list = `${here}/verifications`
    const ends = pager(
      query['before'] === undefined ? undefined : link(call, list),
      next === undefined ? undefined : link(call, list, { before: next }),
    )
    return {
      title: `Verified for the bank, ${one.userId}`,
      body: html`${pageHead('Verified for the bank', { back: backTo(link(call, here), one.userId), lead: html`What back ends had verified of this phone of ${one.userId}, and what they were answered.` })}
        ${listCard('Verifications', html`${items.length === 0 ? empty('Nothing', 'No back end asked for a verification of this phone, or its rows are past their time.') : renderVerifications(call, items, true)}${ends}`)}`,
    }
  },
}
