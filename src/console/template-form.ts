// Renders the form of a template: the signed data, the factors, and the texts of each language, with a line for each member.
import { ATTRIBUTE_SLOTS } from '../domain/template/attributes.ts'
import type { AttributeTemplate } from '../domain/template/template.ts'
import { isJsonObject } from '../lib/json.ts'
import { actionForm, check, checks, type Choice, field, type FieldOptions, more, select, type Typed } from './elements.ts'
import { html, type Markup } from './markup.ts'
import { NO_FORM, type PageCall } from './page.ts'
import { type Draft, type LanguageJson, RESULT_TEXTS, SCREEN_MEMBERS } from './template-draft.ts'
import { placeholdersOf } from './phone-preview.ts'
import { sayMember } from './words.ts'

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
  readonly checkAt: string
  /** The stored template; undefined for a new one. */
  readonly seen: unknown
}

/** Renders the form. Its lines show the draft, and beside each the fault in `call.refusal`. */
export function templateForm({ call, draft, isNew, checkAt, seen }: EditorOptions): Markup {
  const { template } = draft
  // The lines show the draft and not the form, because rows may have moved since they were typed.
  const lines = { form: NO_FORM, refusal: call.refusal }
  const editor: Editor = { call, lines, checkAt }
  const line = (name: string, label: string, options: FieldOptions = {}) => field(lines, name, label, options)
  const fields = html`<button hidden>Save</button>
    <div class="fields" hx-post="${checkAt}" hx-trigger="input delay:500ms" hx-include="closest form" hx-select="#preview" hx-target="#preview" hx-swap="outerHTML">
    ${isNew && line('templateName', 'Name', { value: template.templateName, isRequired: true, placeholder: 'payment_abroad', hint: 'What the bank names when it creates an operation.' })}
    <div class="halves">${line('operationType', 'Operation type', { value: template.operationType, isRequired: true, hint: 'What apps tell kinds of operations by.' })}
    ${line('dataTemplate', 'Signed data', { value: template.dataTemplate, isRequired: true, hint: html`With placeholders: <code>A1*A\${amount}\${currency}*I\${iban}</code>` })}</div>
    <div class="halves">${checks(lines, 'signatureType', 'May be approved with', SIGNATURES, { value: template.signatureType })}
    ${checks(lines, 'riskFlags', 'The phone', RISKS, { value: Array.from(template.riskFlags) })}</div>
    <div class="halves">${line('maxFailureCount', 'Wrong codes that end it', { type: 'number', value: String(template.maxFailureCount), isRequired: true })}
    ${line('expiration', 'Seconds until it expires', { type: 'number', value: String(template.expiration), isRequired: true })}</div>
    ${checks(lines, 'proximityCheckEnabled', 'Proximity', [['true', 'the phone must read a password from the bank’s screen']], { value: template.proximityCheckEnabled ? ['true'] : [] })}
    ${line('activationFlag', 'Flag that the phone must have', { value: template.activationFlag, hint: 'Left empty, every phone of the user may.' })}
    ${draft.isJson ? jsonTexts(editor, draft) : formTexts(editor, draft)}</div>`
  const beside = html`<button class="button is-plain" formaction="${checkAt}" formnovalidate>Check</button><a class="button is-plain for-phone" href="#preview">Preview</a>`
  return html`<div id="editor">${actionForm(call, 'save', isNew ? 'Create' : 'Save', { fields: () => fields, beside, isSticky: true, seen })}</div>`
}

/** What every part of the editor needs. */
interface Editor extends Pick<EditorOptions, 'call' | 'checkAt'> {
  readonly lines: Typed
}

function jsonTexts({ call, lines, checkAt }: Editor, draft: Draft): Markup {
  const typed = call.form.text('mode') === 'json'
  const value = JSON.stringify(draft.template.texts, undefined, 2)
  return html`<input type="hidden" name="mode" value="json">
    <div class="section-head"><h3>Texts, by language</h3>${reshape(checkAt, 'form', 'Edit as a form')}</div>
    ${field(typed ? call : lines, 'texts', 'Texts', { value, rows: 22, hint: 'JSON; docs/TEMPLATES.md says what may stand there.' })}`
}

