// Composes and parses operation data, the string that the phone signs: `header*field*field...` (cloud §5, v3 §15.1).
import type { Violation } from '../../lib/errors.ts'
import {
  hasDirectionChange,
  hasSoundPlaceholders,
  listPlaceholders,
  type OperationParameters,
  replacePlaceholders,
} from './template.ts'

type ComposedOperationData = { readonly data: string } | { readonly violations: readonly Violation[] }

/**
 * Fills the data template with escaped parameters. Violations name the parameter. They report refused characters, a placeholder without a
 * parameter, data that is too long to be approved, data that a phone would split differently, and in a payment (A1) a field that a phone could not
 * read.
 */
export function composeOperationData(dataTemplate: string, parameters: OperationParameters): ComposedOperationData {
  const violations = [...findRefusedCharacters(parameters), ...findMissing(dataTemplate, parameters)]
  // A template from before the check may have such characters.
  if (hasDirectionChange(dataTemplate)) violations.push({ fieldName: 'template', hint: 'must not change the direction of text' })
  if (violations.length > 0) return { violations }
  const data = replacePlaceholders(dataTemplate, (name) => escapeText(parameters[name] ?? ''))
  if (data.length > DATA_MAX)
    return { violations: [{ fieldName: 'parameters', hint: `must give at most ${DATA_MAX} characters of data` }] }
  const splits = findSplitFaults(dataTemplate, data, parameters)
  if (splits.length > 0) return { violations: splits }
  const faults = isPayment(dataTemplate) ? findPaymentFaults(dataTemplate, data, parameters) : []
  return faults.length > 0 ? { violations: faults } : { data }
}

interface OperationField {
  readonly letter: string
  /** Unescaped. */
  readonly value: string
}

interface OperationData {
  /** 0 generic, 1 payment, 2 login. */
  readonly templateNumber: number
  /** Undefined where an optional field was left out. */
  readonly fields: readonly (OperationField | undefined)[]
}

/** Reads operation data as a phone does; undefined for other texts. The values of fields are not checked. */
export function parseOperationData(data: string): OperationData | undefined {
  const [header = '', ...texts] = splitFields(data)
  const [, templateNumber] = HEADER.exec(header) ?? []
  if (templateNumber === undefined || texts.length > FIELDS_MAX || CONTROL.test(data)) return undefined
  const fields: (OperationField | undefined)[] = []
  for (const text of texts) {
    const letter = text.charAt(0)
    const value = unescapeText(text.slice(1))
    if (text !== '' && (!/[A-Z]/.test(letter) || value === undefined)) return undefined
    fields.push(text === '' || value === undefined ? undefined : { letter, value })
  }
  return { templateNumber: Number(templateNumber), fields }
}

/** True when operation data can be composed from a data template. Checks its header, number of fields, escapes and placeholders. */
export function isOperationDataTemplate(dataTemplate: string): boolean {
  if (!hasSoundPlaceholders(dataTemplate)) return false
  // A placeholder may stand for a whole field with its letter.
  const [header = '', ...fields] = splitFields(replacePlaceholders(dataTemplate, () => 'X'))
  const areSound = fields.every(
    (field, index) => unescapeText(field) !== undefined && /^([A-Z]|$)/.test(field) && !isSplitWrongly(field, index, fields),
  )
  const isFull = fields.length <= FIELDS_MAX && (!isPayment(dataTemplate) || fields.length >= PAYMENT_FIELDS_MIN)
  return HEADER.test(header) && !CONTROL.test(dataTemplate) && !hasDirectionChange(dataTemplate) && isFull && areSound
}

/** A warning about a valid data template; undefined when there is none. */
export const warnOfDataTemplate = (dataTemplate: string): string | undefined =>
  /^A0(\*|$)/.test(dataTemplate)
    ? 'the number 0 in dataTemplate is refused by the SDK in TypeScript, so that its phones cannot approve offline; 3 to 99 are taken by all'
    : undefined

/** Escapes a text for a field: backslash, asterisk and line break. */
const escapeText = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('*', '\\*').replaceAll('\n', '\\n')

function findRefusedCharacters(parameters: OperationParameters): Violation[] {
  return Object.entries(parameters)
    .filter(([, value]) => REFUSED.test(value) || hasDirectionChange(value))
    .map(([name, value]) =>
      violation(name, value, 'must not contain control characters other than line breaks, nor change the direction of text'),
    )
}

function findMissing(dataTemplate: string, parameters: OperationParameters): Violation[] {
  return [...new Set(listPlaceholders(dataTemplate))]
    .filter((name) => !Object.hasOwn(parameters, name))
    .map((name) => ({ fieldName: `parameters.${name}`, hint: 'must be present, the template needs it' }))
}

