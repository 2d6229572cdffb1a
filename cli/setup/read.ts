// Reads a set-up file, and checks everything that needs no server. Each fault is one line with place and remedy.
import { findNearest } from '../../src/lib/nearest.ts'
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
  const byLower = new Map(known.map((one) => [one.toLowerCase(), one]))
  const nearest = findNearest(name.toLowerCase(), [...byLower.keys()], Math.max(2, name.length / 3))
  return nearest === undefined
    ? `there is no such member: there are ${known.join(', ')}`
    : `there is no such member: ${byLower.get(nearest)} is meant?`
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
