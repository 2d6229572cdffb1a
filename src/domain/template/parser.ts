// Parses the JSON of a template, checks it as a whole, and writes it back (cloud §4).
import { KindGuard, OptionalKind, type TObject, type TRecord, type TSchema, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { Violation } from '../../lib/errors.ts'
import { isJsonObject } from '../../lib/json.ts'
import { ATTRIBUTE_SLOTS } from './attributes.ts'
import {
  isMessage,
  isName,
  isText,
  MESSAGE_HINT,
  PARAMETER_NAME_HINT,
  SIGNATURE_TYPES,
  type TemplateJson,
  TemplateSchema,
} from './schema.ts'
import type { Template } from './template.ts'
import { findUiFaults, type Json } from './ui.ts'

export type ParsedTemplate = { readonly template: Template } | { readonly violations: readonly Violation[] }

/** Checks everything about a template; names every fault. Members it does not know are ignored, null counts as absent. */
export function parseTemplate(json: unknown): ParsedTemplate {
  if (!isJsonObject(json)) return { violations: [{ fieldName: 'body', hint: 'must be an object' }] }
  const faults: Violation[] = []
  const read = readValue(TemplateSchema, json, '', faults) as TemplateJson
  if (faults.length > 0) return { violations: faults }
  const { signatureType, expiration, riskFlags = '', proximityCheckEnabled = false, activationFlag = null, texts, ...rest } = read
  return {
    template: {
      ...rest,
      signatureTypes: SIGNATURE_TYPES.filter((type) => signatureType.includes(type)),
      expirationSeconds: expiration,
      // Their order has no meaning: one spelling, so that another order does not change the template.
      riskFlags: ['X', 'F', 'C'].filter((flag) => riskFlags.includes(flag)).join(''),
      isProximityCheckEnabled: proximityCheckEnabled,
      activationFlag,
      texts: texts as Template['texts'],
    },
  }
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

/** The value as its schema has it, without members that it does not know or that are null. What leaves the schema is told by its description. */
function readValue(schema: TSchema, value: unknown, path: string, faults: Violation[]): unknown {
  if (KindGuard.IsObject(schema) && isJsonObject(value)) return readMembers(schema, value, path, faults)
  if (KindGuard.IsRecord(schema) && isJsonObject(value) && Object.keys(value).length > 0)
    return readLanguages(schema, value, path, faults)
  const isList = KindGuard.IsArray(schema) && KindGuard.IsObject(schema.items) && Array.isArray(value)
  if (isList && value.length <= (schema.maxItems ?? Infinity))
    return value.map((item, index) => readValue(schema.items, item, `${path}.${index}`, faults))
  if (!Value.Check(schema, value)) faults.push(fault(path, value, schema.description ?? ''))
  return value
}

function readMembers({ properties }: TObject, given: Json, path: string, faults: Violation[]): Json {
  const read = Object.entries(properties).flatMap(([name, schema]) => {
    const own = path === '' ? name : `${path}.${name}`
    const value = given[name] ?? (schema['default'] as unknown)
    if (name === 'params') return [[name, readParams(value, given['type'], own, faults)]]
    if (isAbsent(value) && OptionalKind in schema) return []
    if (name === 'ui') return [[name, readUi(value, own, faults)]]
    // What must be there says whether it is null or missing.
    return [[name, readValue(schema, value ?? given[name], own, faults)]]
  })
  return Object.fromEntries(read) as Json
}

function readLanguages({ patternProperties }: TRecord, given: Json, path: string, faults: Violation[]): Json {
  const [schema = Type.Unknown()] = Object.values(patternProperties)
  const read = Object.keys(given)
    .toSorted()
    .map((language) => {
      if (!/^[a-z]{2}$/.test(language)) faults.push(fault(path, language, 'a language must be two small letters'))
      return [language, readValue(schema, given[language], `${path}.${language}`, faults)]
    })
  return Object.fromEntries(read) as Json
}

/** A template whose type of attribute is wrong is refused already. */
function readParams(given: unknown, type: unknown, path: string, faults: Violation[]): Record<string, string> {
  if (typeof type !== 'string' || !Object.hasOwn(ATTRIBUTE_SLOTS, type)) return {}
  if (!isJsonObject(given)) {
    faults.push(fault(path, given, 'must be an object'))
    return {}
  }
  const { required, optional, aliases = {} } = ATTRIBUTE_SLOTS[type] ?? { required: [], optional: [] }
  const known = [...required, ...optional]
  const value = withoutAliases(given, aliases)
  const strange = Object.keys(value).find((slot) => !known.includes(slot))
  if (strange !== undefined) faults.push(fault(path, strange, `${type} has ${known.join(', ') || 'no params'}`))
  const used = known.filter((slot) => required.includes(slot) || !isAbsent(value[slot]))
  return Object.fromEntries(
    used.map((slot) => {
      const name = value[slot]
      if (typeof name === 'string' && isName(name)) return [slot, name]
      faults.push(fault(`${path}.${slot}`, name, PARAMETER_NAME_HINT))
      return [slot, '']
    }),
  )
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
  if (!isJsonObject(value)) {
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

const isAbsent = (value: unknown): value is null | undefined => value === undefined || value === null

const UI_MAX = 65_536
const UI_DEPTH_MAX = 32
const VALUE_CHARACTERS_MAX = 128
