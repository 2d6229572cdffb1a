// Rewrites the validating schemas for generators of clients: enums as enums, null as a type, maps as maps, and names for reused types. A
// rewritten schema accepts and refuses the same values.
import type { TSchema } from '@sinclair/typebox'
import { isJsonObject } from '../lib/json.ts'

export type Json = Record<string, unknown>

export interface Schemas {
  /** The schema for one place in the document: a reference if it has a title or `name` is given. */
  readonly place: (schema: unknown, name?: string) => unknown
  readonly components: () => Record<string, unknown>
}

/** Collects named schemas. A title that starts with a capital letter names its schema wherever it occurs. */
export function createSchemas(): Schemas {
  const shelf: Record<string, unknown> = {}
  // A schema occurs in many places; it is rendered once, by its name.
  const placed = new WeakMap<object, Map<string | undefined, unknown>>()

  const place = (schema: unknown, name?: string): unknown => {
    if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return schema
    const known = placed.get(schema) ?? new Map<string | undefined, unknown>()
    placed.set(schema, known)
    if (!known.has(name)) known.set(name, render(schema as Json, name))
    return known.get(name)
  }

  const render = ({ title, examples, lowerCase: _, ...others }: Json, name: string | undefined): unknown => {
    const chosen = typeof title === 'string' && /^[A-Z][A-Za-z0-9]+$/.test(title) ? title : name
    const plain = renderMembers(others)
    // Examples of a named body are beside the body; those of members stay with the members.
    if (chosen === undefined) return examples === undefined ? plain : { ...plain, examples }
    const text = JSON.stringify(plain)
    if (chosen in shelf && JSON.stringify(shelf[chosen]) !== text) throw new TypeError(`two schemas are named ${chosen}`)
    shelf[chosen] = JSON.parse(text)
    return { $ref: `#/components/schemas/${chosen}` }
  }

  const renderMembers = (schema: Json): Json => {
    const { properties, items, anyOf, patternProperties, contentSchema, ...others } = withEnum(schema)
    const rendered: Json = {
      ...others,
      ...(isJsonObject(properties) && {
        properties: Object.fromEntries(Object.entries(properties).map(([key, of]) => [key, place(of)])),
      }),
      ...(items !== undefined && { items: place(items) }),
      ...(contentSchema !== undefined && { contentSchema: place(contentSchema) }),
      ...(Array.isArray(anyOf) && { anyOf: anyOf.map((each) => place(each)) }),
    }
    if (typeof rendered['pattern'] === 'string') rendered['pattern'] = toPortable(rendered['pattern'])
    return toMap(withNull(withFormat(rendered)), patternProperties)
  }

  const toMap = (schema: Json, patternProperties: unknown): Json => {
    if (!isJsonObject(patternProperties)) return schema
    const [[pattern, values] = ['', {}], ...rest] = Object.entries(patternProperties)
    if (rest.length > 0) throw new TypeError('a map with two kinds of keys')
    const names = EVERY_NAME.includes(pattern) ? {} : { propertyNames: { pattern: toPortable(pattern) } }
    return { ...schema, ...names, additionalProperties: place(values) }
  }

  return { place, components: () => Object.fromEntries(Object.entries(shelf).toSorted(([a], [b]) => (a < b ? -1 : 1))) }
}

/** Writes a literal, or a choice of literals, as an enum. */
function withEnum(schema: Json): Json {
  const { const: only, anyOf, ...others } = schema
  if (only !== undefined) return { ...others, type: typeof only, enum: [only] }
  const values = Array.isArray(anyOf) ? anyOf.map((each: Json) => each['const']) : []
  if (values.length === 0 || !values.every((value) => typeof value === 'string')) return schema
  return { ...others, type: 'string', enum: values }
}

/** Writes a schema or null as one schema of two types. */
function withNull(schema: Json): Json {
  const { anyOf, ...others } = schema
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return schema
  const [one, other] = anyOf as [Json, Json]
  if (other['type'] !== 'null') return schema
  if (Object.keys(one).length === 0) return others
  if (typeof one['type'] !== 'string') return schema
  const values = Array.isArray(one['enum']) ? { enum: [...(one['enum'] as unknown[]), null] } : {}
  return { ...others, ...one, type: [one['type'], 'null'], ...values }
}

/** Adds a format to times in milliseconds, which are larger than the integers of generators. */
function withFormat(schema: Json): Json {
  if (schema['type'] !== 'integer') return schema
  const { maximum } = schema
  return typeof maximum === 'number' && maximum <= INT32_MAX ? schema : { ...schema, format: 'int64' }
}

/** Replaces `[^]`, which means any character only in JavaScript. */
const toPortable = (pattern: string): string => pattern.replaceAll('[^]', '[\\s\\S]')

const INT32_MAX = 2_147_483_647
// The patterns with which TypeBox and AnyMembers write any name.
const EVERY_NAME = ['^(.*)$', '^[\\s\\S]*$']

/** The examples of a schema. If it has none, one is composed of the examples of its members, optional ones included. */
export function examplesOf(schema: TSchema): readonly unknown[] {
  const { examples } = schema as { examples?: readonly unknown[] }
  return examples ?? [compose(schema as JsonSchema)]
}

interface JsonSchema {
  readonly type?: string
  readonly format?: string
  readonly const?: unknown
  readonly default?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly TSchema[]
  readonly properties?: Readonly<Record<string, TSchema>>
  readonly items?: TSchema
  readonly minimum?: number
  readonly patternProperties?: Readonly<Record<string, TSchema>>
  readonly description?: string
}

function compose(schema: JsonSchema): unknown {
  const given = schema.const ?? schema.default ?? schema.enum?.[0]
  if (given !== undefined) return given
  const [alternative] = schema.anyOf ?? []
  if (alternative !== undefined) return first(alternative)
  switch (schema.type) {
    case 'object':
      return composeObject(schema)
    case 'array':
      return schema.items === undefined ? [] : [first(schema.items)]
    case 'integer':
    case 'number':
      return schema.description?.includes('milliseconds since') ? MILLISECONDS : Math.max(schema.minimum ?? 0, 0)
    case 'boolean':
      return true
    case 'null':
      return null
    default:
      return schema.format === 'uuid' ? '3f2504e0-4f89-41d3-9a0c-0305e82c3301' : 'text'
  }
}

function composeObject({ properties, patternProperties }: JsonSchema): Record<string, unknown> {
  const members = Object.entries(properties ?? {}).map(([name, member]) => [name, first(member)])
  const further = Object.values(patternProperties ?? {}).map((member) => ['name', first(member)])
  return Object.fromEntries([...members, ...further])
}

const first = (schema: TSchema): unknown => examplesOf(schema)[0]

const MILLISECONDS = 1_767_225_600_000
