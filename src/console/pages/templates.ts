// Templates: what operations are made from.
import { parseTemplate } from '../../domain/template/parser.ts'
import { chooseTexts, type Template } from '../../domain/template/template.ts'
import { at, Refusal } from '../api.ts'
import { actionForm, backTo, badge, card, checks, type Choice, empty, field, guardedForm, pageHead, table } from '../elements.ts'
import { parseJsonField } from '../json-field.ts'
import { html, type Markup } from '../markup.ts'
import { done, type Form, link, type Page, type PageCall, type View } from '../page.ts'
import { templatePreview } from '../template-preview.ts'

interface TemplateJson {
  readonly templateName: string
  readonly operationType: string
  readonly dataTemplate: string
  readonly signatureType: readonly string[]
  readonly maxFailureCount: number
  readonly expiration: number
  readonly riskFlags: string
  readonly proximityCheckEnabled: boolean
  readonly activationFlag?: string
  readonly texts: Readonly<Record<string, { readonly title: string } & Readonly<Record<string, unknown>>>>
  readonly source: 'shipped' | 'file' | 'administration'
}

const SOURCES = { shipped: 'shipped with pawl', file: 'from the file of templates', administration: 'written here or by the API' }

export const templates: Page = {
  path: '/templates',
  section: 'templates',
  async render(call) {
    const { templates: found } = await call.api.get<{ templates: readonly TemplateJson[] }>('/admin/templates')
    const create = call.isAdmin && html`<a class="button is-primary" href="${link(call, '/templates/new')}">New template</a>`
    const rows = found.map((one) => [
      html`<a href="${link(call, `/templates/${encodeURIComponent(one.templateName)}`)}">${one.templateName}</a><br><small>${one.operationType}</small>`,
      html`${(one.texts['en'] ?? Object.values(one.texts)[0])?.title}<br><small>${Object.keys(one.texts).join(', ')}</small>`,
      html`<code>${one.dataTemplate}</code>`,
      html`<small>${SOURCES[one.source]}</small>`,
    ])
    return {
      title: 'Templates',
      body: html`${pageHead('Templates', { lead: 'A template says what is signed, who may approve, and what the phone shows. All applications share them.', actions: create })}
        ${card('Templates', found.length === 0 ? empty('No template', 'Without one no operation can be created.', create) : table('Templates', ['Template', 'Title', 'Signed data', 'Source'], rows))}`,
    }
  },
}

export const template: Page = {
  path: '/templates/:name',
  section: 'templates',
  render: (call) => renderEditor(call, call.params['name']),
  actions: {
    save: async (call) => {
      const name = call.params['name'] ?? ''
      await call.api.send('PUT', at`/admin/templates/${name}`, readTemplate(call.form, name))
      return done(call, `/templates/${encodeURIComponent(name)}`, 'saved')
    },
    remove: async (call) => {
      await call.api.send('DELETE', at`/admin/templates/${call.params['name'] ?? ''}`)
      return done(call, '/templates', 'removed')
    },
  },
}

export const templateNew: Page = {
  path: '/templates/new',
  section: 'templates',
  render: (call) => renderEditor(call, undefined),
  actions: {
    save: async (call) => {
      const name = call.form.text('templateName')
      await call.api.send('POST', '/admin/templates', readTemplate(call.form, name))
      return done(call, `/templates/${encodeURIComponent(name)}`, 'created')
    },
  },
}

/** The editor with what was typed, checked and drawn; nothing is stored. */
export const templateCheck: Page = {
  path: '/templates/check',
  section: 'templates',
  render: (call) => renderEditor(call, call.query['template']),
  actions: { save: (call) => renderEditor(call, call.query['template']) },
}

const readTemplate = (form: Form, templateName: string): unknown => ({
  templateName,
  operationType: form.text('operationType'),
  dataTemplate: form.text('dataTemplate'),
  signatureType: form.all('signatureType'),
  maxFailureCount: Number(form.text('maxFailureCount')),
  expiration: Number(form.text('expiration')),
  riskFlags: form.all('riskFlags').join(''),
  proximityCheckEnabled: form.isChecked('proximityCheckEnabled'),
  ...(form.optional('activationFlag') !== undefined && { activationFlag: form.text('activationFlag') }),
  texts: parseJsonField('texts', form.text('texts')),
})

/** `name` undefined: a new one. */
async function renderEditor(call: PageCall, name: string | undefined): Promise<View> {
  const stored = name === undefined ? NEW : await call.api.get<TemplateJson>(at`/admin/templates/${name}`)
  const title = name ?? 'New template'
  const target = { ...call, here: link(call, name === undefined ? '/templates/new' : `/templates/${encodeURIComponent(name)}`) }
  const back = backTo(link(call, '/templates'), 'Templates')
  const lead = html`${SOURCES[stored.source]}. ${stored.source === 'file' && badge('wait', 'The next start writes the file over a change')} Operations that exist keep the texts they were made with.`
  const remove =
    call.isAdmin &&
    name !== undefined &&
    card(
      'Remove',
      guardedForm(target, 'remove', 'Remove the template', {
        question: 'No operation can be created from it any more. Those that exist stay.',
      }),
    )
  return {
    title,
    body: html`${pageHead(title, { back, lead: name === undefined ? 'What operations of a new kind are made from.' : lead })}
      <div class="columns"><div>${card('Template', call.isAdmin ? renderForm(target, stored, name) : html`<pre>${JSON.stringify(stored, undefined, 2)}</pre>`)}${remove}</div>
      <div>${card('On the phone', html`<div id="preview">${renderCheck(call.form.isEmpty ? stored : draftOf(call.form, name))}</div>`)}</div></div>`,
  }
}

