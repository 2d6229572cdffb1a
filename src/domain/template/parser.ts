// Parses the JSON of a template by its schema, checks it as a whole, and writes it back (cloud §4).
import {
  FormatRegistry,
  KindGuard,
  OptionalKind,
  type Static,
  type TObject,
  type TRecord,
  type TSchema,
  Type,
} from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { Violation } from '../../lib/errors.ts'
import { isJsonObject } from '../../lib/json.ts'
import { ATTRIBUTE_SLOTS } from './attributes.ts'
import { hasDirectionChange, hasSoundPlaceholders, SIGNATURE_TYPES, type Template } from './template.ts'
import { AnObject, findUiFaults, type Json } from './ui.ts'
import { isForPaths, isIdentifier } from '../../lib/identifier.ts'
import { isOperationDataTemplate } from './operation-data.ts'

export type ParsedTemplate = { readonly template: Template } | { readonly violations: readonly Violation[] }

/** Parses a template and names every fault. Unknown members are ignored, and null counts as absent. */
export function parseTemplate(json: unknown): ParsedTemplate {
  if (!isJsonObject(json)) return { violations: [{ fieldName: 'body', hint: 'must be an object' }] }
  const faults: Violation[] = []
  const read = readValue(TemplateSchema, json, '', faults) as Static<typeof TemplateSchema>
  if (faults.length > 0) return { violations: faults }
  const { signatureType, expiration, riskFlags = '', proximityCheckEnabled = false, activationFlag = null, texts, ...rest } = read
  return {
    template: {
      ...rest,
      signatureTypes: SIGNATURE_TYPES.filter((type) => signatureType.includes(type)),
      expirationSeconds: expiration,
      // The order of flags has no meaning. They are stored in one order, so that another order does not count as a change.
      riskFlags: ['X', 'F', 'C'].filter((flag) => riskFlags.includes(flag)).join(''),
      isProximityCheckEnabled: proximityCheckEnabled,
      activationFlag,
      texts: texts as Template['texts'],
    },
  }
}

/** Writes a template as the JSON that parseTemplate reads, in the order of cloud §4. */
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

/** Reads a value by its schema, without unknown members and members that are null. A fault is described by the `description` of the schema. */
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
    // A fault of a required member distinguishes null from missing.
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

/** An attribute of a wrong type has its fault already. */
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
      faults.push(fault(`${path}.${slot}`, name, 'must be the name of an operation parameter'))
      return [slot, '']
    }),
  )
}

/** Renames slots to the names that are stored. An alias beside its own name stays, and is then refused. */
function withoutAliases(given: Json, aliases: Readonly<Record<string, string>>): Json {
  const nameOf = (slot: string): string => {
    const name = Object.hasOwn(aliases, slot) ? aliases[slot] : undefined
    return name !== undefined && isAbsent(given[name]) ? name : slot
  }
  const params = Object.entries(given).filter(([, name]) => !isAbsent(name))
  return Object.fromEntries(params.map(([slot, name]) => [nameOf(slot), name]))
}

/** Reads `ui`, and refuses members that phones would refuse. Members that phones do not know are free JSON. */
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