/** Returns one violation for each parameter that ends a field with a backslash. The last field may end with one. */
function findSplitFaults(dataTemplate: string, data: string, parameters: OperationParameters): Violation[] {
  const hint = 'must not end with a backslash before another field: phones would read the two as one'
  // Escaped values hold no field separator, so both have the same fields.
  const templates = splitFields(dataTemplate)
  return splitFields(data).flatMap((field, index, fields) => {
    if (!isSplitWrongly(field, index, fields)) return []
    const names = new Set(listPlaceholders(templates[index] ?? ''))
    const ending = [...names].filter((name) => parameters[name]?.endsWith('\\'))
    return ending.length === 0
      ? [{ fieldName: 'template', hint }]
      : ending.map((name) => violation(name, parameters[name] ?? '', hint))
  })
}

/** SDKs split at every asterisk, except behind a backslash. They do not notice when that backslash is itself escaped. */
const isSplitWrongly = (field: string, index: number, fields: readonly string[]): boolean =>
  index < fields.length - 1 && field.endsWith('\\')

/** Returns one violation for each parameter of a field that does not fit a payment. */
function findPaymentFaults(dataTemplate: string, data: string, parameters: OperationParameters): Violation[] {
  const fields = parseOperationData(data)?.fields ?? []
  // Escaped values hold no field separator, so both have the same fields.
  const [, ...templates] = splitFields(dataTemplate)
  if (fields.length < PAYMENT_FIELDS_MIN) return [{ fieldName: 'template', hint: 'the payment needs an amount and an account' }]
  return fields.flatMap((field, index) => {
    const hint = findFieldFault(field, index, fields)
    if (hint === undefined) return []
    const names = [...new Set(listPlaceholders(templates[index] ?? ''))]
    return names.length === 0
      ? [{ fieldName: 'template', hint }]
      : names.map((name) => violation(name, parameters[name] ?? '', hint))
  })
}

/** Returns the fault of a field of a payment; undefined when it has none. */
function findFieldFault(
  field: OperationField | undefined,
  index: number,
  fields: readonly (OperationField | undefined)[],
): string | undefined {
  if (index === 0) return matches(field, AMOUNT) ? undefined : 'must give an amount and a currency like 1492.50 EUR'
  if (index === 1) {
    return matches(field, IBAN) || matches(field, ACCOUNT)
      ? undefined
      : 'must give an IBAN of capital letters and digits, or an account'
  }
  if (field === undefined) return undefined
  if (field.letter === 'D' && !isDate(field.value)) return 'must give a date like 20301231'
  // Reference, date and note come in this order. Text may come anywhere among them.
  const before = fields.slice(2, index).map((other) => ORDER.indexOf(other?.letter ?? ''))
  const isInOrder = ORDER.includes(field.letter) && before.every((place) => place < ORDER.indexOf(field.letter))
  return isInOrder || field.letter === 'T' ? undefined : 'must give a reference, a date or a note, in this order'
}

const matches = (field: OperationField | undefined, pattern: RegExp): boolean =>
  field !== undefined && pattern.test(`${field.letter}${field.value}`)

function isDate(text: string): boolean {
  const [, year, month, day] = /^(\d{4})(\d{2})(\d{2})$/.exec(text) ?? []
  if (year === undefined) return false
  const date = new Date(`${year}-${month}-${day}T00:00:00Z`)
  return !Number.isNaN(date.getTime()) && date.getUTCDate() === Number(day)
}

/** Splits at asterisks that are not escaped. The parts stay escaped. */
const splitFields = (text: string): readonly string[] =>
  (`*${text}`.match(/\*[^*\\]*(?:\\[^]?[^*\\]*)*/g) ?? []).map((part) => part.slice(1))

/** Removes the escapes of a text. Undefined when a backslash does not begin an escape. */
function unescapeText(text: string): string | undefined {
  if (text.replace(ESCAPES, '').includes('\\')) return undefined
  return text.replace(ESCAPES, (_, letter: string) => (letter === 'n' ? '\n' : letter))
}

const isPayment = (dataTemplate: string): boolean => /^A1(\*|$)/.test(dataTemplate)

const violation = (name: string, value: string, hint: string): Violation => ({
  fieldName: `parameters.${name}`,
  invalidValue: value.slice(0, VALUE_CHARACTERS_MAX).toWellFormed(),
  hint,
})

// An approval then fits in 64 KiB, even if a phone escapes each character with six bytes.
const DATA_MAX = 10_000
const FIELDS_MAX = 5
const PAYMENT_FIELDS_MIN = 2
const VALUE_CHARACTERS_MAX = 128
const HEADER = /^A(0|[1-9]\d?)$/
const ESCAPES = /\\([n\\*])/g
const ORDER = ['R', 'D', 'N']
const AMOUNT = /^A\d+(\.\d+)?[A-Z]{3}$/
// Phones check only the characters, not check digits or the lengths of countries.
const IBAN = /^I[A-Z0-9]{1,34}(,[A-Z0-9]{1,11})?$/
const ACCOUNT = /^Q[^]*\S/
// REFUSED is every character below U+0020 except the line break. CONTROL also has the line break.
const REFUSED = /[^\n -\u{10FFFF}]/u
const CONTROL = /[^ -\u{10FFFF}]/u
