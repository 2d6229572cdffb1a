// Templates as people write them: JSON with the names of cloud §4, checked as a whole, and back.
import type { Violation } from '../../lib/errors.ts'
import { isIdentifier } from '../../lib/identifier.ts'
import { isOperationDataTemplate } from './operation-data.ts'
import { ATTRIBUTE_SLOTS } from './attributes.ts'
import { findUiFaults } from './ui.ts'
import {
  type AttributeTemplate,
  hasDirectionChange,
  hasSoundPlaceholders,
  type LocalizedTexts,
  type ResultTexts,
  type SignatureType,
  type Template,
  type TemplateTexts,
} from './template.ts'

export type ParsedTemplate = { readonly template: Template } | { readonly violations: readonly Violation[] }

/** Checks everything about a template; names every fault. Members it does not know are ignored, null counts as absent. */
export function parseTemplate(json: unknown): ParsedTemplate {
  if (!isObject(json)) return { violations: [{ fieldName: 'body', hint: 'must be an object' }] }
  const faults: Violation[] = []
  const template: Template = {
    templateName: readText(json, 'templateName', IDENTIFIER, faults),
    operationType: readText(json, 'operationType', IDENTIFIER, faults),
    dataTemplate: readText(json, 'dataTemplate', DATA_TEMPLATE, faults),
    signatureTypes: readSignatureTypes(json['signatureType'], faults),
    maxFailureCount: readCount(json, 'maxFailureCount', faults),
    expirationSeconds: readCount(json, 'expiration', faults),
    riskFlags: readRiskFlags(json['riskFlags'], faults),
    isProximityCheckEnabled: readBoolean(json['proximityCheckEnabled'], faults),
    activationFlag: isAbsent(json['activationFlag']) ? null : readText(json, 'activationFlag', FLAG, faults),
    texts: readTexts(json['texts'], faults),
  }
  return faults.length > 0 ? { violations: faults } : { template }
}

/** The template as parseTemplate reads it, in the order of cloud §4. */
export const renderTemplate = (template: Template) => ({
  templateName: template.templateName,
  operationType: template.operationType,
  dataTemplate: template.dataTemplate,
  signatureType: [...template.signatureTypes],
  maxFailureCount: template.maxFailureCount,
  expiration: template.expirationSeconds,
  riskFlags: template.riskFlags,
  proximityCheckEnabled: template.isProximityCheckEnabled,
  ...(template.activationFlag !== null && { activationFlag: template.activationFlag }),
  texts: template.texts,
})

interface TextRule {
  readonly isGood: (text: string) => boolean
  readonly hint: string
}

type Json = Readonly<Record<string, unknown>>

function readText(json: Json, name: string, { isGood, hint }: TextRule, faults: Violation[], path = ''): string {
  const value = json[name]
  if (typeof value === 'string' && isGood(value)) return value
  faults.push(fault(`${path}${name}`, value, hint))
  return ''
}

function readOptionalText(json: Json, name: string, rule: TextRule, faults: Violation[], path: string): string | undefined {
  return isAbsent(json[name]) ? undefined : readText(json, name, rule, faults, path)
}

function readCount(json: Json, name: string, faults: Violation[]): number {
  const value = json[name]
  if (typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= INTEGER_MAX) return value
  faults.push(fault(name, value, `must be an integer from 1 to ${INTEGER_MAX}`))
  return 1
}

function readBoolean(value: unknown, faults: Violation[]): boolean {
  if (!isAbsent(value) && typeof value !== 'boolean') faults.push(fault('proximityCheckEnabled', value, 'must be a boolean'))
  return value === true
}

function readSignatureTypes(value: unknown, faults: Violation[]): readonly SignatureType[] {
  const types = Array.isArray(value) ? SIGNATURE_TYPES.filter((type) => value.includes(type)) : []
  const isGood = Array.isArray(value) && value.length > 0 && value.length === types.length
  if (!isGood) faults.push(fault('signatureType', value, `must be a list of ${SIGNATURE_TYPES.join(', ')}, each at most once`))
  return types
}

function readRiskFlags(value: unknown, faults: Violation[]): string {
  if (isAbsent(value)) return ''
  if (typeof value !== 'string' || !/^[XFC]{0,3}$/.test(value) || new Set(value).size !== value.length) {
    faults.push(fault('riskFlags', value, 'must be made of the letters X, F and C, each at most once'))
    return ''
  }
  // Their order has no meaning: one spelling, so that another order does not change the template.
  return ['X', 'F', 'C'].filter((flag) => value.includes(flag)).join('')
}

