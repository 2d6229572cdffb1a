// Renders the form of a template: the signed data, the factors, and the texts of each language, with a line for each member.
import { ATTRIBUTE_SLOTS } from '../domain/template/attributes.ts'
import type { AttributeTemplate } from '../domain/template/template.ts'
import { isJsonObject } from '../lib/json.ts'
import { actionForm, checks, type Choice, field, type FieldOptions, select } from './elements.ts'
import { html, type Markup } from './markup.ts'
import { type PageCall, readForm } from './page.ts'
import { type Draft, type LanguageJson, RESULT_TEXTS, SCREEN_MEMBERS } from './template-draft.ts'
import { placeholdersOf } from './phone-preview.ts'

const SIGNATURES: readonly Choice[] = [
  ['possession', 'the phone alone'],
  ['possession_knowledge', 'phone and PIN'],
  ['possession_biometry', 'phone and biometry'],
]
const RISKS: readonly Choice[] = [
  ['X', 'swaps the buttons (X)'],
  ['F', 'warns of fraud first (F)'],
  ['C', 'refuses approval during a call (C)'],
]
const ATTRIBUTE_TYPES: readonly Choice[] = [
  ['AMOUNT', 'Amount'],
  ['AMOUNT_CONVERSION', 'Amount in two currencies'],
  ['KEY_VALUE', 'Label and value'],
  ['NOTE', 'Longer text'],
  ['HEADING', 'Heading'],
  ['ALERT', 'Alert'],
  ['IMAGE', 'Picture'],
  ['PARTY_INFO', 'Party, with its logo'],
]
const SCREENS: readonly Choice[] = [
  ['', 'none'],
  ['WARNING', 'a warning'],
  ['INFO', 'information'],
  ['QR_SCAN', 'the scan of a QR code'],
]
const UI_MODES: readonly Choice[] = [
  ['', 'as the risks above say'],
  ['own', 'as written here'],
]

export interface EditorOptions {
  readonly call: PageCall
  readonly draft: Draft
  /** Whether the template is new. Its form then has a line for the name. */
  readonly isNew: boolean
  /** The address where the draft is checked, drawn, and changed in its shape. Nothing is stored there. */
  readonly check: string
}

/** Renders the form. Its lines show the draft, and beside each the fault in `call.refusal`. */
export function templateForm({ call, draft, isNew, check }: EditorOptions): Markup {
  // The lines show the draft and not the form, because rows may have moved since they were typed.
  const lines = { ...call, form: readForm('') }
  const { template } = draft
  const line = (name: string, label: string, options: FieldOptions = {}) => field(lines, name, label, options)
  const fields = html`<button hidden>Save</button>
    <div class="fields" hx-post="${check}" hx-trigger="input delay:500ms" hx-include="closest form" hx-select="#preview" hx-target="#preview" hx-swap="outerHTML">
    ${isNew && line('templateName', 'Name', { value: template.templateName, isRequired: true, placeholder: 'payment_abroad', hint: 'What the bank names when it creates an operation.' })}
    <div class="halves">${line('operationType', 'Operation type', { value: template.operationType, isRequired: true, hint: 'What apps tell kinds of operations by.' })}
    ${line('dataTemplate', 'Signed data', { value: template.dataTemplate, isRequired: true, hint: html`With placeholders: <code>A1*A\${amount}\${currency}*I\${iban}</code>` })}</div>
    <div class="halves">${checks('May be approved with', 'signatureType', SIGNATURES, template.signatureType)}
    ${checks('The phone', 'riskFlags', RISKS, Array.from(template.riskFlags))}</div>
    <div class="halves">${line('maxFailureCount', 'Wrong codes that end it', { type: 'number', value: String(template.maxFailureCount), isRequired: true })}
    ${line('expiration', 'Seconds until it expires', { type: 'number', value: String(template.expiration), isRequired: true })}</div>
    ${checks('Proximity', 'proximityCheckEnabled', [['true', 'the phone must read a password from the bank’s screen']], template.proximityCheckEnabled ? ['true'] : [])}
    ${line('activationFlag', 'Flag that the phone must have', { value: template.activationFlag, hint: 'Left empty, every phone of the user may.' })}
    ${draft.isJson ? jsonTexts(call, draft, check) : formTexts(call, draft, check)}</div>`
  const beside = html`<button class="button is-plain" formaction="${check}" formnovalidate>Check</button><a class="button is-plain for-phone" href="#preview">Preview</a>`
  return html`<div id="editor">${actionForm(call, 'save', isNew ? 'Create' : 'Save', { fields, beside, isSticky: true })}</div>`
}

