// Renders the elements of pages: badges, times, lists, tables, forms, QR codes.
import { PawlError, type Violation } from '../lib/errors.ts'
import { encodeQR } from 'qr'
import { QR_BYTES_MAX } from '../domain/operation/form.ts'
import { utf8 } from '../lib/bytes.ts'
import { html, type Markup, nothing, toText, trust, type Value } from './markup.ts'
import type { Query } from './api.ts'
import { link, NO_FORM, type PageCall, type View, versionOf } from './page.ts'
import { sayReason, sayState } from './words.ts'

export type Tone = 'good' | 'wait' | 'bad' | 'off' | 'info'

/** A status. Colour and text have the same meaning. */
export const badge = (tone: Tone, text: string): Markup => html`<span class="badge is-${tone}">${text}</span>`

const TONES: Readonly<Record<string, Tone>> = {
  ACTIVE: 'good',
  APPROVED: 'good',
  DELIVERED: 'good',
  PENDING: 'wait',
  PENDING_COMMIT: 'wait',
  CREATED: 'info',
  WAITING: 'wait',
  BLOCKED: 'bad',
  FAILED: 'bad',
  DEAD: 'bad',
  REJECTED: 'bad',
  EXPIRED: 'off',
  CANCELED: 'off',
  REMOVED: 'off',
}

/** A state of the API, in words. */
export const stateBadge = (state: string): Markup => badge(TONES[state] ?? 'info', sayState(state))

/** A reason in words, with the exact text as a tooltip. */
export const reason = (text: string): Markup => html`<span title="${text}">${sayReason(text)}</span>`

/** A time (ms) as people say it, with the exact time as a tooltip. */
export const ago = (now: number, then: number): Markup =>
  html`<time datetime="${iso(then)}" title="${utc(then)}">${sayDistance(then - now)}</time>`

/** A time (ms) exactly. */
export const exactTime = (then: number): Markup => html`<time datetime="${iso(then)}">${utc(then)}</time>`

const iso = (time: number): string => new Date(time).toISOString()
const utc = (time: number): string => `${iso(time).slice(0, 19).replace('T', ' ')} UTC`

/** Writes a distance in time as `5 min ago` or `in 3 days`. */
export function sayDistance(ms: number): string {
  const seconds = Math.round(Math.abs(ms) / 1000)
  if (seconds < 5) return 'now'
  const { size, unit } = UNITS.find(({ below }) => seconds < below) ?? DAYS
  const count = Math.max(1, Math.floor(seconds / size))
  const text = `${count} ${unit}${count > 1 && (unit === 'hour' || unit === 'day') ? 's' : ''}`
  return ms < 0 ? `${text} ago` : `in ${text}`
}

/** Writes an age as `5 min`. */
export const sayAge = (seconds: number): string => sayDistance(-seconds * 1000).replace(' ago', '')

const DAYS = { below: Number.POSITIVE_INFINITY, size: 86_400, unit: 'day' } as const
const UNITS = [
  { below: 60, size: 1, unit: 's' },
  { below: 3_600, size: 60, unit: 'min' },
  { below: 86_400, size: 3_600, unit: 'hour' },
  DAYS,
] as const

/** A section with a heading. `aside` is shown beside the heading. */
export const card = (heading: string, body: Value, aside: Value = nothing): Markup =>
  html`<section class="card"><header class="card-head"><h2>${heading}</h2>${aside}</header>${body}</section>`

/** The only list of a page, whose title names it. Only screen readers get `heading`. */
export const listCard = (heading: string, body: Value): Markup =>
  html`<section class="card"><h2 class="hidden">${heading}</h2>${body}</section>`

/** The head of a page: the link back, the title, and the buttons for actions. */
export const pageHead = (title: Value, { lead, actions, back }: { lead?: Value; actions?: Value; back?: Markup } = {}): Markup =>
  html`<header class="page-head">
    <div>${back && html`<p class="crumb">${back}</p>`}<h1>${title}</h1>${lead && html`<p class="lead">${lead}</p>`}</div>
    ${actions && html`<div class="page-actions">${actions}</div>`}
  </header>`

/** A list of names and values. */
export const facts = (rows: readonly (readonly [Value, Value] | false | undefined)[]): Markup =>
  html`<dl class="facts">${rows.map((row) => row && html`<div><dt>${row[0]}</dt><dd>${row[1]}</dd></div>`)}</dl>`

/** The text in place of an empty list: the reason, and what to do. */
export const empty = (title: string, text: Value, action: Value = nothing): Markup =>
  html`<div class="empty"><p class="empty-title">${title}</p><p>${text}</p>${action}</div>`