function readTexts(value: unknown, faults: Violation[]): TemplateTexts {
  const languages = isObject(value) ? Object.keys(value).toSorted() : []
  if (!isObject(value) || languages.length === 0) {
    faults.push(fault('texts', value, 'must be an object with the texts of at least one language'))
    return {}
  }
  const read = languages.map((language): [string, LocalizedTexts] => {
    if (!/^[a-z]{2}$/.test(language)) faults.push(fault('texts', language, 'a language must be two small letters'))
    return [language, readLocalizedTexts(value[language], `texts.${language}`, faults)]
  })
  return Object.fromEntries(read)
}

/** Title and message are demanded of every language: a phone would show an empty page in one that lacks them. */
function readLocalizedTexts(value: unknown, path: string, faults: Violation[]): LocalizedTexts {
  if (!isObject(value)) {
    faults.push(fault(path, value, 'must be an object'))
    return { title: '', message: '', attributes: [] }
  }
  const summary = readOptionalText(value, 'summary', MESSAGE, faults, `${path}.`)
  return {
    title: readText(value, 'title', TITLE, faults, `${path}.`),
    message: readText(value, 'message', MESSAGE, faults, `${path}.`),
    attributes: readAttributes(value['attributes'], `${path}.attributes`, faults),
    ...(!isAbsent(value['ui']) && { ui: readUi(value['ui'], `${path}.ui`, faults) }),
    ...(!isAbsent(value['resultTexts']) && { resultTexts: readResultTexts(value['resultTexts'], `${path}.resultTexts`, faults) }),
    ...(summary !== undefined && { summary }),
  }
}

function readResultTexts(value: unknown, path: string, faults: Violation[]): ResultTexts {
  if (!isObject(value)) {
    faults.push(fault(path, value, 'must be an object'))
    return {}
  }
  const names = ['success', 'failure', 'reject'].filter((name) => !isAbsent(value[name]))
  return Object.fromEntries(names.map((name) => [name, readText(value, name, MESSAGE, faults, `${path}.`)]))
}

function readAttributes(value: unknown, path: string, faults: Violation[]): readonly AttributeTemplate[] {
  if (isAbsent(value)) return []
  if (!Array.isArray(value) || value.length > ATTRIBUTES_MAX) {
    faults.push(fault(path, value, `must be a list of at most ${ATTRIBUTES_MAX} attributes`))
    return []
  }
  return value.map((attribute: unknown, index) => readAttribute(attribute, `${path}.${index}`, faults))
}

function readAttribute(value: unknown, path: string, faults: Violation[]): AttributeTemplate {
  if (!isObject(value)) {
    faults.push(fault(path, value, 'must be an object'))
    return { id: '', type: '', text: '', params: {} }
  }
  const type = readText(value, 'type', ATTRIBUTE_TYPE, faults, `${path}.`)
  return {
    id: readText(value, 'id', IDENTIFIER, faults, `${path}.`),
    type,
    text: readText(value, 'text', LABEL, faults, `${path}.`),
    params: type === '' ? {} : readParams(value['params'] ?? {}, type, `${path}.params`, faults),
  }
}

function readParams(given: unknown, type: string, path: string, faults: Violation[]): Record<string, string> {
  if (!isObject(given)) {
    faults.push(fault(path, given, 'must be an object'))
    return {}
  }
  const { required, optional, aliases = {} } = ATTRIBUTE_SLOTS[type] ?? { required: [], optional: [] }
  const known = [...required, ...optional]
  const value = withoutAliases(given, aliases)
  const strange = Object.keys(value).find((slot) => !known.includes(slot))
  if (strange !== undefined) faults.push(fault(path, strange, `${type} has ${known.join(', ') || 'no params'}`))
  const used = known.filter((slot) => required.includes(slot) || !isAbsent(value[slot]))
  return Object.fromEntries(used.map((slot) => [slot, readText(value, slot, PARAMETER_NAME, faults, `${path}.`)]))
}

/** Slots under the names that templates are stored with. An alias beside the name that it stands for stays, and is refused. */
function withoutAliases(given: Json, aliases: Readonly<Record<string, string>>): Json {
  const nameOf = (slot: string): string => {
    const name = Object.hasOwn(aliases, slot) ? aliases[slot] : undefined
    return name !== undefined && isAbsent(given[name]) ? name : slot
  }
  const params = Object.entries(given).filter(([, name]) => !isAbsent(name))
  return Object.fromEntries(params.map(([slot, name]) => [nameOf(slot), name]))
}

