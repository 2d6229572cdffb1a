// Draws an operation as a phone shows it: title, message, rows, warnings and buttons in the order of the app.
import type { OperationForm } from '../domain/operation/form.ts'
import { html, type Markup, type Value } from './markup.ts'

/** The form as an app draws it. Pictures of a form are left out: they would be loaded from elsewhere. */
export function phonePreview({ formData, ui = {} }: OperationForm, data: string): Markup {
  const { preApprovalScreen, preApprovalScreens } = ui
  const before = [preApprovalScreen, ...((preApprovalScreens as unknown[] | undefined) ?? [])].filter(isObject)
  return html`<figure class="phone" aria-label="What the phone shows"><div class="phone-screen">
    ${before.map((screen) => html`<div class="phone-alert"><strong>${textOf(screen['heading'])}</strong><br>${textOf(screen['message'])}</div>`)}
    <p class="phone-title">${formData.title}</p>
    <p>${formData.message}</p>
    <dl class="phone-rows">${formData.attributes.map(renderAttribute)}</dl>
    <div class="phone-buttons${ui['flipButtons'] === true && html` is-flipped`}"><span>Approve</span><span>Reject</span></div>
    ${ui['blockApprovalOnCall'] === true && html`<p class="hint">Not during a phone call.</p>`}
    <p class="hint">Signed: <code>${data}</code></p>
  </div></figure>`
}

function renderAttribute(attribute: Readonly<Record<string, unknown>>): Markup {
  const label = textOf(attribute['label'])
  const text = (...names: readonly string[]): string =>
    textOf(names.map((name) => attribute[name]).find((value) => value !== undefined))
  switch (attribute['type']) {
    case 'AMOUNT':
      return row(label, html`<span class="phone-amount">${text('valueFormatted', 'amountFormatted', 'amount')}</span>`)
    case 'AMOUNT_CONVERSION':
      return row(
        label,
        `${text('sourceValueFormatted', 'sourceAmountFormatted')} → ${text('targetValueFormatted', 'targetAmountFormatted')}`,
      )
    case 'NOTE':
      return row(label, text('note', 'value'))
    case 'HEADING':
      return html`<div><dt><strong>${label}</strong></dt><dd></dd></div>`
    case 'ALERT':
      return html`<div><dt class="hidden">${label}</dt><dd class="phone-alert"><strong>${text('title')}</strong> ${text('message')}</dd></div>`
    case 'IMAGE':
      return row(label, html`<span class="soft">a picture of ${text('thumbnailUrl')}</span>`)
    case 'PARTY_INFO':
      return row(label, partyName(attribute['partyInfo']))
    default:
      return row(label, text('value', 'note'))
  }
}

const row = (label: string, value: Value): Markup => html`<div><dt>${label}</dt><dd>${value}</dd></div>`

const partyName = (party: unknown): string =>
  isObject(party) ? [textOf(party['name']), textOf(party['description'])].filter(Boolean).join(', ') : ''

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

/** A member of a row as a text: empty where there is none, and JSON for what is no text, such as an amount. */
export const textOf = (value: unknown): string =>
  value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value)