/** What is wrong with typed values, name by name. */
export const faults = (violations: readonly Violation[]): Markup =>
  html`<ul>${violations.map(({ fieldName, hint }) => html`<li><code>${fieldName}</code>: ${hint}</li>`)}</ul>`

/** A value for copying, with a button that works where scripts run (browser.js). `what` names the value for screen readers. */
export const code = (text: string, what = 'it'): Markup =>
  html`<span class="copied"><code class="value">${text}</code><button type="button" class="button is-small copy" data-copy="${text}">Copy<span class="hidden"> ${what}</span></button></span>`

/** Whether a QR code with the least correction can hold a text. */
export const fitsQrCode = (text: string): boolean => utf8(text).length <= QR_BYTES_MAX

/** A QR code of a text. `label` says its purpose. Throws REQUEST_INVALID for a text that is too long for any QR code. */
export function qr(text: string, label: string): Markup {
  if (!fitsQrCode(text)) throw new PawlError('REQUEST_INVALID', { detail: 'a text that is too long for a QR code' })
  // The least correction, a margin of two modules, and no background.
  return html`<div class="qr" role="img" aria-label="${label}">${trust(encodeQR(text, 'svg', { ecc: 'low', border: 2 }))}</div>`
}

/** What a line of a form needs of the call: the typed values, and the refusal of them. */
export type Typed = Pick<PageCall, 'form' | 'refusal'>

/** For lines whose form is no action, such as a search: what was typed elsewhere on the page is not theirs. */
export const UNTYPED: Typed = { form: NO_FORM, refusal: undefined }

interface LineOptions {
  readonly hint?: Value
  /** The name of the member in violations of the API, if it differs. */
  readonly apiName?: string
  /** If it differs from the name, because the page has the form several times. */
  readonly id?: string
}

export interface FieldOptions extends LineOptions {
  readonly value?: string | undefined
  readonly type?: 'text' | 'password' | 'number' | 'search' | 'url' | 'date' | 'datetime-local'
  readonly isRequired?: boolean
  readonly placeholder?: string
  readonly autocomplete?: string
  readonly rows?: number
  /** The id of a `datalist`. */
  readonly list?: string
}

/** The note below a line: the API's violation, else the hint. `marks` are the attributes by which its control refers to it. */
function noteOf({ refusal }: Typed, name: string, { hint, apiName = name, id = name }: LineOptions) {
  const fault = refusal?.violations.find(({ fieldName }) => fieldName === apiName || fieldName.endsWith(`.${apiName}`))?.hint
  const said = fault ?? hint
  if (said === undefined) return { marks: nothing, note: nothing }
  return {
    marks: html`${fault !== undefined && html` aria-invalid="true"`} aria-describedby="${id}-note"`,
    note: html`<p class="${fault === undefined ? 'hint' : 'fault'}" id="${id}-note">${said}</p>`,
  }
}

/** A line of a form, or a field of `rows` lines. It shows the typed text, and the API's violation below it. */
export function field(call: Typed, name: string, label: string, options: FieldOptions = {}): Markup {
  const { value = '', type = 'text', isRequired = false, placeholder, autocomplete = 'off', rows, list, id = name } = options
  const shown = type === 'password' ? '' : (call.form.all(name)[0] ?? value)
  const { marks, note } = noteOf(call, name, options)
  const required = isRequired && html` required`
  const control =
    rows === undefined
      ? html`<input id="${id}" name="${name}" type="${type}" value="${shown}" autocomplete="${autocomplete}"${
          placeholder !== undefined && html` placeholder="${placeholder}"`
        }${list !== undefined && html` list="${list}"`}${required}${marks}>`
      : html`<textarea id="${id}" name="${name}" rows="${rows}" spellcheck="false"${required}${marks}>
${shown}</textarea>`
  return html`<div class="field"><label for="${id}">${label}</label>${control}${note}</div>`
}

export type Choice = readonly [value: string, label: string]

/** A choice of one value. */
export function select(
  call: Typed,
  name: string,
  label: string,
  choices: readonly Choice[],
  options: LineOptions & { readonly value?: string | undefined } = {},
): Markup {
  const chosen = call.form.all(name)[0] ?? options.value
  const { marks, note } = noteOf(call, name, options)
  return html`<div class="field"><label for="${name}">${label}</label><select id="${name}" name="${name}"${marks}>${choices.map(
    ([value, text]) => html`<option value="${value}"${value === chosen && html` selected`}>${text}</option>`,
  )}</select>${note}</div>`
}

