// Reads the environment by tables of settings: strict about names, and every problem at once.
import { findNearest } from '../lib/nearest.ts'
import { inspect } from 'node:util'
import type { Parsed, SecretSetting, Setting } from './kinds.ts'

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Gives the text of a file, or throws. */
export type ReadFile = (path: string) => string

export interface Tables {
  readonly settings: Readonly<Record<string, Setting>>
  readonly secretSettings: Readonly<Record<string, SecretSetting>>
  /** Names that begin like ours and belong to others. */
  readonly foreignNames: readonly string[]
}

export interface Findings {
  /** Values by member; a setting without value and default has none. */
  readonly config: Record<string, unknown>
  readonly secrets: Record<string, unknown>
  /** One line a fault, without secret values. */
  readonly problems: string[]
}

/** The value of every setting that has one. An empty value counts as not set. */
export function readEnvironment(tables: Tables, env: Environment, readFile: ReadFile): Findings {
  const problems = findUnknownNames(tables, env)
  const config: Record<string, unknown> = {}
  for (const [member, setting] of Object.entries(tables.settings)) {
    const text = env[setting.name] || setting.default
    if (text !== undefined) config[member] = keep(setting.name, setting.kind.parse(text), problems)
  }
  const secrets: Record<string, unknown> = {}
  for (const [member, setting] of Object.entries(tables.secretSettings)) {
    const text = readSecret(setting.name, env, readFile, problems)
    if (text !== undefined) secrets[member] = keep(setting.name, setting.kind.parse(text), problems)
  }
  return { config, secrets, problems }
}

function findUnknownNames(tables: Tables, env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith('PAWL_') && env[name] !== '' && !isKnownName(tables, name))
    .toSorted()
    .map((name) => `${name}: no such setting, ${suggestName(tables, name)}docs/CONFIG.md lists them`)
}

/** The known name that is nearest, when it is near enough to be meant: a third of the letters behind PAWL_ may differ. */
function suggestName({ settings, secretSettings }: Tables, name: string): string {
  const secrets = Object.values(secretSettings).flatMap((setting) => [setting.name, `${setting.name}_FILE`])
  const known = [...Object.values(settings).map((setting) => setting.name), ...secrets]
  const nearest = findNearest(name, known, (name.length - 'PAWL_'.length) / 3)
  return nearest === undefined ? '' : `${nearest} is the nearest; `
}

function isKnownName({ settings, secretSettings, foreignNames }: Tables, name: string): boolean {
  if (Object.values(settings).some((setting) => setting.name === name)) return true
  if (Object.values(secretSettings).some((setting) => setting.name === name || `${setting.name}_FILE` === name)) return true
  return foreignNames.includes(name) || name.startsWith('PAWL_TEST_')
}

function readSecret(name: string, env: Environment, readFile: ReadFile, problems: string[]): string | undefined {
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

/** Members stay readable for code; JSON, util.inspect and text conversion see one word. */
export function hideSecrets(secrets: Record<string, unknown>): Record<string, unknown> {
  const print = { value: () => '[secret]' }
  return Object.freeze(Object.defineProperties(secrets, { toJSON: print, toString: print, [inspect.custom]: print }))
}
