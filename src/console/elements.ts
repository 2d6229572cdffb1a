// Renders the elements of pages: badges, times, lists, tables, forms, QR codes.
import { PawlError } from '../lib/errors.ts'
import { encodeQR } from 'qr'
import { QR_BYTES_MAX } from '../domain/operation/form.ts'
import { utf8 } from '../lib/bytes.ts'
import { html, type Markup, nothing, trust, type Value } from './markup.ts'
import { formOfAction, type PageCall } from './page.ts'
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
export const facts = (rows: readonly (readonly [string, Value] | false | undefined)[]): Markup =>
  html`<dl class="facts">${rows.map((row) => row && html`<div><dt>${row[0]}</dt><dd>${row[1]}</dd></div>`)}</dl>`

/** The text in place of an empty list: the reason, and what to do. */
export const empty = (title: string, text: Value, action: Value = nothing): Markup =>
  html`<div class="empty"><p class="empty-title">${title}</p><p>${text}</p>${action}</div>`

/** A value for copying, with a button that works where scripts run (browser.js). `what` names the value for screen readers. */
export const code = (text: string, what = 'it'): Markup =>
  html`<span class="copied"><code class="value">${text}</code><button type="button" class="button is-small copy" data-copy="${text}">Copy<span class="hidden"> ${what}</span></button></span>`

/** A QR code of a text. `label` says its purpose. Throws REQUEST_INVALID for a text that is too long for any QR code. */
export function qr(text: string, label: string): Markup {
  if (!fitsQrCode(text)) throw new PawlError('REQUEST_INVALID', { detail: 'a text that is too long for a QR code' })
  return html`<div class="qr" role="img" aria-label="${label}">${trust(drawQrCode(text))}</div>`
}

export interface FieldOptions {
  readonly value?: string | undefined
  readonly hint?: Value
  readonly type?: 'text' | 'password' | 'number' | 'search' | 'url' | 'datetime-local'
  readonly isRequired?: boolean
  readonly placeholder?: string
  readonly autocomplete?: string
  readonly rows?: number
  /** The id of a `datalist`. */
  readonly list?: string
  /** The name of the member in violations of the API, if it differs. */
  readonly apiName?: string
}

/** A line of a form, or a field of `rows` lines. It shows the typed text, and the API's violation below it. */
export function field(call: Pick<PageCall, 'form' | 'refusal'>, name: string, label: string, options: FieldOptions = {}): Markup {
  const {
    value = '',
    hint,
    type = 'text',
    isRequired = false,
    placeholder,
    autocomplete = 'off',
    rows,
    apiName = name,
    list,
  } = options
  const isTyped = call.form.entries.some(([other]) => other === name)
  const shown = type === 'password' ? '' : isTyped ? (call.form.all(name)[0] ?? '') : value
  const fault = call.refusal?.violations.find(({ fieldName }) => fieldName === apiName || fieldName.endsWith(`.${apiName}`))?.hint
  const described = hint !== undefined || fault !== undefined ? html` aria-describedby="${name}-note"` : nothing
  const marks = html`${isRequired && html` required`}${fault !== undefined && html` aria-invalid="true"`}${described}`
  const control =
    rows === undefined
      ? html`<input id="${name}" name="${name}" type="${type}" value="${shown}" autocomplete="${autocomplete}"${
          placeholder !== undefined && html` placeholder="${placeholder}"`
        }${list !== undefined && html` list="${list}"`}${marks}>`
      : html`<textarea id="${name}" name="${name}" rows="${rows}" spellcheck="false"${marks}>
${shown}</textarea>`
  const note =
    fault !== undefined
      ? html`<p class="fault" id="${name}-note">${fault}</p>`
      : hint !== undefined && html`<p class="hint" id="${name}-note">${hint}</p>`
  return html`<div class="field"><label for="${name}">${label}</label>${control}${note}</div>`
}

export type Choice = readonly [value: string, label: string]

/** A choice of one value. */
export const select = (
  name: string,
  label: string,
  choices: readonly Choice[],
  chosen: string | undefined,
  hint?: Value,
): Markup =>
  html`<div class="field"><label for="${name}">${label}</label><select id="${name}" name="${name}">${choices.map(
    ([value, text]) => html`<option value="${value}"${value === chosen && html` selected`}>${text}</option>`,
  )}</select>${hint && html`<p class="hint">${hint}</p>`}</div>`