/** A choice of any number of values. */
export function checks(
  call: Typed,
  name: string,
  legend: string,
  choices: readonly Choice[],
  options: LineOptions & { readonly value: readonly string[] },
): Markup {
  const { note } = noteOf(call, name, options)
  return html`<fieldset class="field"${note !== nothing && html` aria-describedby="${name}-note"`}><legend>${legend}</legend>${choices.map(
    ([value, text]) => check(call, name, text, options.value.includes(value), value),
  )}${note}</fieldset>`
}

/** One box. A box that is not checked is not sent. */
export function check({ form }: Typed, name: string, label: string, isChecked = false, value = 'true'): Markup {
  const isOn = form.isEmpty ? isChecked : form.all(name).includes(value)
  return html`<label class="check"><input type="checkbox" name="${name}" value="${value}"${isOn && html` checked`}> ${label}</label>`
}

/** A part of a page that opens when its summary is pressed. */
export const more = (summary: Value, body: Value, isOpen = false): Markup =>
  html`<details class="more"${isOpen && html` open`}><summary>${summary}</summary>${body}</details>`

export interface ActionOptions {
  /** The lines of the form. `own` has typed values and a refusal only if it was this form that was sent. */
  readonly fields?: (own: Typed) => Value
  readonly tone?: 'primary' | 'plain' | 'danger'
  /** Shown beside the button. */
  readonly beside?: Value
  /** Whether the button stays visible while the form is longer than the window. */
  readonly isSticky?: boolean
  /** Hidden members of the form. They tell it from others with the same action. */
  readonly hidden?: Readonly<Record<string, string>>
  /** The stored values that the form shows, where it replaces them all. The action gives them to requireUnchanged. */
  readonly seen?: unknown
}

type FormCall = Pick<PageCall, 'session' | 'here' | 'form' | 'refusal'>

/** Whether the page was sent this form. */
const isSent = ({ form }: FormCall, action: string, hidden: Readonly<Record<string, string>> = {}): boolean =>
  form.text('action') === action && Object.entries(hidden).every(([name, value]) => form.all(name).includes(value))

/** A form that sends an action to its own page. */
export function actionForm(call: FormCall, action: string, label: string, options: ActionOptions = {}): Markup {
  const { fields, tone = 'primary', hidden = {}, beside = nothing, isSticky = false, seen } = options
  const own = isSent(call, action, hidden) ? call : UNTYPED
  // What was typed belongs to the version that its page was made of.
  const version = seen !== undefined && { seen: own.form.optional('seen') ?? versionOf(seen) }
  const members = { csrf: call.session.formToken, action, ...hidden, ...version }
  return html`<form method="post" action="${call.here}" class="form">
    ${hiddenMembers(members)}
    ${fields?.(own)}<div class="buttons${isSticky && ' is-sticky'}"><button class="button is-${tone}">${label}</button>${beside}</div>
  </form>`
}

const hiddenMembers = (members: Readonly<Record<string, string | undefined>>): readonly Value[] =>
  Object.entries(members).map(
    ([name, value]) => value !== undefined && html`<input type="hidden" name="${name}" value="${value}">`,
  )

/** Such a form behind a step that asks for confirmation. A refused one stays open. */
export function guardedForm(
  call: FormCall,
  action: string,
  label: string,
  { question, ...options }: ActionOptions & { readonly question: Value },
): Markup {
  const isOpen = isSent(call, action, options.hidden)
  return html`<details class="guarded"${isOpen && html` open`}><summary class="button is-plain"><span class="when-closed">${label}…</span><span class="when-open">Do not</span></summary><div class="guarded-body"><p>${question}</p>${actionForm(
    call,
    action,
    label,
    { tone: 'danger', ...options },
  )}</div></details>`
}

/**
 * A filter of the list at `path`: links to it for each value of the parameter `name`. They keep the parameters in `kept`. The value for all of the
 * list is empty.
 */
export const chips = (call: PageCall, path: string, name: string, label: string, choices: readonly Choice[], kept: Query = {}) =>
  html`<ul class="chips" aria-label="${label}">${choices.map(
    ([value, text]) =>
      html`<li><a href="${link(call, path, { ...kept, [name]: value })}"${value === (call.query[name] ?? '') && html` aria-current="true"`}>${text}</a></li>`,
  )}</ul>`

export interface Step {
  readonly title: Value
  readonly note?: Value
  /** Milliseconds; undefined if the time is unknown or has not come. */
  readonly at?: number | undefined
  readonly tone?: Tone | undefined
}