function jsonTexts(call: PageCall, draft: Draft, check: string): Markup {
  const typed = call.form.text('mode') === 'json'
  const value = JSON.stringify(draft.template.texts, undefined, 2)
  return html`<input type="hidden" name="mode" value="json">
    <div class="section-head"><h3>Texts, by language</h3>${reshape(check, 'form', 'Edit as a form')}</div>
    ${field(typed ? call : { ...call, form: readForm('') }, 'texts', 'Texts', { value, rows: 22, hint: 'JSON; docs/TEMPLATES.md says what may stand there.' })}`
}

function formTexts(call: PageCall, { template }: Draft, check: string): Markup {
  const names = placeholdersOf(template).map(({ name }) => name)
  // English comes first, because phones fall back to it.
  const languages = Object.entries(template.texts).toSorted(
    ([a], [b]) => Number(b === 'en') - Number(a === 'en') || (a < b ? -1 : 1),
  )
  const hasFault = (language: string) =>
    call.refusal?.violations.some(({ fieldName }) => fieldName.startsWith(`texts.${language}.`)) ?? false
  return html`<datalist id="parameters">${names.map((name) => html`<option value="${name}"></option>`)}</datalist>
    <div class="section-head"><h3>What the phone shows</h3>${reshape(check, 'json', 'Edit as JSON')}</div>
    ${languages.map(
      ([language, texts], i) => html`<input type="hidden" name="language" value="${language}">
      <details class="panel"${(i === 0 || hasFault(language)) && html` open`}><summary><strong>${language}</strong> <span class="soft">${texts.title}</span></summary>
      <div class="fields">${renderLanguage(call, language, texts, check)}
      ${languages.length > 1 && reshape(check, `forget:${language}`, `Remove ${language}`)}</div></details>`,
    )}
    <div class="inline">${field({ ...call, form: readForm('') }, 'newLanguage', 'Another language', { placeholder: 'cs', hint: 'Two small letters; it begins as a copy of the first.' })}${reshape(check, 'language', 'Add language')}</div>`
}

function renderLanguage(call: PageCall, language: string, texts: LanguageJson, check: string): Markup {
  const lines = { ...call, form: readForm('') }
  const at = `texts.${language}`
  const line = (name: string, label: string, options: FieldOptions = {}) => field(lines, `${at}.${name}`, label, options)
  const rows = texts.attributes ?? []
  return html`${line('title', 'Title', { value: texts.title, isRequired: true })}
    ${line('message', 'Message', { value: texts.message, isRequired: true, hint: html`Placeholders as <code>\${amount}</code> are filled in.` })}
    ${line('summary', 'Summary', { value: texts.summary, hint: 'For a push message of the bank; may be left out.' })}
    <h4>Rows, in this order</h4>
    ${rows.length === 0 ? html`<p class="soft">No row: the phone shows title and message alone.</p>` : html`<ol class="rows-editor">${rows.map((row, i) => renderRow(call, row, { language, place: i, count: rows.length, check }))}</ol>`}
    ${reshape(check, `add:${language}`, 'Add a row')}
    ${renderScreens(call, `${at}.ui`, texts.ui)}
    <details class="more"${texts.resultTexts !== undefined && html` open`}><summary>After the decision</summary><div class="fields">
    ${RESULT_TEXTS.map((name) => line(`resultTexts.${name}`, RESULT_LABELS[name], { value: texts.resultTexts?.[name] }))}</div></details>`
}

const RESULT_LABELS = { success: 'When it was approved', failure: 'When the approval failed', reject: 'When it was rejected' }

interface Place {
  readonly language: string
  readonly place: number
  readonly count: number
  readonly check: string
}

function renderRow(call: PageCall, row: AttributeTemplate, { language, place, count, check }: Place): Markup {
  const lines = { ...call, form: readForm('') }
  const at = `texts.${language}.attributes.${place}`
  const { required, optional } = ATTRIBUTE_SLOTS[row.type] ?? { required: [], optional: [] }
  const slot = (name: string, isOptional: boolean) =>
    field(
      lines,
      `${at}.params.${name}`,
      isOptional ? `${SLOT_LABELS[name] ?? name} (may be left out)` : (SLOT_LABELS[name] ?? name),
      {
        value: row.params[name],
        list: 'parameters',
        placeholder: 'name of a parameter',
      },
    )
  const move = (what: string, sign: string, label: string) =>
    html`<button ${reshapeMarks(check, `${what}:${language}:${place}`)} class="button is-icon" aria-label="${label} ${row.text || `row ${place + 1}`}" title="${label}">${sign}</button>`
  return html`<li><div class="row-head"><strong>${row.text || `Row ${place + 1}`}</strong><span class="row-moves">${place > 0 && move('up', '↑', 'Move up')}${place < count - 1 && move('down', '↓', 'Move down')}${move('drop', '✕', 'Remove')}</span></div>
    <div class="thirds">${field(lines, `${at}.text`, 'Label', { value: row.text })}
    <div hx-post="${check}" hx-trigger="change" hx-include="closest form" hx-select="#editor" hx-target="#editor" hx-swap="outerHTML">${select(`${at}.type`, 'Kind', ATTRIBUTE_TYPES, row.type)}</div>
    ${field(lines, `${at}.id`, 'Id', { value: row.id, hint: 'For the app.' })}</div>
    <div class="thirds">${required.map((name) => slot(name, false))}${optional.map((name) => slot(name, true))}</div></li>`
}