/** What is wrong with a template, or what phones show of it in each language. */
function renderCheck(json: unknown): Markup {
  const parsed = json instanceof Refusal ? json : parseTemplate(json)
  if ('template' in parsed) return renderLanguages(parsed.template)
  return html`<div class="notice is-wait"><p>Not sound yet:</p><ul>${parsed.violations.map(
    ({ fieldName, hint }) => html`<li><code>${fieldName}</code> ${hint}</li>`,
  )}</ul></div>`
}

const renderLanguages = (sound: Template): Markup =>
  html`<div class="stack">${languagesOf(sound).map((language, i) =>
    i === 0
      ? templatePreview(sound, {}, language)
      : html`<details class="more"><summary>In ${language}</summary>${templatePreview(sound, {}, language)}</details>`,
  )}<p class="hint">With samples in place of the parameters.</p></div>`

/** The one that phones fall back to stands first. */
function languagesOf({ texts }: Template): readonly string[] {
  const first = chooseTexts(texts, []).locale
  return [first, ...Object.keys(texts).filter((language) => language !== first)]
}

/** The template that was typed, or why it is none. */
function draftOf(form: Form, name: string | undefined): unknown {
  try {
    return readTemplate(form, name ?? (form.text('templateName') || 'new'))
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
}

const SIGNATURES: readonly Choice[] = [
  ['possession', 'the phone alone'],
  ['possession_knowledge', 'phone and PIN'],
  ['possession_biometry', 'phone and biometry'],
]
const RISKS: readonly Choice[] = [
  ['X', 'X: swaps the buttons'],
  ['F', 'F: warns of fraud first'],
  ['C', 'C: refuses approval during a call'],
]

function renderForm(call: PageCall, stored: TemplateJson, name: string | undefined): Markup {
  const check = link(call, '/templates/check', { template: name })
  const chosen = (field: string, value: readonly string[]) => (call.form.isEmpty ? value : call.form.all(field))
  const fields = html`<div class="fields" hx-post="${check}" hx-trigger="input delay:500ms" hx-include="closest form" hx-select="#preview" hx-target="#preview" hx-swap="outerHTML">
    ${name === undefined && field(call, 'templateName', 'Name', { isRequired: true, placeholder: 'payment_abroad' })}
    ${field(call, 'operationType', 'Operation type', { value: stored.operationType, isRequired: true, hint: 'What apps tell kinds of operations by.' })}
    ${field(call, 'dataTemplate', 'Signed data', { value: stored.dataTemplate, isRequired: true, hint: html`What the phone signs, with placeholders: <code>A1*A\${amount}\${currency}*I\${iban}</code>` })}
    ${checks('May be approved with', 'signatureType', SIGNATURES, chosen('signatureType', stored.signatureType))}
    <div class="halves">${field(call, 'maxFailureCount', 'Wrong codes that end it', { type: 'number', value: String(stored.maxFailureCount), isRequired: true })}
    ${field(call, 'expiration', 'Seconds until it expires', { type: 'number', value: String(stored.expiration), isRequired: true })}</div>
    ${checks('Risks', 'riskFlags', RISKS, chosen('riskFlags', Array.from(stored.riskFlags)))}
    ${checks('Proximity', 'proximityCheckEnabled', [['true', 'the phone must read a password from the bank’s screen']], chosen('proximityCheckEnabled', stored.proximityCheckEnabled ? ['true'] : []))}
    ${field(call, 'activationFlag', 'Flag that the phone must have', { value: stored.activationFlag ?? '' })}
    ${field(call, 'texts', 'Texts, by language', { value: JSON.stringify(stored.texts, undefined, 2), rows: 18, hint: 'JSON; docs/TEMPLATES.md says what may stand there.' })}</div>`
  const beside = html`<button class="button is-plain" formaction="${check}" formnovalidate>Check</button>`
  return actionForm(call, 'save', name === undefined ? 'Create' : 'Save', { fields, beside })
}

const NEW: TemplateJson = {
  templateName: '',
  operationType: 'authorize_payment',
  dataTemplate: 'A1*A${amount}${currency}*I${iban}',
  signatureType: ['possession_knowledge', 'possession_biometry'],
  maxFailureCount: 5,
  expiration: 300,
  riskFlags: '',
  proximityCheckEnabled: false,
  texts: {
    en: {
      title: 'Payment',
      message: 'Please confirm the payment',
      attributes: [
        { id: 'operation.amount', type: 'AMOUNT', text: 'Amount', params: { amount: 'amount', currency: 'currency' } },
        { id: 'operation.account', type: 'KEY_VALUE', text: 'To account', params: { value: 'iban' } },
      ],
    },
  },
  source: 'administration',
}