/** A timeline of events, in the given order. */
export const timeline = (now: number, steps: readonly Step[]): Markup =>
  html`<ol class="steps">${steps.map(
    ({ title, note, at, tone }) =>
      html`<li${tone !== undefined && html` class="is-${tone}"`}>${title}<br><small>${at !== undefined && html`${exactTime(at)}, ${ago(now, at)}`}${at !== undefined && note !== undefined && note !== false && ' · '}${note}</small></li>`,
  )}</ol>`

/** A form that searches a list. The members of `hidden` are sent with it. */
export const searchForm = (
  { root }: Pick<PageCall, 'root'>,
  path: string,
  fields: Value,
  hidden: Readonly<Record<string, string | undefined>> = {},
): Markup =>
  html`<form method="get" action="${root}${path.slice(1)}" class="filters">
    ${hiddenMembers(hidden)}
    ${fields}<button class="button is-plain">Apply</button>
  </form>`

/**
 * The links below a page of the list at `path`: to its first page and to the next one. `by`: the parameter with the place of a page. `next`: the place
 * of the next page, undefined on the last one. `kept`: the other parameters.
 */
export function pager(
  call: PageCall,
  path: string,
  next: string | number | undefined,
  { by = 'before', kept = {}, label = 'Older →' }: { readonly by?: string; readonly kept?: Query; readonly label?: string } = {},
): Markup {
  const isFirst = call.query[by] === undefined
  if (isFirst && next === undefined) return nothing
  return html`<p class="pager">${!isFirst && html`<a href="${link(call, path, kept)}">Newest</a>`}${next !== undefined && html`<a class="pager-older" href="${link(call, path, { ...kept, [by]: next })}">${label}</a>`}</p>`
}

/** A link back. */
export const backTo = (href: string, label: string): Markup => html`<a href="${href}">← ${label}</a>`

/**
 * A part of a page that fetches itself again every `everySeconds`. With undefined it is final and never fetched. Unchanged elements stay in the page,
 * so the keyboard keeps its focus.
 */
export const live = (id: string, here: string, everySeconds: number | undefined, body: Value): Markup =>
  everySeconds === undefined
    ? html`<div id="${id}">${body}</div>`
    : html`<div id="${id}" hx-get="${here}" hx-trigger="every ${everySeconds}s" hx-select="#${id}" hx-target="#${id}" hx-swap="outerMorph">${body}</div>`

/**
 * A column. On a phone the first column is the first line of the card, `side` is at the end of that line, `wide` has a line of its own, `away` is
 * left out, and all others share the second line.
 */
export type Column = string | readonly [label: string, place: 'side' | 'wide' | 'away']

/**
 * A list of records: a table on a wide screen, cards of two lines on a phone. Each row has as many cells as there are columns. A phone shows only the
 * first line of the first cell. `none` stands in place of an empty list.
 */
export function table(caption: string, columns: readonly Column[], rows: readonly (readonly Value[])[], none?: Markup): Markup {
  if (none !== undefined && rows.length === 0) return none
  const shown = columns.map((column) => (typeof column === 'string' ? ([column] as const) : column))
  const classOf = (cell: Value, place: string | undefined, isFirst: boolean): Value => {
    const isShort = typeof cell === 'string' ? cell.length <= SHORT_MAX : isFirst && isShortName(cell)
    const names = [...(place === undefined ? [] : [`is-${place}`]), ...(isShort ? ['words'] : [])]
    return names.length > 0 && html` class="${names.join(' ')}"`
  }
  return html`<table class="rows">
    <caption class="hidden">${caption}</caption>
    <thead><tr>${shown.map(([label]) => html`<th scope="col">${label}</th>`)}</tr></thead>
    <tbody>${rows.map(
      (cells) => html`<tr>${cells.map((cell, i) => html`<td${classOf(cell, shown[i]?.[1], i === 0)}>${cell}</td>`)}</tr>`,
    )}</tbody>
  </table>`
}

/** The letters of a text, or of each word in the name of a record, that a longer one in another column does not break. */
const SHORT_MAX = 32

/** Whether each word is short in the first line of a cell, where the name of the record stands. */
const isShortName = (cell: Value): boolean => {
  const [name = ''] = toText(html`${cell}`).split('<br>')
  return name.split(/\s|<[^>]*>/).every(({ length }) => length <= SHORT_MAX)
}

/** The page of a secret that is shown this once. `href` leads back. */
export const secretView = (title: string, heading: string, hint: string, secret: string, href: string): View => ({
  title,
  body: html`${pageHead(title)}${card(
    heading,
    html`<p>${hint}It is shown this once.</p><p>${code(secret, 'the secret')}</p>
    <p><a class="button is-primary" href="${href}">I have noted it</a></p>`,
  )}`,
})