/** A choice of any number of values. */
export const checks = (
  legend: string,
  name: string,
  choices: readonly Choice[],
  chosen: readonly string[],
  hint?: Value,
): Markup =>
  html`<fieldset class="field"><legend>${legend}</legend>${choices.map(
    ([value, text]) =>
      html`<label class="check"><input type="checkbox" name="${name}" value="${value}"${chosen.includes(value) && html` checked`}> ${text}</label>`,
  )}${hint && html`<p class="hint">${hint}</p>`}</fieldset>`

export interface ActionOptions {
  readonly fields?: Value
  readonly tone?: 'primary' | 'plain' | 'danger'
  /** Shown beside the button. */
  readonly beside?: Value
  /** Whether the button stays visible while the form is longer than the window. */
  readonly isSticky?: boolean
  /** Hidden members of the form. */
  readonly hidden?: Readonly<Record<string, string>>
}

/** A form that sends an action to its own page. */
export const actionForm = (
  { session, here }: Pick<PageCall, 'session' | 'here'>,
  action: string,
  label: string,
  { fields = nothing, tone = 'primary', hidden = {}, beside = nothing, isSticky = false }: ActionOptions = {},
): Markup =>
  html`<form method="post" action="${here}" class="form">
    <input type="hidden" name="csrf" value="${session.formToken}"><input type="hidden" name="action" value="${action}">
    ${Object.entries(hidden).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
    ${fields}<div class="buttons${isSticky && ' is-sticky'}"><button class="button is-${tone}">${label}</button>${beside}</div>
  </form>`

/** Such a form behind a step that asks for confirmation. A refused one stays open. */
export function guardedForm(
  call: Pick<PageCall, 'session' | 'here' | 'form'>,
  action: string,
  label: string,
  { question, ...options }: ActionOptions & { readonly question: Value },
): Markup {
  const refused = formOfAction(call, action)
  const isOpen = refused && Object.entries(options.hidden ?? {}).every(([name, value]) => refused.all(name).includes(value))
  return html`<details class="guarded"${isOpen && html` open`}><summary class="button is-plain"><span class="when-closed">${label}…</span><span class="when-open">Do not</span></summary><div class="guarded-body"><p>${question}</p>${actionForm(
    call,
    action,
    label,
    { tone: 'danger', ...options },
  )}</div></details>`
}

export interface Chip {
  readonly label: string
  readonly href: string
  readonly isChosen: boolean
}

/** A filter whose choices are links. Each leads to the list with that choice. */
export const chips = (name: string, choices: readonly Chip[]): Markup =>
  html`<ul class="chips" aria-label="${name}">${choices.map(
    ({ label, href, isChosen }) => html`<li><a href="${href}"${isChosen && html` aria-current="true"`}>${label}</a></li>`,
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
    ${Object.entries(hidden).map(
      ([name, value]) => value !== undefined && html`<input type="hidden" name="${name}" value="${value}">`,
    )}
    ${fields}<button class="button is-plain">Apply</button>
  </form>`

/** The links below a page of a list. `newest` is undefined on the first page, `older` on the last one. */
export const pager = (newest: string | undefined, older: string | undefined, olderLabel = 'Older →'): Markup | false =>
  (newest ?? older) !== undefined &&
  html`<p class="pager">${newest !== undefined && html`<a href="${newest}">Newest</a>`}${older !== undefined && html`<a class="pager-older" href="${older}">${olderLabel}</a>`}</p>`

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
 * first line of the first cell.
 */
export function table(caption: string, columns: readonly Column[], rows: readonly (readonly Value[])[]): Markup {
  const shown = columns.map((column) => (typeof column === 'string' ? ([column, undefined] as const) : column))
  return html`<table class="rows">
    <caption class="hidden">${caption}</caption>
    <thead><tr>${shown.map(([label]) => html`<th scope="col">${label}</th>`)}</tr></thead>
    <tbody>${rows.map(
      (cells) =>
        html`<tr>${cells.map((cell, i) => html`<td${shown[i]?.[1] !== undefined && html` class="is-${shown[i][1]}"`} data-label="${shown[i]?.[0] ?? ''}">${cell}</td>`)}</tr>`,
    )}</tbody>
  </table>`
}

/** Whether a QR code with the least correction can hold a text. */
export const fitsQrCode = (text: string): boolean => utf8(text).length <= QR_BYTES_MAX

/** An SVG of the QR code of a text that fits, with a margin of two modules and no background. */
const drawQrCode = (text: string): string => encodeQR(text, 'svg', { ecc: 'low', border: 2 })