const SLOT_LABELS: Readonly<Record<string, string>> = {
  amount: 'Amount from',
  currency: 'Currency from',
  value: 'Value from',
  note: 'Text from',
  level: 'Level from',
  dynamic: 'Rate may change, from',
  sourceAmount: 'Source amount from',
  sourceCurrency: 'Source currency from',
  targetAmount: 'Target amount from',
  targetCurrency: 'Target currency from',
  alertType: 'Kind of alert from',
  title: 'Title from',
  message: 'Message from',
  thumbnailUrl: 'Small picture from',
  originalUrl: 'Whole picture from',
  logoUrl: 'Logo from',
  name: 'Name from',
  description: 'Description from',
  websiteUrl: 'Website from',
}

function renderScreens(call: PageCall, at: string, ui: LanguageJson['ui']): Markup {
  const { screen, more } = splitUi(ui)
  const lines = { ...call, form: readForm('') }
  const line = (name: string, label: string, options: FieldOptions) =>
    field(lines, `${at}.preApprovalScreen.${name}`, label, options)
  const check = (name: string, label: string, isOn: boolean) =>
    html`<label class="check"><input type="checkbox" name="${at}.${name}" value="true"${isOn && html` checked`}> ${label}</label>`
  const text = (name: string) => (typeof screen[name] === 'string' ? screen[name] : '')
  const items = Array.isArray(screen['items']) ? screen['items'].join('\n') : ''
  const isTyped = call.form.optional(`${at}.more`) !== undefined
  return html`<details class="more"${ui !== undefined && html` open`}><summary>Screens</summary><div class="fields">
    ${select(`${at}.mode`, 'The app asks', UI_MODES, ui === undefined ? '' : 'own', 'As written here, the risks of the template have no effect in this language.')}
    <div>${check('flipButtons', 'swaps the buttons', ui?.['flipButtons'] === true)}${check('blockApprovalOnCall', 'refuses approval during a call', ui?.['blockApprovalOnCall'] === true)}</div>
    ${select(`${at}.preApprovalScreen.type`, 'First it shows', SCREENS, text('type'))}
    ${line('heading', 'Heading', { value: text('heading') })}${line('message', 'Message', { value: text('message') })}
    ${line('items', 'Points, one a line', { value: items, rows: 3 })}
    ${check('preApprovalScreen.approvalType', 'the user slides instead of pressing', screen['approvalType'] === 'SLIDER')}
    ${field(isTyped ? call : lines, `${at}.more`, 'Other members', { value: more, rows: 4, hint: 'JSON: preApprovalScreens, postApprovalScreen and what else docs/TEMPLATES.md has.' })}</div></details>`
}

/** The members of `ui` that have lines in the form, and the others as JSON. A screen with further members is part of that JSON. */
function splitUi(ui: LanguageJson['ui']): { readonly screen: Readonly<Record<string, unknown>>; readonly more: string } {
  const { flipButtons, blockApprovalOnCall, preApprovalScreen, ...others } = ui ?? {}
  const isPlain = isJsonObject(preApprovalScreen) && Object.keys(preApprovalScreen).every((name) => SCREEN_MEMBERS.includes(name))
  const rest = {
    ...(typeof flipButtons !== 'boolean' && flipButtons !== undefined && { flipButtons }),
    ...(typeof blockApprovalOnCall !== 'boolean' && blockApprovalOnCall !== undefined && { blockApprovalOnCall }),
    ...(!isPlain && preApprovalScreen !== undefined && { preApprovalScreen }),
    ...others,
  }
  return {
    screen: isPlain ? preApprovalScreen : {},
    more: Object.keys(rest).length === 0 ? '' : JSON.stringify(rest, undefined, 2),
  }
}

/** A button that changes the shape of the draft and stores nothing. */
const reshape = (check: string, change: string, label: string): Markup =>
  html`<div><button ${reshapeMarks(check, change)} class="button is-plain">${label}</button></div>`

const reshapeMarks = (check: string, change: string): Markup =>
  html`name="change" value="${change}" id="${change.replaceAll(':', '-')}" formaction="${check}" formnovalidate hx-post="${check}" hx-select="#editor" hx-target="#editor" hx-swap="outerHTML"`
