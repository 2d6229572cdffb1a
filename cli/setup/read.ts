// Reads a set-up file, and checks everything that needs no server. Each fault is one line with place and remedy.
import { isAddressOrRange } from '../../src/lib/address.ts'
import { findUncarried } from '../../src/lib/json.ts'
import { findNearest } from '../../src/lib/nearest.ts'
import type { TSchema } from '@sinclair/typebox'
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors'
import { Value } from '@sinclair/typebox/value'
import { Fault } from '../fault.ts'
import { printable } from '../output.ts'
import { parseTime } from '../time.ts'
import { findRepeated } from './repeated.ts'
import { type Setup, type SetupApplication, SetupSchema } from './schema.ts'
import { readTemplate } from './template.ts'
import { parseYaml, type Path, type YamlText } from './yaml.ts'

export interface ReadSetup {
  readonly setup: Setup
  /** The place of a value, like `applications[1].versions[0].name, line 12`. */
  readonly placeOf: (path: Path) => string
}

/** Reads a set-up file. `file`: its name in faults. Throws a Fault with a line for each problem. */
export function readSetup(file: string, text: string): ReadSetup {
  const read = parseYaml(text)
  if ('problem' in read) throw new Fault('usage', `${file}, line ${read.line}, column ${read.column}: ${read.problem}`)
  const placeOf = (path: Path): string => `${formatPath(path)}line ${read.lineOf(path)}`
  const faults = [...Value.Errors(SetupSchema, read.value)].map((error) => explain(error, read))
  const inTemplates: Found[] = []
  // A file with faults of its form is not checked further.
  const setup = faults.length > 0 ? undefined : settle(read.value as Setup, inTemplates)
  const all = [...faults, ...inTemplates, ...(setup === undefined ? [] : [...findRepeated(setup), ...findRefused(setup)])]
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

/** Finds values that have the form of the schema, and that every server refuses. */
function findRefused(setup: Setup): Found[] {
  const { applications = [], users = [] } = setup
  const uncarried = findUncarried(setup)
  return [
    ...(uncarried === undefined ? [] : [{ path: uncarried.path.map(toPart), problem: uncarried.problem }]),
    ...applications.flatMap((application, index) => findRefusedOf(application, ['applications', index])),
    ...users.flatMap(({ expiresAt, allowedAddresses = [] }, index) => [
      ...refuseUnless(expiresAt === undefined || parseTime(expiresAt) !== undefined, ['users', index, 'expiresAt'], NO_DAY),
      ...allowedAddresses.flatMap((text, place) =>
        refuseUnless(
          isAddressOrRange(text),
          ['users', index, 'allowedAddresses', place],
          'must be an IP address or a CIDR range',
        ),
      ),
    ]),
  ]
}

function findRefusedOf({ id, transfers = [], domains = [], oidcProviders = [] }: SetupApplication, at: Path): Found[] {
  const targets = transfers.flatMap((transfer, index) =>
    transfer.targets.map((target, place) => ({ target, path: [...at, 'transfers', index, 'targets', place] })),
  )
  const pins = domains.flatMap(({ certificates }, index) =>
    certificates.map(({ expires }, place) => ({ expires, path: [...at, 'domains', index, 'certificates', place, 'expires'] })),
  )
  const first = new Map(targets.map(({ target }, index) => [target, index] as const).toReversed())
  return [
    ...targets.flatMap(({ target, path }, index) => [
      ...refuseUnless(target !== id, path, `${target} is the application itself`),
      ...refuseUnless(first.get(target) === index, path, `${target} stands in an earlier entry already: keep one of them`),
    ]),
    ...pins.flatMap(({ expires, path }) => refuseUnless(parseTime(expires) !== undefined, path, NO_DAY)),
    ...oidcProviders.flatMap(({ scopes = ['openid'] }, index) =>
      refuseUnless(scopes.includes('openid'), [...at, 'oidcProviders', index, 'scopes'], NO_OPENID),
    ),
  ]
}

const refuseUnless = (isRight: boolean, path: Path, problem: string): Found[] => (isRight ? [] : [{ path, problem }])

const NO_DAY = 'there is no such day'
const NO_OPENID = 'must have openid: without it no ID token comes'

/** Brings templates, the scope of items and fingerprints into the server's form, so that equal things are found to be equal. */
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

/** Converts hex, with or without colons, to Base64. */
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
  // YAML reads a text without quotes as a number, true or false.
  if (source !== undefined && typeof value !== 'string' && Value.Check(schema, source))
    return { path, problem: `${rule}, and ${source} is a ${typeof value}: write '${source}'` }
  // People may mean a boolean by `no` and `on`, as YAML 1.1 does.
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

/** Parses a pointer of TypeBox, like `/applications/0/id`. */
const toPath = (pointer: string): Path =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map(toPart)

const toPart = (name: string): string | number => (/^\d+$/.test(name) ? Number(name) : name)

/** A path like `applications[0].id, `; empty for the whole file. */
function formatPath(path: Path): string {
  if (path.length === 0) return ''
  const text = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('')
  return `${printable(text.replace(/^\./, ''))}, `
}
