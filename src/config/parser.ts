// Configuration: a record of environment variables becomes a frozen Config and Secrets, or one error that lists every problem.
import { isIP, isIPv6 } from 'node:net'
import { inspect } from 'node:util'
import { findNearest } from '../lib/nearest.ts'
import { type Config, SETTINGS } from './config.ts'
import type { Parsed, Setting } from './kinds.ts'
import { SECRET_SETTINGS, type Secrets, TLS_MODE } from './secrets.ts'

/** Environment variables by name. */
type Environment = Readonly<Record<string, string | undefined>>

/** The environment is not usable; `problems` has one line for each fault and no secret value. */
export class ConfigError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/**
 * Reads the environment; `readFile` gives the text of the file a NAME_FILE points to. An empty value counts as not set, and so does what
 * Kubernetes made of a Service. Throws ConfigError.
 */
export function parseConfig(env: Environment, readFile: (path: string) => string): { config: Config; secrets: Secrets } {
  const links = findServiceLinks(env)
  const own = Object.fromEntries(Object.entries(env).filter(([name]) => !links.has(name)))
  const { config, secrets, problems } = readEnvironment(own, readFile)
  // A variable of the Service hides what the image sets under the same name. The default, where there is one, is what the image sets.
  const lost = Object.values(SETTINGS).filter((setting) => links.has(setting.name) && !('default' in setting))
  problems.push(...lost.map(({ name }) => `${name}: ${LOST}`))
  const isGiven = (member: Member): boolean =>
    member in config ||
    member in secrets ||
    (member in SECRET_SETTINGS && problems.some((problem) => /^(.*?)(?:_FILE)?:/.exec(problem)?.[1] === ROWS[member].name))
  const hasMasterKey = isGiven('masterKeys')
  const hasKeyCommand = 'masterKeyCommand' in config
  if ('databaseUrl' in secrets && !hasMasterKey && !hasKeyCommand) problems.push(MASTER_KEY_MISSING)
  if (hasMasterKey && hasKeyCommand) problems.push(MASTER_KEY_TWICE)
  const hasDatabase = isGiven('databaseUrl')
  const mode = env[TLS_MODE.name]
  const parsed = hasDatabase && mode ? TLS_MODE.kind.parse(mode) : undefined
  if (parsed !== undefined && 'problem' in parsed) problems.push(`${TLS_MODE.name}: ${parsed.problem}`)
  if (typeof config['processes'] === 'number' && config['processes'] > 1 && !hasDatabase)
    problems.push(PROCESSES_WITHOUT_DATABASE)
  problems.push(...findMissing(isGiven))
  if (isBankExposed(config)) problems.push(BANK_EXPOSED)
  if (problems.length > 0) throw new ConfigError(problems)
  if (hasKeyCommand)
    secrets['masterKeyCommandEnvironment'] = pickVariables(env, config['masterKeyCommandEnvironment'] as string[])
  // Every member was parsed by the table row of its name, and the table has a row for every member.
  return { config: Object.freeze(config) as unknown as Config, secrets: hideSecrets(secrets) }
}

/** The variables of `env` that every program gets, and those of these names. */
const pickVariables = (env: Environment, names: readonly string[]): Record<string, string> =>
  Object.fromEntries([...COMMON_VARIABLES, ...names].flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))
const COMMON_VARIABLES = ['PATH', 'HOME', 'USER', 'LOGNAME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR']

const LOST =
  'Kubernetes has put the address of a Service here; set enableServiceLinks: false in the pod, or give the setting there'
const MASTER_KEY_MISSING = 'PAWL_MASTER_KEY: needed together with DATABASE_URL, make one with: openssl rand -base64 32'
const MASTER_KEY_TWICE = 'PAWL_MASTER_KEY_COMMAND: set together with PAWL_MASTER_KEY, keep one of them'

const PROCESSES_WITHOUT_DATABASE = 'PAWL_PROCESSES: more than one needs DATABASE_URL, the embedded database takes one process'

type Member = keyof typeof SETTINGS | keyof typeof SECRET_SETTINGS
const ROWS = { ...SETTINGS, ...SECRET_SETTINGS }

