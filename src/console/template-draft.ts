// Reads a template while it is edited: the typed values as the JSON of the API, valid or not, and changes of its shape.
import { parseTemplate, renderTemplate } from '../domain/template/parser.ts'
import { type AttributeTemplate, type LocalizedTexts, PAYMENT_TEMPLATE, type ResultTexts } from '../domain/template/template.ts'
import type { Violation } from '../lib/errors.ts'
import { isJsonObject } from '../lib/json.ts'
import { parseJsonField, Refusal } from './api.ts'
import type { Form } from './page.ts'

export type LanguageJson = Partial<LocalizedTexts>

type RenderedTemplate = ReturnType<typeof renderTemplate>

export interface TemplateJson extends Omit<RenderedTemplate, 'signatureType' | 'texts'> {
  readonly signatureType: readonly string[]
  readonly texts: Readonly<Record<string, LanguageJson>>
}

export interface Draft {
  readonly template: TemplateJson
  /** The lines that are no JSON. */
  readonly faults: readonly Violation[]
  /** Whether the texts are edited as JSON. */
  readonly isJson: boolean
}

/** The members of `ui` that have lines in the form. The others are in its JSON. */
export const SCREEN_MEMBERS = ['type', 'heading', 'message', 'items', 'approvalType']
export const RESULT_TEXTS = ['success', 'failure', 'reject'] as const

/** The draft in a form. `name`: that of an existing template. Empty for a new one, whose name is in the form. */
export function readDraft(form: Form, name: string): Draft {
  const faults: Violation[] = []
  const isJson = form.text('mode') === 'json'
  const json = isJson ? readJson(form, 'texts', faults) : undefined
  const texts = isJson ? json : Object.fromEntries(form.all('language').map((one) => [one, readLanguage(form, one, faults)]))
  const activationFlag = form.optional('activationFlag')
  const template = {
    templateName: name || form.text('templateName'),
    operationType: form.text('operationType'),
    dataTemplate: form.text('dataTemplate'),
    signatureType: form.all('signatureType'),
    maxFailureCount: Number(form.text('maxFailureCount')),
    expiration: Number(form.text('expiration')),
    riskFlags: form.all('riskFlags').join(''),
    proximityCheckEnabled: form.isChecked('proximityCheckEnabled'),
    ...(activationFlag !== undefined && { activationFlag }),
    texts: (texts ?? {}) as TemplateJson['texts'],
  }
  return { template, faults, isJson }
}

function readLanguage(form: Form, language: string, faults: Violation[]): LanguageJson {
  const at = `texts.${language}`
  const summary = form.optional(`${at}.summary`)
  const results = RESULT_TEXTS.flatMap((name) => {
    const text = form.optional(`${at}.resultTexts.${name}`)
    return text === undefined ? [] : [[name, text]]
  })
  const ui = readUi(form, `${at}.ui`, faults)
  return {
    title: form.text(`${at}.title`),
    message: form.text(`${at}.message`),
    ...(summary !== undefined && { summary }),
    attributes: readAttributes(form, `${at}.attributes`),
    ...(ui !== undefined && { ui }),
    ...(results.length > 0 && { resultTexts: Object.fromEntries(results) as ResultTexts }),
  }
}

/** Reads rows, which are numbered from 0 without gaps. Each row has a type, so the first missing type ends them. */
function readAttributes(form: Form, at: string): AttributeTemplate[] {
  const rows: AttributeTemplate[] = []
  while (form.all(`${at}.${rows.length}.type`).length > 0) {
    const own = `${at}.${rows.length}`
    const params = form.entries.filter(([name, value]) => name.startsWith(`${own}.params.`) && value.trim() !== '')
    rows.push({
      id: form.text(`${own}.id`),
      type: form.text(`${own}.type`),
      text: form.text(`${own}.text`),
      params: Object.fromEntries(params.map(([name, value]) => [name.slice(`${own}.params.`.length), value.trim()])),
    })
  }
  return rows
}

