// The pieces pages are made of: badges, times, lists, tables, forms, QR codes.
import { PawlError } from '../lib/errors.ts'
import { encodeQR } from 'qr'
import { QR_BYTES_MAX } from '../domain/operation/form.ts'
import { utf8 } from '../lib/bytes.ts'
import { html, type Markup, nothing, trust, type Value } from './markup.ts'
import type { PageCall } from './page.ts'
import { sayReason, sayState } from './words.ts'

export type Tone = 'good' | 'wait' | 'bad' | 'off' | 'info'

/** A status: colour and text say the same. */
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

/** A reason in words; the exact one stands beside the pointer. */
export const reason = (text: string): Markup => html`<span title="${text}">${sayReason(text)}</span>`

/** A time (ms) as people say it, with the exact one beside the pointer. */
export const ago = (now: number, then: number): Markup =>
  html`<time datetime="${iso(then)}" title="${utc(then)}">${sayDistance(then - now)}</time>`

/** A time (ms) exactly. */
export const exactTime = (then: number): Markup => html`<time datetime="${iso(then)}">${utc(then)}</time>`

const iso = (time: number): string => new Date(time).toISOString()
const utc = (time: number): string => `${iso(time).slice(0, 19).replace('T', ' ')} UTC`

/** `5 min ago`, `in 3 days`. */
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

/** A section with a heading; `aside` stands beside it. */
export const card = (heading: string, body: Value, aside: Value = nothing): Markup =>
  html`<section class="card"><header class="card-head"><h2>${heading}</h2>${aside}</header>${body}</section>`

/** The one list of a page, whose title says what it is: `heading` is for those who do not see that. */
export const listCard = (heading: string, body: Value): Markup =>
  html`<section class="card"><h2 class="hidden">${heading}</h2>${body}</section>`

/** Head of a page: the way back, the title, and what can be done. */
export const pageHead = (title: Value, { lead, actions, back }: { lead?: Value; actions?: Value; back?: Markup } = {}): Markup =>
  html`<header class="page-head">
    <div>${back && html`<p class="crumb">${back}</p>`}<h1>${title}</h1>${lead && html`<p class="lead">${lead}</p>`}</div>
    ${actions && html`<div class="page-actions">${actions}</div>`}
  </header>`

/** Names and values. */
export const facts = (rows: readonly (readonly [string, Value] | false | undefined)[]): Markup =>
  html`<dl class="facts">${rows.map((row) => row && html`<div><dt>${row[0]}</dt><dd>${row[1]}</dd></div>`)}</dl>`

/** What stands where nothing is yet: why, and what to do. */
export const empty = (title: string, text: Value, action: Value = nothing): Markup =>
  html`<div class="empty"><p class="empty-title">${title}</p><p>${text}</p>${action}</div>`

/** A value that is to be copied whole, with a button for that where scripts run (browser.js). `what` it is, for those who do not see its name. */
export const code = (text: string, what = 'it'): Markup =>
  html`<span class="copied"><code class="value">${text}</code><button type="button" class="button is-small copy" data-copy="${text}">Copy<span class="hidden"> ${what}</span></button></span>`

/** A QR code of a text; `label` says what it is for. Throws REQUEST_INVALID for a text that is too long for any QR code. */
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
  /** Id of a `datalist`. */
  readonly list?: string
  /** How the API names it in its violations, where that is another name. */
  readonly apiName?: string
}

/** A line of a form, or a field of `rows` lines. What was typed stands in it, and what the API said of it below it. */
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

/** A choice of one. */
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

/** A choice of any. */
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
  /** Beside the button. */
  readonly beside?: Value
  /** The button stays in sight while the form is longer than the window. */
  readonly isSticky?: boolean
  /** Hidden members. */
  readonly hidden?: Readonly<Record<string, string>>
}

/** A form that does something on the page it stands on. */
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

/** The same form behind a step that asks whether it is meant. */
export const guardedForm = (
  call: Pick<PageCall, 'session' | 'here'>,
  action: string,
  label: string,
  { question, ...options }: ActionOptions & { readonly question: Value },
): Markup =>
  html`<details class="guarded"><summary class="button is-plain"><span class="when-closed">${label}…</span><span class="when-open">Do not</span></summary><div class="guarded-body"><p>${question}</p>${actionForm(
    call,
    action,
    label,
    { tone: 'danger', ...options },
  )}</div></details>`

export interface Chip {
  readonly label: string
  readonly href: string
  readonly isChosen: boolean
}

/** A filter whose choices are links; each leads to the list as it is with that choice. */
export const chips = (name: string, choices: readonly Chip[]): Markup =>
  html`<ul class="chips" aria-label="${name}">${choices.map(
    ({ label, href, isChosen }) => html`<li><a href="${href}"${isChosen && html` aria-current="true"`}>${label}</a></li>`,
  )}</ul>`

export interface Step {
  readonly title: Value
  readonly note?: Value
  /** Milliseconds; undefined where it is not known or has not come. */
  readonly at?: number | undefined
  readonly tone?: Tone | undefined
}

/** What happened one after the other, in the order that is given. */
export const timeline = (now: number, steps: readonly Step[]): Markup =>
  html`<ol class="steps">${steps.map(
    ({ title, note, at, tone }) =>
      html`<li${tone !== undefined && html` class="is-${tone}"`}>${title}<br><small>${at !== undefined && html`${exactTime(at)}, ${ago(now, at)}`}${at !== undefined && note !== undefined && note !== false && ' · '}${note}</small></li>`,
  )}</ol>`

/** A form that searches a list; the members of `hidden` are sent with it. */
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

/** The links below a page of a list; `newest` is undefined on the first page, `older` on the last one. */
export const pager = (newest: string | undefined, older: string | undefined, olderLabel = 'Older →'): Markup | false =>
  (newest ?? older) !== undefined &&
  html`<p class="pager">${newest !== undefined && html`<a href="${newest}">Newest</a>`}${older !== undefined && html`<a class="pager-older" href="${older}">${olderLabel}</a>`}</p>`

/** A way back. */
export const backTo = (href: string, label: string): Markup => html`<a href="${href}">← ${label}</a>`

/**
 * A part of a page that fetches itself again every so many seconds; `everySeconds` undefined: it changes no more, and is not fetched. What stays
 * the same is left in the page, and with it the focus of the keyboard.
 */
export const live = (id: string, here: string, everySeconds: number | undefined, body: Value): Markup =>
  everySeconds === undefined
    ? html`<div id="${id}">${body}</div>`
    : html`<div id="${id}" hx-get="${here}" hx-trigger="every ${everySeconds}s" hx-select="#${id}" hx-target="#${id}" hx-swap="outerMorph">${body}</div>`

/**
 * A column. On a phone the first one is the line of the card, `side` stands at its end, `wide` has a line of its own, `away` is left out, and
 * all others share the second line.
 */
export type Column = string | readonly [label: string, place: 'side' | 'wide' | 'away']

/**
 * A list of records: a table on a wide screen, cards of two lines on a phone. Each row has as many cells as there are columns. A phone does not
 * show what stands below the first line of the first cell.
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

/** Whether a QR code with the least correction holds a text. */
export const fitsQrCode = (text: string): boolean => utf8(text).length <= QR_BYTES_MAX

/** An SVG of the code of a text that fits, with a margin of two modules and no ground of its own. */
const drawQrCode = (text: string): string => encodeQR(text, 'svg', { ecc: 'low', border: 2 })