function formTexts(editor: Editor, { template }: Draft): Markup {
  const { lines, checkAt } = editor
  const names = placeholdersOf(template).map(({ name }) => name)
  // English comes first, because phones fall back to it.
  const languages = Object.entries(template.texts).toSorted(
    ([a], [b]) => Number(b === 'en') - Number(a === 'en') || (a < b ? -1 : 1),
  )
  const hasFault = (language: string) =>
    lines.refusal?.violations.some(({ fieldName }) => fieldName.startsWith(`texts.${language}.`)) ?? false
  return html`<datalist id="parameters">${names.map((name) => html`<option value="${name}"></option>`)}</datalist>
    <div class="section-head"><h3>What the phone shows</h3>${reshape(checkAt, 'json', 'Edit as JSON')}</div>
    ${languages.map(
      ([language, texts], i) => html`<input type="hidden" name="language" value="${language}">
      <details class="panel"${(i === 0 || hasFault(language)) && html` open`}><summary><strong>${language}</strong> <span class="soft">${texts.title}</span></summary>
      <div class="fields">${renderLanguage(editor, language, texts)}
      ${languages.length > 1 && reshape(checkAt, `forget:${language}`, `Remove ${language}`)}</div></details>`,
    )}
    <div class="inline">${field(lines, 'newLanguage', 'Another language', { placeholder: 'cs', hint: 'Two small letters; it begins as a copy of the first.' })}${reshape(checkAt, 'language', 'Add language')}</div>`
}

function renderLanguage(editor: Editor, language: string, texts: LanguageJson): Markup {
  const { lines, checkAt } = editor
  const at = `texts.${language}`
  const line = (name: string, label: string, options: FieldOptions = {}) => field(lines, `${at}.${name}`, label, options)
  const rows = texts.attributes ?? []
  return html`${line('title', 'Title', { value: texts.title, isRequired: true })}
    ${line('message', 'Message', { value: texts.message, isRequired: true, hint: html`Placeholders as <code>\${amount}</code> are filled in.` })}
    ${line('summary', 'Summary', { value: texts.summary, hint: 'For a push message of the bank; may be left out.' })}
    <h4>Rows, in this order</h4>
    ${rows.length === 0 ? html`<p class="soft">No row: the phone shows title and message alone.</p>` : html`<ol class="rows-editor">${rows.map((row, i) => renderRow(editor, language, row, i, rows.length))}</ol>`}
    ${reshape(checkAt, `add:${language}`, 'Add a row')}
    ${renderScreens(editor, `${at}.ui`, texts.ui)}
    ${more(
      'After the decision',
      html`<div class="fields">${RESULT_TEXTS.map((name) => line(`resultTexts.${name}`, RESULT_LABELS[name], { value: texts.resultTexts?.[name] }))}</div>`,
      texts.resultTexts !== undefined,
    )}`
}

const RESULT_LABELS = { success: 'When it was approved', failure: 'When the approval failed', reject: 'When it was rejected' }

function renderRow({ lines, checkAt }: Editor, language: string, row: AttributeTemplate, place: number, count: number): Markup {
  const at = `texts.${language}.attributes.${place}`
  // A form may be sent with any word as the type of a row.
  const slots = Object.hasOwn(ATTRIBUTE_SLOTS, row.type) ? ATTRIBUTE_SLOTS[row.type] : undefined
  const slot = (name: string, note: string) =>
    field(lines, `${at}.params.${name}`, `${SLOT_LABELS[name] ?? `${sayMember(name)} from`}${note}`, {
      value: row.params[name],
      list: 'parameters',
      placeholder: 'name of a parameter',
    })
  const move = (what: string, sign: string, label: string) =>
    html`<button ${reshapeMarks(checkAt, `${what}:${language}:${place}`)} class="button is-icon" aria-label="${label} ${row.text || `row ${place + 1}`}" title="${label}">${sign}</button>`
  return html`<li><div class="row-head"><strong>${row.text || `Row ${place + 1}`}</strong><span class="row-moves">${place > 0 && move('up', '↑', 'Move up')}${place < count - 1 && move('down', '↓', 'Move down')}${move('drop', '✕', 'Remove')}</span></div>
    <div class="thirds">${field(lines, `${at}.text`, 'Label', { value: row.text })}
    <div hx-post="${checkAt}" hx-trigger="change" hx-include="closest form" hx-select="#editor" hx-target="#editor" hx-swap="outerHTML">${select(lines, `${at}.type`, 'Kind', ATTRIBUTE_TYPES, { value: row.type })}</div>
    ${field(lines, `${at}.id`, 'Id', { value: row.id, hint: 'For the app.' })}</div>
    <div class="thirds">${slots?.required.map((name) => slot(name, ''))}${slots?.optional.map((name) => slot(name, ' (may be left out)'))}</div></li>`
}

