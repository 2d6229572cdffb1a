// Templates of operations: the list.
import { empty, listCard, pageHead, table } from '../elements.ts'
import { html } from '../markup.ts'
import { link, type Page } from '../page.ts'
import type { TemplateJson } from '../template-draft.ts'

export interface StoredTemplate extends TemplateJson {
  readonly source: keyof typeof SOURCES
}

export const SOURCES = {
  shipped: 'Shipped with pawl',
  file: 'From the file of templates',
  administration: 'Written here or by the API',
} as const

export const templates: Page = {
  path: '/templates',
  section: 'templates',
  async render(call) {
    const { templates: found } = await call.api.get<{ templates: readonly StoredTemplate[] }>('/admin/templates')
    const create = call.isAdmin && html`<a class="button is-primary" href="${link(call, '/new-template')}">New template</a>`
    const rows = found.map((one) => [
      html`<a href="${link(call, `/templates/${encodeURIComponent(one.templateName)}`)}">${one.templateName}</a><br><small>${one.operationType}</small>`,
      html`${(one.texts['en'] ?? Object.values(one.texts)[0])?.title}<br><small>${Object.keys(one.texts).join(', ')}</small>`,
      html`<code>${one.dataTemplate}</code>`,
      html`<small>${SOURCES[one.source]}</small>`,
    ])
    return {
      title: 'Templates',
      body: html`${pageHead('Templates', { lead: 'A template says what is signed, who may approve, and what the phone shows. All applications share them.', actions: create })}
        ${listCard('Templates', found.length === 0 ? empty('No template', 'Without one no operation can be created.', create) : table('Templates', ['Template', 'Title', ['Signed data', 'away'], 'Source'], rows))}`,
    }
  },
}