/** What phones refuse is refused here; members that they do not know are free JSON. */
function readUi(value: unknown, path: string, faults: Violation[]): Json {
  if (!isObject(value)) {
    faults.push(fault(path, value, 'must be an object'))
    return {}
  }
  const problem = findUiProblem(value, 0)
  if (problem !== undefined || JSON.stringify(value).length > UI_MAX) {
    faults.push(fault(path, undefined, problem ?? `must be at most ${UI_MAX} characters of JSON`))
    return {}
  }
  for (const found of findUiFaults(value)) faults.push(fault(`${path}.${found.path}`, found.value, found.hint))
  return value
}

/** Text and names anywhere inside that cannot be stored or filled, or a depth that code that walks it later does not take. */
function findUiProblem(value: unknown, depth: number): string | undefined {
  if (typeof value === 'string') return isMessage(value) ? undefined : `has a text that ${MESSAGE_HINT}`
  if (typeof value !== 'object' || value === null) return undefined
  if (depth > UI_DEPTH_MAX) return 'is nested too deeply'
  for (const [name, member] of Object.entries(value)) {
    const problem = isText(name) ? findUiProblem(member, depth + 1) : 'has a name with control or direction characters'
    if (problem !== undefined) return problem
  }
  return undefined
}

function fault(fieldName: string, value: unknown, hint: string): Violation {
  const isShown = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
  const invalidValue = isShown ? { invalidValue: String(value).slice(0, VALUE_CHARACTERS_MAX).toWellFormed() } : {}
  return { fieldName, ...invalidValue, hint: value === undefined ? `must be present and ${hint.replace(/^must /, '')}` : hint }
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const isAbsent = (value: unknown): value is null | undefined => value === undefined || value === null
const hasLength = (text: string, max: number): boolean => text.trim() !== '' && text.length <= max
/** No control characters, no change of direction and no half of a surrogate pair. */
const isText = (text: string): boolean => text.isWellFormed() && !/\p{Cc}/u.test(text) && !hasDirectionChange(text)
/** The same, but for line breaks, tabulators and sound placeholders. */
const isMessage = (text: string): boolean => isText(text.replace(/[\n\r\t]/g, '')) && hasSoundPlaceholders(text)
const isName = (text: string): boolean => isText(text) && isIdentifier(text)

const INTEGER_MAX = 2_147_483_647
const ATTRIBUTES_MAX = 100
const UI_MAX = 65_536
const UI_DEPTH_MAX = 32
const VALUE_CHARACTERS_MAX = 128
const MESSAGE_HINT = 'has a broken placeholder, or control or direction characters'
const SIGNATURE_TYPES: readonly SignatureType[] = ['possession', 'possession_knowledge', 'possession_biometry']

const IDENTIFIER: TextRule = {
  isGood: isName,
  hint: 'must be 1 to 255 characters, not blank, without control and direction characters',
}
const PARAMETER_NAME: TextRule = { isGood: isName, hint: 'must be the name of an operation parameter' }
const FLAG: TextRule = {
  isGood: (text) => isName(text) && !/[\s,]/.test(text),
  hint: 'must be 1 to 255 characters without white space and commas',
}
const LABEL: TextRule = {
  isGood: (text) => isText(text) && text.length <= 255,
  hint: 'must be at most 255 characters without control and direction characters',
}
const TITLE: TextRule = {
  isGood: (text) => isMessage(text) && hasLength(text, 255),
  hint: 'must be 1 to 255 characters, not blank, with sound placeholders',
}
const MESSAGE: TextRule = {
  isGood: (text) => isMessage(text) && hasLength(text, 4096),
  hint: 'must be 1 to 4096 characters, not blank, with sound placeholders',
}
const DATA_TEMPLATE: TextRule = {
  isGood: (text) => text.length <= 4096 && isText(text) && isOperationDataTemplate(text),
  hint: 'must be 1 to 4096 characters: A, a number from 0 to 99, then at most 5 fields after asterisks, with sound placeholders',
}
const ATTRIBUTE_TYPE: TextRule = {
  isGood: (text) => Object.hasOwn(ATTRIBUTE_SLOTS, text),
  hint: `must be one of ${Object.keys(ATTRIBUTE_SLOTS).join(', ')}`,
}
