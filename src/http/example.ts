// Composes an example value for a schema from the examples that its members declare.
import type { TSchema } from '@sinclair/typebox'

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
  readonly minProperties?: number
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