function readUi(form: Form, at: string, faults: Violation[]): LanguageJson['ui'] {
  if (form.text(`${at}.mode`) !== 'own') return undefined
  const others = form.optional(`${at}.more`) === undefined ? {} : readJson(form, `${at}.more`, faults)
  if (others !== undefined && !isJsonObject(others)) faults.push({ fieldName: `${at}.more`, hint: 'must be an object' })
  const screen = `${at}.preApprovalScreen`
  const items = form
    .text(`${screen}.items`)
    .split('\n')
    .filter((line) => line.trim() !== '')
  return {
    ...(isJsonObject(others) && others),
    ...(form.isChecked(`${at}.flipButtons`) && { flipButtons: true }),
    ...(form.isChecked(`${at}.blockApprovalOnCall`) && { blockApprovalOnCall: true }),
    ...(form.optional(`${screen}.type`) !== undefined && {
      preApprovalScreen: {
        type: form.text(`${screen}.type`),
        heading: form.text(`${screen}.heading`),
        message: form.text(`${screen}.message`),
        ...(items.length > 0 && { items }),
        ...(form.isChecked(`${screen}.approvalType`) && { approvalType: 'SLIDER' }),
      },
    }),
  }
}

function readJson(form: Form, name: string, faults: Violation[]): unknown {
  try {
    return parseJsonField(name, form.text(name))
  } catch (refusal) {
    if (!(refusal instanceof Refusal)) throw refusal
    faults.push(...refusal.violations)
    return undefined
  }
}

/**
 * The draft after a change of its shape: `add`, `up`, `down` and `drop` of the attribute at a place of a language, `language` with the name of a new
 * one, `forget` of a language, `json` and `form` for the way in which the texts are edited. A change of a missing part has no effect.
 */
export function changeDraft(draft: Draft, [what = '', language = '', place = '0']: readonly string[]): Draft {
  const { template, faults } = draft
  // A line that is no JSON would be lost.
  if (what === 'json') return { ...draft, isJson: draft.isJson || faults.length === 0 }
  if (draft.isJson) return what === 'form' ? toForm(draft) : draft
  const withTexts = (texts: TemplateJson['texts']): Draft => ({ ...draft, template: { ...template, texts } })
  if (what === 'forget') return withTexts(Object.fromEntries(Object.entries(template.texts).filter(([one]) => one !== language)))
  if (what === 'language') {
    const [first = {}] = Object.values(template.texts)
    return language === '' || Object.hasOwn(template.texts, language)
      ? draft
      : withTexts({ ...template.texts, [language]: first })
  }
  const texts = Object.hasOwn(template.texts, language) ? template.texts[language] : undefined
  if (texts === undefined) return draft
  const attributes = changeRows(texts.attributes ?? [], what, Number(place))
  return withTexts({ ...template.texts, [language]: { ...texts, attributes } })
}

/** The draft for a form line by line. JSON that is no sound texts stays as it is, and the fault says why. */
function toForm(draft: Draft): Draft {
  const { texts } = draft.template
  const parsed = parseTemplate({ ...renderTemplate(PAYMENT_TEMPLATE), texts })
  if ('template' in parsed) return { ...draft, template: { ...draft.template, texts: parsed.template.texts }, isJson: false }
  const unsound = parsed.violations.map(({ fieldName, hint }) => ({ fieldName: 'texts', hint: `${fieldName}: ${hint}` }))
  return { ...draft, faults: draft.faults.length > 0 ? draft.faults : unsound }
}

function changeRows(rows: readonly AttributeTemplate[], what: string, place: number): readonly AttributeTemplate[] {
  const row = rows[place]
  if (what === 'add') return [...rows, { id: `operation.${rows.length + 1}`, type: 'KEY_VALUE', text: '', params: {} }]
  if (row === undefined) return rows
  const others = rows.toSpliced(place, 1)
  if (what === 'up') return others.toSpliced(Math.max(0, place - 1), 0, row)
  if (what === 'down') return others.toSpliced(place + 1, 0, row)
  return what === 'drop' ? others : rows
}