/** The labels of slots whose names say too little. */
const SLOT_LABELS: Readonly<Record<string, string>> = {
  note: 'Text from',
  dynamic: 'Rate may change, from',
  alertType: 'Kind of alert from',
  thumbnailUrl: 'Small picture from',
  originalUrl: 'Whole picture from',
  logoUrl: 'Logo from',
  websiteUrl: 'Website from',
}

function renderScreens({ call, lines }: Editor, at: string, ui: LanguageJson['ui']): Markup {
  const { screen, others } = splitUi(ui)
  const line = (name: string, label: string, options: FieldOptions) =>
    field(lines, `${at}.preApprovalScreen.${name}`, label, options)
  const text = (name: string) => (typeof screen[name] === 'string' ? screen[name] : '')
  const items = Array.isArray(screen['items']) ? screen['items'].join('\n') : ''
  const isTyped = call.form.optional(`${at}.more`) !== undefined
  const fields = html`<div class="fields">
    ${select(lines, `${at}.mode`, 'The app asks', UI_MODES, { value: ui === undefined ? '' : 'own', hint: 'As written here, the risks of the template have no effect in this language.' })}
    <div>${check(lines, `${at}.flipButtons`, 'swaps the buttons', ui?.['flipButtons'] === true)}${check(lines, `${at}.blockApprovalOnCall`, 'refuses approval during a call', ui?.['blockApprovalOnCall'] === true)}</div>
    ${select(lines, `${at}.preApprovalScreen.type`, 'First it shows', SCREENS, { value: text('type') })}
    ${line('heading', 'Heading', { value: text('heading') })}${line('message', 'Message', { value: text('message') })}
    ${line('items', 'Points, one a line', { value: items, rows: 3 })}
    ${check(lines, `${at}.preApprovalScreen.approvalType`, 'the user slides instead of pressing', screen['approvalType'] === 'SLIDER')}
    ${field(isTyped ? call : lines, `${at}.more`, 'Other members', { value: others, rows: 4, hint: 'JSON: preApprovalScreens, postApprovalScreen and what else docs/TEMPLATES.md has.' })}</div>`
  return more('Screens', fields, ui !== undefined)
}

/** The members of `ui` that have lines in the form, and the others as JSON. A screen with further members is part of that JSON. */
function splitUi(ui: LanguageJson['ui']): { readonly screen: Readonly<Record<string, unknown>>; readonly others: string } {
  const { flipButtons, blockApprovalOnCall, preApprovalScreen, ...unknown } = ui ?? {}
  const isPlain = isJsonObject(preApprovalScreen) && Object.keys(preApprovalScreen).every((name) => SCREEN_MEMBERS.includes(name))
  const rest = {
    ...(typeof flipButtons !== 'boolean' && flipButtons !== undefined && { flipButtons }),
    ...(typeof blockApprovalOnCall !== 'boolean' && blockApprovalOnCall !== undefined && { blockApprovalOnCall }),
    ...(!isPlain && preApprovalScreen !== undefined && { preApprovalScreen }),
    ...unknown,
  }
  return {
    screen: isPlain ? preApprovalScreen : {},
    others: Object.keys(rest).length === 0 ? '' : JSON.stringify(rest, undefined, 2),
  }
}

/** A button that changes the shape of the draft and stores nothing. */
const reshape = (checkAt: string, change: string, label: string): Markup =>
  html`<div><button ${reshapeMarks(checkAt, change)} class="button is-plain">${label}</button></div>`

const reshapeMarks = (checkAt: string, change: string): Markup =>
  html`name="change" value="${change}" id="${change.replaceAll(':', '-')}" formaction="${checkAt}" formnovalidate hx-post="${checkAt}" hx-select="#editor" hx-target="#editor" hx-swap="outerHTML"`