/** Finds a text or a name inside `ui` that cannot be stored or filled, or a depth that later code cannot walk. */
function findUiProblem(value: unknown, depth: number): string | undefined {
  if (typeof value === 'string')
    return isMessage(value) ? undefined : 'has a text that has a broken placeholder, or control or direction characters'
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

/** True for a text without control characters, changes of direction, and halves of surrogate pairs. */
const isText = (text: string): boolean => text.isWellFormed() && !/\p{Cc}/u.test(text) && !hasDirectionChange(text)
/** The same, but line breaks, tabulators and sound placeholders are allowed. */
const isMessage = (text: string): boolean => isText(text.replace(/[\n\r\t]/g, '')) && hasSoundPlaceholders(text)
const isName = (text: string): boolean => isText(text) && isIdentifier(text)

/** Makes the schema of a text of at most `maxLength` UTF-16 code units that `isGood` accepts. */
function text(format: string, isGood: (text: string) => boolean, description: string, maxLength?: number) {
  FormatRegistry.Set(`template ${format}`, isGood)
  return Type.String({ format: `template ${format}`, description, ...(maxLength !== undefined && { maxLength }) })
}

const isFilled = (value: string): boolean => value.trim() !== '' && isMessage(value)
const Identifier = text('name', isName, 'must be 1 to 255 characters, not blank, without control and direction characters')
const TemplateName = text(
  'template name',
  (name) => isName(name) && isForPaths(name),
  'must be 1 to 255 characters, not blank, without control and direction characters, other than . and ..',
)
const Title = text('title', isFilled, 'must be 1 to 255 characters, not blank, with sound placeholders', 255)
const Message = text('message', isFilled, 'must be 1 to 4096 characters, not blank, with sound placeholders', 4096)
const Count = Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: 'must be an integer from 1 to 2147483647' })

const Attribute = Type.Object(
  {
    id: Identifier,
    type: text(
      'attribute type',
      (type) => Object.hasOwn(ATTRIBUTE_SLOTS, type),
      `must be one of ${Object.keys(ATTRIBUTE_SLOTS).join(', ')}`,
    ),
    text: text('label', isText, 'must be at most 255 characters without control and direction characters', 255),
    // The type decides which params are allowed; readParams checks them.
    params: Type.Unsafe<Readonly<Record<string, string>>>(Type.Unknown({ default: {} })),
  },
  AnObject,
)

/** Every language needs title and message: without them a phone would show an empty page. */
const Texts = Type.Object(
  {
    title: Title,
    message: Message,
    attributes: Type.Optional(
      Type.Array(Attribute, { maxItems: 100, default: [], description: 'must be a list of at most 100 attributes' }),
    ),
    // The schema OperationUi has the members that phones read; readUi checks them.
    ui: Type.Optional(Type.Unsafe<Readonly<Record<string, unknown>>>(Type.Unknown())),
    resultTexts: Type.Optional(
      Type.Object({ success: Type.Optional(Message), failure: Type.Optional(Message), reject: Type.Optional(Message) }, AnObject),
    ),
    summary: Type.Optional(Message),
  },
  AnObject,
)

/** The `description` is the error text for a value that does not match. */
const TemplateSchema = Type.Object({
  templateName: TemplateName,
  operationType: Identifier,
  dataTemplate: text(
    'operation data',
    (value) => isText(value) && isOperationDataTemplate(value),
    'must be 1 to 4096 characters: A, a number from 0 to 99, then at most 5 fields after asterisks, with sound placeholders',
    4096,
  ),
  signatureType: Type.Array(Type.Union(SIGNATURE_TYPES.map((type) => Type.Literal(type))), {
    minItems: 1,
    uniqueItems: true,
    description: `must be a list of ${SIGNATURE_TYPES.join(', ')}, each at most once`,
  }),
  maxFailureCount: Count,
  expiration: Count,
  riskFlags: Type.Optional(
    Type.String({
      // Checked first: the pattern takes the square of the length.
      maxLength: 3,
      pattern: '^(?!.*(.).*\\1)[XFC]*$',
      description: 'must be made of the letters X, F and C, each at most once',
    }),
  ),
  proximityCheckEnabled: Type.Optional(Type.Boolean({ description: 'must be a boolean' })),
  activationFlag: Type.Optional(
    text('flag', (value) => isName(value) && !/[\s,]/.test(value), 'must be 1 to 255 characters without white space and commas'),
  ),
  texts: Type.Record(Type.String(), Texts, {
    minProperties: 1,
    description: 'must be an object with the texts of at least one language',
  }),
})

const UI_MAX = 65_536
const UI_DEPTH_MAX = 32
const VALUE_CHARACTERS_MAX = 128
