// What phones show of operations, read for the pages: the preview of one, and the line of each in a list.
import { type OperationForm, renderOperationForm } from '../domain/operation/form.ts'
import { readOperations } from '../domain/operation/operation.ts'
import { chooseTexts } from '../domain/template/template.ts'
import { html, type Markup } from './markup.ts'
import type { PageCall } from './page.ts'
import { isObject, textOf } from './phone-preview.ts'

export interface ShownOperation {
  readonly form: OperationForm
  /** What is signed. */
  readonly data: string
  readonly statusReason: string | null
}

/** What phones show, by the id of the operation. Its texts are those that it was made with, whatever became of its template since. */
export async function readShown(
  { parts, application = '' }: Pick<PageCall, 'parts' | 'application'>,
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

/** An operation in a line: what it is about, in the words of the phone, and to whom. */
export interface OperationLine {
  readonly title: Markup
  /** The account or the name that stands first among the rows; undefined where there is none. */
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
  if (type === 'PARTY_INFO') return isObject(partyInfo) ? textOf(partyInfo['name']) : undefined
  return type === 'KEY_VALUE' ? textOf(value) : undefined
}
