// Turns environment variables into a frozen Config and Secrets, or into one error that lists every problem.
import { isIP, isIPv6 } from 'node:net'
import { inspect } from 'node:util'
import { sayUnreadable } from '../lib/errors.ts'
import { findNearest } from '../lib/nearest.ts'
import { type Config, SETTINGS } from './config.ts'
import type { Parsed, Setting } from './kinds.ts'
import { SECRET_SETTINGS, type Secrets, TLS_MODE } from './secrets.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Thrown for an environment with faults. `problems` has one line for each fault and no secret value. */
export class ConfigError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/**
 * Reads the environment. `readFile` returns the text of the file that a NAME_FILE points to. Empty variables, and variables that Kubernetes made
 * from a Service, count as not set. Throws ConfigError.
 */
export function parseConfig(env: Environment, readFile: (path: string) => string): { config: Config; secrets: Secrets } {
  const links = findServiceLinks(env)
  const own = Object.fromEntries(Object.entries(env).filter(([name]) => !links.has(name)))
  const { config, secrets, problems } = readEnvironment(own, readFile)
  // A variable of a Service replaces the value that the image sets under the same name, for example PAWL_INTERNAL_PORT. PAWL_PORT is not lost: it
  // has a default, and the image sets no other value.
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
  if (hasDatabase && mode) keep(TLS_MODE.name, TLS_MODE.kind.parse(mode), problems)
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') problems.push(CERTIFICATES_UNCHECKED)
  if (typeof config['processes'] === 'number' && config['processes'] > 1 && !hasDatabase)
    problems.push(PROCESSES_WITHOUT_DATABASE)
  problems.push(...findMissing(isGiven))
  if (isBankExposed(config)) problems.push(BANK_EXPOSED)
  if (problems.length > 0) throw new ConfigError(problems)
  if (hasKeyCommand)
    secrets['masterKeyCommandEnvironment'] = pickVariables(env, config['masterKeyCommandEnvironment'] as string[])
  // Each member was parsed by the row of its name, and each member of the two types has a row.
  return { config: Object.freeze(config) as unknown as Config, secrets: hideSecrets(secrets) }
}

const pickVariables = (env: Environment, names: readonly string[]): Record<string, string> =>
  Object.fromEntries([...COMMON_VARIABLES, ...names].flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))
const COMMON_VARIABLES = ['PATH', 'HOME', 'USER', 'LOGNAME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR']

const LOST =
  'Kubernetes has put the address of a Service here; set enableServiceLinks: false in the pod, or give the setting there'
const MASTER_KEY_MISSING = 'PAWL_MASTER_KEY: needed together with DATABASE_URL, make one with: openssl rand -base64 32'
const MASTER_KEY_TWICE = 'PAWL_MASTER_KEY_COMMAND: set together with PAWL_MASTER_KEY, keep one of them'

/** Node reads this variable for every connection: to the database, to receivers, to key services, to the servers whose keys verify tokens. */
const CERTIFICATES_UNCHECKED =
  'NODE_TLS_REJECT_UNAUTHORIZED: with 0 no certificate of another server would be checked, leave it out; NODE_EXTRA_CA_CERTS names an authority of your own'

const PROCESSES_WITHOUT_DATABASE = 'PAWL_PROCESSES: more than one needs DATABASE_URL, the embedded database takes one process'

type Member = keyof typeof SETTINGS | keyof typeof SECRET_SETTINGS
const ROWS = { ...SETTINGS, ...SECRET_SETTINGS }

/** Settings that must be given together or not at all. `needs`: further settings that these need, but that may also be given alone. */
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

/** True when other machines would reach the bank's API: it shares its listener with the phones' API, and the address is not a loopback address. */
function isBankExposed({ host, internalPort, singleListener }: Record<string, unknown>): boolean {
  return internalPort === undefined && singleListener === false && typeof host === 'string' && !LOOPBACK.test(host)
}

const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|::1|localhost)$/
const BANK_EXPOSED =
  "PAWL_HOST: others would reach the bank's API beside the phones', set PAWL_INTERNAL_PORT to give it a listener of its own, or PAWL_SINGLE_LISTENER=true"

/**
 * Reads every setting. Returns the values by member, and one line without secret values for each fault. An empty variable counts as not set.
 * `readFile` returns the text of a file or throws; a file that cannot be read is a fault.
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

/** Suggests the most similar known name. At most a third of the letters behind PAWL_ may differ. */
function suggestName(name: string): string {
  const nearest = findNearest(name, NAMES, (name.length - 'PAWL_'.length) / 3)
  return nearest === undefined ? '' : `${nearest} is the nearest; `
}

const NAMES: readonly string[] = [
  ...Object.values(SETTINGS).map(({ name }) => name),
  ...Object.values(SECRET_SETTINGS).flatMap(({ name }) => [name, `${name}_FILE`]),
]
/** Variables of `pawl phone`. */
const PHONE_NAMES = ['PAWL_PHONES', 'PAWL_PHONE_PASSPHRASE', 'PAWL_PHONE_PASSWORD', 'PAWL_PHONE_NEW_PASSWORD']
/** Variables of commands that call a server. */
const COMMAND_NAMES = ['PAWL_URL', 'PAWL_ADMIN', 'PAWL_OTP', 'PAWL_CLIENT_CERTIFICATE', 'PAWL_CLIENT_KEY']
// Variables of the test suite, and of programs that call a server from the same shell.
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
    problems.push(`${fileName}: ${path} ${sayUnreadable(error)}`)
    return undefined
  }
}

function keep<T>(name: string, parsed: Parsed<T>, problems: string[]): T | undefined {
  if ('value' in parsed) return parsed.value
  problems.push(`${name}: ${parsed.problem}`)
  return undefined
}

/** Makes JSON, util.inspect and text conversion of the whole object show `[secret]`. Its members stay as they are. */
function hideSecrets(secrets: Record<string, unknown>): Record<string, unknown> {
  const print = { value: () => '[secret]' }
  return Object.freeze(Object.defineProperties(secrets, { toJSON: print, toString: print, [inspect.custom]: print }))
}

/**
 * Finds the variables that Kubernetes makes from the Services of a namespace (`enableServiceLinks`). Those of a Service named `pawl` or `pawl-…`
 * begin like settings. A variable counts only if its value fits the address and a port of its Service.
 */
function findServiceLinks(env: Environment): ReadonlySet<string> {
  const names = Object.keys(env).filter((name) => name.startsWith('PAWL_'))
  const services = names.flatMap((name) => findService(env, name) ?? [])
  return new Set(names.filter((name) => services.some((service) => isMadeOf(service, name, env[name] ?? ''))))
}

interface Service {
  /** The beginning of all variables of the Service, for example `PAWL_DB`. */
  readonly prefix: string
  readonly host: string
}

/** Returns the Service of a variable NAME_SERVICE_HOST. Undefined unless that is an address and NAME_SERVICE_PORT is a port. */
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
