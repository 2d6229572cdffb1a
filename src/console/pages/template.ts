// Lists the templates of operations, and edits one: a form, and beside it the view of the phone, or the faults of the template.
import { warnOfDataTemplate } from '../../domain/template/operation-data.ts'
import { parseTemplate, renderTemplate } from '../../domain/template/parser.ts'
import { chooseTexts, PAYMENT_TEMPLATE, type Template } from '../../domain/template/template.ts'
import { at, Refusal } from '../api.ts'
import { backTo, badge, card, empty, faults, guardedForm, listCard, more, pageHead, table } from '../elements.ts'
import { html, type Markup } from '../markup.ts'
import { done, type Form, link, type Page, type PageCall, requireUnchanged, type View } from '../page.ts'
import { changeDraft, type Draft, readDraft, type TemplateJson } from '../template-draft.ts'
import { templateForm } from '../template-form.ts'
import { templatePreview } from '../phone-preview.ts'

interface StoredTemplate extends TemplateJson {
  readonly source: keyof typeof SOURCES
}

const SOURCES = {
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
      html`<a href="${link(call, at`/templates/${one.templateName}`)}">${one.templateName}</a><br><small>${one.operationType}</small>`,
      html`${(one.texts['en'] ?? Object.values(one.texts)[0])?.title}<br><small>${Object.keys(one.texts).join(', ')}</small>`,
      html`<code>${one.dataTemplate}</code>`,
      html`<small>${SOURCES[one.source]}</small>`,
    ])
    const none = empty('No template', 'Without one no operation can be created.', create)
    return {
      title: 'Templates',
      body: html`${pageHead('Templates', { lead: 'A template says what is signed, who may approve, and what the phone shows. All applications share them.', actions: create })}
        ${listCard('Templates', table('Templates', ['Template', 'Title', ['Signed data', 'away'], 'Source'], rows, none))}`,
    }
  },
}

export const template: Page = {
  path: '/templates/:name',
  section: 'templates',
  render: renderEditor,
  actions: {
    save: async (call) => {
      const { name } = call.params
      requireUnchanged(call, await call.api.get(at`/admin/templates/${name}`))
      await call.api.send('PUT', at`/admin/templates/${name}`, readWhole(call.form, name))
      return done(call, at`/templates/${name}`, 'saved')
    },
    remove: async (call) => {
      await call.api.send('DELETE', at`/admin/templates/${call.params.name}`)
      return done(call, '/templates', 'removed')
    },
  },
}

export const templateNew: Page = {
  path: '/new-template',
  section: 'templates',
  render: renderEditor,
  actions: {
    save: async (call) => {
      const whole = readWhole(call.form, '')
      await call.api.send('POST', '/admin/templates', whole)
      return done(call, at`/templates/${whole.templateName}`, 'created')
    },
  },
}

/**
 * The editor with the typed values, checked and drawn. Nothing is stored. Its path has the same depth as that of the page that it is drawn into,
 * because links are relative.
 */
export const templateCheck: Page = {
  path: '/check-template/:name',
  section: 'templates',
  render: renderEditor,
  actions: { save: renderEditor },
}

/** The page templateCheck for a new template. */
export const templateNewCheck: Page = { ...templateCheck, path: '/check-template' }

/** Reads the whole form. Throws Refusal for a line that is no JSON. The API judges everything else. */
function readWhole(form: Form, name: string): TemplateJson {
  const { template: typed, faults } = readDraft(form, name)
  if (faults.length > 0) throw new Refusal(400, 'Request validation failed', faults)
  return typed
}

/** Renders the editor of the template of the path, or of a new one. */
async function renderEditor(call: PageCall): Promise<View> {
  const { name } = call.params
  const isNew = name === ''
  const stored = isNew ? NEW : await call.api.get<StoredTemplate>(at`/admin/templates/${name}`)
  const title = name || 'New template'
  const target = { ...call, here: link(call, isNew ? '/new-template' : at`/templates/${name}`) }
  const back = backTo(link(call, '/templates'), 'Templates')
  const lead = html`${SOURCES[stored.source]}. ${stored.source === 'file' && badge('wait', 'The next start writes the file over a change')} Operations that exist keep the texts they were made with.`
  const draft = call.form.isEmpty ? { template: stored, faults: [], isJson: false } : draftOf(call.form, name)
  // While only the shape of the form changes, empty members are not reported.
  const isChecked = !call.form.isEmpty && call.form.optional('change') === undefined
  const { templateName } = draft.template
  const parsed = parseTemplate({ ...draft.template, templateName: isChecked ? templateName : templateName || 'new' })
  const violations = 'template' in parsed ? draft.faults : [...draft.faults, ...parsed.violations]
  const said = isChecked ? violations : draft.faults
  const refusal = call.refusal ?? (said.length > 0 ? new Refusal(400, 'Not sound yet', said) : undefined)
  const form = templateForm({
    call: { ...target, refusal },
    draft,
    isNew,
    checkAt: link(call, isNew ? '/check-template' : at`/check-template/${name}`),
    seen: isNew ? undefined : stored,
  })
  const remove =
    call.isAdmin &&
    !isNew &&
    card(
      'Remove',
      guardedForm(target, 'remove', 'Remove the template', {
        question: 'No operation can be created from it any more. Those that exist stay.',
      }),
    )
  return {
    title,
    body: html`${pageHead(title, { back, lead: isNew ? 'What operations of a new kind are made from.' : lead })}
      <div class="columns"><div>${card('Template', call.isAdmin ? form : html`<pre>${JSON.stringify(stored, undefined, 2)}</pre>`)}${remove}</div>
      <div class="beside">${card('On the phone', html`<div id="preview">${'template' in parsed && draft.faults.length === 0 ? renderLanguages(parsed.template) : html`<div class="notice is-wait"><p>Not sound yet:</p>${faults(violations)}</div>`}</div>`)}</div></div>`,
  }
}

/** The typed values, with the requested change of shape. */
function draftOf(form: Form, name: string): Draft {
  const change = form.text('change')
  const draft = readDraft(form, name)
  return change === ''
    ? draft
    : changeDraft(draft, change === 'language' ? [change, form.text('newLanguage')] : change.split(':'))
}

function renderWarning({ dataTemplate }: Template): Markup | false {
  const warning = warnOfDataTemplate(dataTemplate)
  return warning !== undefined && html`<div class="notice is-wait"><p>${warning}</p></div>`
}

const renderLanguages = (sound: Template): Markup =>
  html`${renderWarning(sound)}<div class="stack">${languagesOf(sound).map((language, i) =>
    i === 0 ? templatePreview(sound, {}, language) : more(`In ${language}`, templatePreview(sound, {}, language)),
  )}<p class="hint">With samples in place of the parameters.</p></div>`

/** The languages of a template. The one that phones fall back to comes first. */
function languagesOf({ texts }: Template): readonly string[] {
  const first = chooseTexts(texts, []).locale
  return [first, ...Object.keys(texts).filter((language) => language !== first)]
}

/** The initial values of the form of a new template. */
const NEW: StoredTemplate = { ...renderTemplate(PAYMENT_TEMPLATE), templateName: '', source: 'administration' }