/** Settings that are given together or not at all. `needs`: further settings that they need, and that may be given without them. */
const TOGETHER: readonly { readonly members: readonly Member[]; readonly needs?: readonly Member[] }[] = [
  { members: ['jwtJwksUrl', 'jwtIssuer', 'jwtAudience'] },
  { members: ['internalTlsCertificate', 'internalTlsKey', 'internalTlsClientCa'], needs: ['internalPort'] },
  { members: ['apnsKey', 'apnsKeyId', 'apnsTeamId', 'apnsTopic'] },
]

const findMissing = (isGiven: (member: Member) => boolean): readonly string[] =>
  TOGETHER.flatMap(({ members, needs = [] }) => {
    const given = members.filter(isGiven).map((member) => ROWS[member].name)
    const missing = given.length === 0 ? [] : [...members, ...needs].filter((member) => !isGiven(member))
    return missing.map((member) => `${ROWS[member].name}: needed together with ${given.join(' and ')}`)
  })

/** True when phones would reach the bank's API: both on one listener, at an address that is not of this machine alone. */
function isBankExposed({ host, internalPort, singleListener }: Record<string, unknown>): boolean {
  return internalPort === undefined && singleListener === false && typeof host === 'string' && !LOOPBACK.test(host)
}

const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|::1|localhost)$/
const BANK_EXPOSED =
  "PAWL_HOST: others would reach the bank's API beside the phones', set PAWL_INTERNAL_PORT to give it a listener of its own, or PAWL_SINGLE_LISTENER=true"

/**
 * The value of every setting that has one, by its member, and one line without secret values for each fault. An empty value counts as not set.
 * `readFile` gives the text of a file, or throws; a file that cannot be read is a fault.
 */
function readEnvironment(env: Environment, readFile: (path: string) => string) {
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
function hideSecrets(secrets: Record<string, unknown>): Record<string, unknown> {
  const print = { value: () => '[secret]' }
  return Object.freeze(Object.defineProperties(secrets, { toJSON: print, toString: print, [inspect.custom]: print }))
}

/**
 * The names of variables that Kubernetes makes of the Services of a namespace (`enableServiceLinks`): those of a Service named `pawl`, or `pawl-…`,
 * have names like settings. They fit the address and the port that their Service has. Whatever else looks like one is none.
 */
function findServiceLinks(env: Environment): ReadonlySet<string> {
  const names = Object.keys(env).filter((name) => name.startsWith('PAWL_'))
  const services = names.flatMap((name) => findService(env, name) ?? [])
  return new Set(names.filter((name) => services.some((service) => isMadeOf(service, name, env[name] ?? ''))))
}

interface Service {
  /** The name of the Service as its variables begin. */
  readonly prefix: string
  readonly host: string
}

/** The Service that a variable NAME_SERVICE_HOST is of; undefined unless it has an address, and a port in NAME_SERVICE_PORT. */
function findService(env: Environment, name: string): Service | undefined {
  const [, prefix = ''] = /^(PAWL(?:_[A-Z0-9_]+)?)_SERVICE_HOST$/.exec(name) ?? []
  const host = env[name] ?? ''
  return isIP(host) !== 0 && isPort(env[`${prefix}_SERVICE_PORT`]) ? { prefix, host } : undefined
}

function isMadeOf({ prefix, host }: Service, name: string, value: string): boolean {
  if (!name.startsWith(`${prefix}_`)) return false
  const rest = name.slice(prefix.length)
  if (rest === '_SERVICE_HOST') return value === host
  if (/^_SERVICE_PORT(?:_[A-Z0-9_]+)?$/.test(rest)) return isPort(value)
  const start = isIPv6(host) ? `://[${host}]:` : `://${host}:`
  if (rest === '_PORT') {
    const [scheme = '', port] = value.split(start)
    return PROTOCOLS.has(scheme) && isPort(port)
  }
  const [, port, protocol = '', part = ''] = /^_PORT_(\d+)_(TCP|UDP|SCTP)(?:_(PROTO|PORT|ADDR))?$/.exec(rest) ?? []
  if (!isPort(port)) return false
  const scheme = protocol.toLowerCase()
  return value === { '': scheme + start + port, PROTO: scheme, PORT: port, ADDR: host }[part]
}

const PROTOCOLS: ReadonlySet<string> = new Set(['tcp', 'udp', 'sctp'])

const isPort = (text: string | undefined): boolean => text !== undefined && /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535
