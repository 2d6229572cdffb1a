// Reads a set-up file: everything that can be said without the server, each fault as one line with place and remedy.
import type { TSchema } from '@sinclair/typebox'
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors'
import { Value } from '@sinclair/typebox/value'
import { Fault } from '../fault.ts'
import { printable } from '../output.ts'
import { findRepeated } from './repeated.ts'
import { type Setup, SetupSchema } from './schema.ts'
import { readTemplate } from './template.ts'
import { parseYaml, type Path, type YamlText } from './yaml.ts'

export interface ReadSetup {
  readonly setup: Setup
  /** `applications[1].versions[0].name, line 12`. */
  readonly placeOf: (path: Path) => string
}

/** The set-up of a text. `file` is what faults call it. Throws a Fault with a line for each thing that is wrong. */
export function readSetup(file: string, text: string): ReadSetup {
  const read = parseYaml(text)
  if ('problem' in read) throw new Fault('usage', `${file}, line ${read.line}, column ${read.column}: ${read.problem}`)
  const placeOf = (path: Path): string => `${formatPath(path)}line ${read.lineOf(path)}`
  const faults = [...Value.Errors(SetupSchema, read.value)].map((error) => explain(error, read))
  const inTemplates: Found[] = []
  // What has a fault already needs no second word about it.
  const setup = faults.length > 0 ? undefined : settle(read.value as Setup, inTemplates)
  const all = [...faults, ...inTemplates, ...(setup === undefined ? [] : findRepeated(setup))]
  if (setup !== undefined && all.length === 0) return { setup, placeOf }
  const lines = new Map(
    all.map(({ path, problem }) => [formatPath(path), `${file}: ${placeOf(path)}: ${printable(problem)}`] as const).toReversed(),
  )
  throw new Fault('usage', [...lines.values()].toReversed().slice(0, FAULTS_MAX).join('\n'))
}

interface Found {
  readonly path: Path
  readonly problem: string
}

const FAULTS_MAX = 20

/** Templates as the server keeps them, and the scope of items, so that what is there already is found to be equal. */
function settle(setup: Setup, faults: Found[]): Setup {
  const templates = setup.templates?.map((template, index) => {
    const read = readTemplate(template)
    if ('template' in read) return read.template
    faults.push(...read.faults.map(({ path, problem }) => ({ path: ['templates', index, ...path], problem })))
    return template
  })
  const applications = setup.applications?.map((application) => ({
    ...application,
    ...(application.config && { config: application.config.map((item) => ({ scope: 'APPLICATION' as const, ...item })) }),
    ...(application.domains && {
      domains: application.domains.map(({ certificates, ...domain }) => ({
        ...domain,
        certificates: certificates.map((one) => ({ ...one, fingerprint: toBase64(one.fingerprint) })),
      })),
    }),
  }))
  return { ...setup, ...(applications && { applications }), ...(templates && { templates }) }
}

/** Hex, with or without colons, as Base64. */
function toBase64(fingerprint: string): string {
  const hex = fingerprint.replaceAll(':', '')
  return /^[0-9a-f]{64}$/i.test(hex) ? Buffer.from(hex, 'hex').toString('base64') : fingerprint
}

function explain({ type, path: pointer, value, schema }: ValueError, read: YamlText): Found {
  const path = toPath(pointer)
  if (type === ValueErrorType.ObjectAdditionalProperties) return { path, problem: explainUnknown(String(path.at(-1)), schema) }
  const rule = schema.description ?? 'is not as it must be'
  if (type === ValueErrorType.ObjectRequiredProperty) return { path, problem: `is missing: ${rule}` }
  if (value === null) return { path, problem: `has no value: ${rule}` }
  const source = read.sourceOf(path)
  // A text without quotes that YAML takes for a number, true or false.
  if (source !== undefined && typeof value !== 'string' && Value.Check(schema, source))
    return { path, problem: `${rule}, and ${source} is a ${typeof value}: write '${source}'` }
  // YAML 1.1 takes `no` and `on` for a boolean.
  const isWord = typeof value === 'string' && schema['type'] === 'boolean'
  return { path, problem: isWord ? `${rule}, and ${JSON.stringify(value)} is a text` : rule }
}

function explainUnknown(name: string, schema: TSchema): string {
  const known = Object.keys((schema['properties'] ?? {}) as object)
  const nearest = known
    .map((one) => ({ one, distance: distanceOf(name.toLowerCase(), one.toLowerCase()) }))
    .toSorted((a, b) => a.distance - b.distance)[0]
  const isNear = nearest !== undefined && nearest.distance <= Math.max(2, name.length / 3)
  return isNear ? `there is no such member: ${nearest.one} is meant?` : `there is no such member: there are ${known.join(', ')}`
}

/** How many letters differ, are too many or missing (Levenshtein). */
function distanceOf(one: string, other: string): number {
  // A name of a thousand letters is near to none.
  if (Math.abs(one.length - other.length) > 20) return Infinity
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (const [index, letter] of one.split('').entries()) {
    const next = [index + 1]
    for (const [at, wanted] of other.split('').entries())
      next.push(Math.min((row[at] ?? 0) + (letter === wanted ? 0 : 1), (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1))
    row = next
  }
  return row.at(-1) ?? 0
}

/** `/applications/0/id` of TypeBox. */
const toPath = (pointer: string): Path =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part))

/** `applications[0].id, `; nothing for the whole file. */
function formatPath(path: Path): string {
  if (path.length === 0) return ''
  const text = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('')
  return `${printable(text.replace(/^\./, ''))}, `
}
