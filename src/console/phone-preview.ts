// Draws an operation in the way of a phone: title, message, rows, warnings and buttons in the order of the app. Also draws its line in a list. A
// template is drawn with the typed values, and with samples for missing ones.
import { type OperationForm, renderOperationForm } from '../domain/operation/form.ts'
import { readOperations } from '../domain/operation/operation.ts'
import { composeOperationData } from '../domain/template/operation-data.ts'
import { chooseTexts, listPlaceholders, type OperationParameters, type Template } from '../domain/template/template.ts'
import { isJsonObject } from '../lib/json.ts'
import { faults } from './elements.ts'
import { html, type Markup, type Value } from './markup.ts'
import type { PageCall } from './page.ts'
import type { TemplateJson } from './template-draft.ts'
import { sayMember } from './words.ts'

/** The parameters that a template reads. Those of the signed data come first, and an operation without one of them is refused. */
export function placeholdersOf({ dataTemplate, texts }: Pick<TemplateJson, 'dataTemplate' | 'texts'>) {
  const required = new Set(listPlaceholders(dataTemplate))
  const shown = Object.values(texts).flatMap(({ title = '', message = '', attributes = [] }) => [
    ...listPlaceholders(`${title}\n${message}`),
    ...attributes.flatMap(({ params }) => Object.values(params)),
  ])
  return [...new Set([...required, ...shown])].map((name) => ({ name, isRequired: required.has(name) }))
}

/**
 * The name of each parameter for people: the label of the row that shows it, or the name of its part of the row. The map lacks parameters that no row
 * shows, and those whose label another parameter has.
 */
export function labelsOf({ texts }: Template, language: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const { text, params } of chooseTexts(texts, [language]).texts.attributes) {
    Object.entries(params).forEach(([slot, name], i) => {
      const label = i === 0 ? text : sayMember(slot)
      if (!found.has(name) && label !== '' && ![...found.values()].includes(label)) found.set(name, label)
    })
  }
  return found
}

/** A plausible value of this parameter. */
export const sampleOf = (name: string): string => SAMPLES.find(([pattern]) => pattern.test(name))?.[1] ?? name

/** The phone's view in one language. If the parameters make no operation, their faults. */
export function templatePreview(template: Template, typed: OperationParameters, language: string): Markup {
  const parameters = Object.fromEntries(
    placeholdersOf(template).map(({ name }) => [name, (Object.hasOwn(typed, name) ? typed[name] : '') || sampleOf(name)]),
  )
  const composed = composeOperationData(template.dataTemplate, parameters)
  if ('violations' in composed)
    return html`<div class="notice is-wait"><p>The phone could not sign this:</p>${faults(composed.violations)}</div>`
  const { riskFlags, isProximityCheckEnabled: hasProximityCheck } = template
  const form = renderOperationForm({ ...chooseTexts(template.texts, [language]), parameters, riskFlags, hasProximityCheck })
  return phonePreview(form, composed.data)
}

const SAMPLES: readonly (readonly [RegExp, string])[] = [
  [/currency/i, 'EUR'],
  [/amount|price|limit/i, '1234.50'],
  [/iban|account/i, 'DE89370400440532013000'],
  [/date|day/i, '2026-12-24'],
  [/payee|recipient|name/i, 'Jana Nováková'],
]

/** The form as an app draws it. Its pictures are left out, because they would be loaded from other servers. */
export function phonePreview({ formData, ui = {} }: OperationForm, data: string): Markup {
  const { preApprovalScreen, preApprovalScreens } = ui
  const before = [preApprovalScreen, ...((preApprovalScreens as unknown[] | undefined) ?? [])].filter(isJsonObject)
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
  isJsonObject(party) ? [textOf(party['name']), textOf(party['description'])].filter(Boolean).join(', ') : ''

/** A member of a row as a text. Empty if there is none. JSON for other values than texts, such as amounts. */
const textOf = (value: unknown): string =>
  value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value)

export interface ShownOperation {
  readonly form: OperationForm
  /** The data that the phone signs. */
  readonly data: string
  readonly statusReason: string | null
}

/** Reads the views of phones, by the id of the operation. Texts are those of the revision from which the operation was made. */
export async function readShown(
  { parts, application }: Pick<PageCall, 'parts' | 'application'>,
  operationIds: readonly string[],
): Promise<ReadonlyMap<string, ShownOperation>> {
  const rows = await readOperations(parts, application, operationIds)
  const revisions = await parts.templateTexts(rows.map(({ templateRevisionId }) => templateRevisionId))
  return new Map(
    rows.flatMap(({ operationId, templateRevisionId, parameters, riskFlags, proximitySeed, language, data, statusReason }) => {
      const texts = revisions.get(templateRevisionId)
      if (texts === undefined) return []
      const hasProximityCheck = proximitySeed !== null
      const form = renderOperationForm({ ...chooseTexts(texts, [language]), parameters, riskFlags, hasProximityCheck })
      return [[operationId, { form, data, statusReason }] as const]
    }),
  )
}

/** An operation in one line: its title in the words of the phone, and its main detail. */
interface OperationLine {
  readonly title: Markup
  /** The account or name that comes first among the rows; undefined if there is none. */
  readonly detail: string | undefined
}

export function sayOperation({ formData: { title, attributes } }: OperationForm): OperationLine {
  const amount = attributes.map(amountOf).find((found) => found !== undefined)
  const detail = attributes.map(nameOf).find((found) => found !== undefined && found !== '')
  return { title: amount === undefined ? html`${title}` : html`<strong>${amount}</strong> ${title}`, detail }
}

type Attribute = OperationForm['formData']['attributes'][number]

function amountOf(attribute: Attribute): Markup | undefined {
  const { type, valueFormatted, amountFormatted, sourceValueFormatted, targetValueFormatted } = attribute
  if (type === 'AMOUNT') return html`${textOf(valueFormatted ?? amountFormatted ?? attribute['amount'])}`
  if (type !== 'AMOUNT_CONVERSION') return undefined
  return html`${textOf(sourceValueFormatted ?? attribute['sourceAmountFormatted'])} → ${textOf(targetValueFormatted ?? attribute['targetAmountFormatted'])}`
}

function nameOf({ type, value, partyInfo }: Attribute): string | undefined {
  if (type === 'PARTY_INFO') return isJsonObject(partyInfo) ? textOf(partyInfo['name']) : undefined
  return type === 'KEY_VALUE' ? textOf(value) : undefined
}
