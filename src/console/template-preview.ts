// Draws a template as a phone would show it: with what was typed, and with samples where nothing was.
import { renderOperationForm } from '../domain/operation/form.ts'
import { composeOperationData } from '../domain/template/operation-data.ts'
import { chooseTexts, listPlaceholders, type OperationParameters, type Template } from '../domain/template/template.ts'
import { html, type Markup } from './markup.ts'
import { phonePreview } from './phone-preview.ts'
import type { TemplateJson } from './template-draft.ts'
import { sayState } from './words.ts'

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
 * What a person calls each parameter: the label of the row that shows it, or the name of its part of the row. A parameter that no row shows, or
 * whose label another one has, is not in the map.
 */
export function labelsOf({ texts }: Template, language: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const { text, params } of chooseTexts(texts, [language]).texts.attributes) {
    Object.entries(params).forEach(([slot, name], i) => {
      const label = i === 0 ? text : sayState(slot.replaceAll(/([A-Z])/g, '_$1'))
      if (!found.has(name) && label !== '' && ![...found.values()].includes(label)) found.set(name, label)
    })
  }
  return found
}

/** A value that could be one of this parameter. */
export const sampleOf = (name: string): string => SAMPLES.find(([pattern]) => pattern.test(name))?.[1] ?? name

/** The phone's view in one language; where the parameters make no operation, what is wrong with them. */
export function templatePreview(template: Template, typed: OperationParameters, language: string): Markup {
  const parameters = Object.fromEntries(
    placeholdersOf(template).map(({ name }) => [name, (Object.hasOwn(typed, name) ? typed[name] : '') || sampleOf(name)]),
  )
  const composed = composeOperationData(template.dataTemplate, parameters)
  if ('violations' in composed)
    return html`<div class="notice is-wait"><p>The phone could not sign this:</p><ul>${composed.violations.map(
      ({ fieldName, hint }) => html`<li><code>${fieldName}</code> ${hint}</li>`,
    )}</ul></div>`
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
