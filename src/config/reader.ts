// Reads the environment by the tables of settings: strict about names, and every problem at once.
import { inspect } from 'node:util'
import { findNearest } from '../lib/nearest.ts'
import { SETTINGS } from './config.ts'
import type { Parsed, Setting } from './kinds.ts'
import { SECRET_SETTINGS } from './secrets.ts'

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>

/**
 * The value of every setting that has one, by its member, and one line without secret values for each fault. An empty value counts as not set.
 * `readFile` gives the text of a file, or throws; a file that cannot be read is a fault.
 */
export function readEnvironment(env: Environment, readFile: (path: string) => string) {
  const problems = findUnknownNames(env)
  const config: Record<string, unknown> = {}
  for (const [member, setting] of Object.entries<Setting>(SETTINGS)) {
    const text = env[setting.name] || setting.default
    if (text !== undefined) config[member] = keep(setting.name, setting.kind.parse(text), problems)
  }
  const secrets: Record<string, unknown> = {}
  for (const [member, { name, kind }] of Object.entries<Setting>(SECRET_SETTINGS)) {
    const text = readSecret(name, env, readFile, problems)
    if (text !== undefined) secrets[member] = keep(name, kind.parse(text), problems)
  }
  return { config, secrets, problems }
}

const findUnknownNames = (env: Environment): string[] =>
  Object.keys(env)
    .filter((name) => name.startsWith('PAWL_') && env[name] !== '' && !isKnownName(name))
    .toSorted()
    .map((name) => `${name}: no such setting, ${suggestName(name)}docs/CONFIG.md lists them`)

const isKnownName = (name: string): boolean =>
  NAMES.includes(name) || FOREIGN_NAMES.includes(name) || name.startsWith('PAWL_TEST_')

/** The known name that is nearest, when it is near enough to be meant: a third of the letters behind PAWL_ may differ. */
function suggestName(name: string): string {
  const nearest = findNearest(name, NAMES, (name.length - 'PAWL_'.length) / 3)
  return nearest === undefined ? '' : `${nearest} is the nearest; `
}

const NAMES: readonly string[] = [
  ...Object.values(SETTINGS).map(({ name }) => name),
  ...Object.values(SECRET_SETTINGS).flatMap(({ name }) => [name, `${name}_FILE`]),
]
/** What `pawl phone` reads. */
const PHONE_NAMES = ['PAWL_PHONES', 'PAWL_PHONE_PASSPHRASE', 'PAWL_PHONE_PASSWORD', 'PAWL_PHONE_NEW_PASSWORD']
/** What commands read that call a server. */
const COMMAND_NAMES = ['PAWL_URL', 'PAWL_ADMIN', 'PAWL_OTP', 'PAWL_CLIENT_CERTIFICATE', 'PAWL_CLIENT_KEY']
// The test suite, and what runs against a server from the same shell.
const FOREIGN_NAMES = ['PAWL_VECTORS', 'PAWL_APP', 'PAWL_APPLICATION', ...COMMAND_NAMES, ...PHONE_NAMES]

function readSecret(name: string, env: Environment, readFile: (path: string) => string, problems: string[]): string | undefined {
  const fileName = `${name}_FILE`
  const path = env[fileName]
  if (!path) return env[name] || undefined
  if (env[name]) {
    problems.push(`${name}: set together with ${fileName}, keep one of them`)
    return undefined
  }
  try {
    // Editors and `echo` end a file with a newline that is not part of the secret.
    const text = readFile(path).replace(/\r?\n$/, '')
    if (text === '') problems.push(`${fileName}: ${path} is empty`)
    return text || undefined
  } catch (error) {
    problems.push(`${fileName}: ${path} cannot be read (${readCode(error)})`)
    return undefined
  }
}

const readCode = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : String(error))

function keep<T>(name: string, parsed: Parsed<T>, problems: string[]): T | undefined {
  if ('value' in parsed) return parsed.value
  problems.push(`${name}: ${parsed.problem}`)
  return undefined
}

/** The same members, for code; JSON, util.inspect and text conversion of the whole see `[secret]`. */
export function hideSecrets(secrets: Record<string, unknown>): Record<string, unknown> {
  const print = { value: () => '[secret]' }
  return Object.freeze(Object.defineProperties(secrets, { toJSON: print, toString: print, [inspect.custom]: print }))
}
