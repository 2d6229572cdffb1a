// Defines the kinds of settings: each turns the text of an environment variable into a value, or into one line that says what is wrong.
import { findTlsProblem, parseDatabaseUrl, TLS_MODES } from '../lib/database-url.ts'
import { isAddressOrRange } from '../lib/address.ts'
import { type GivenKeys, parseKeyList } from '../lib/key-list.ts'
import { isWeakPassword } from '../lib/weak-password.ts'

/** Turns the text of a setting into its value. */
export interface Kind<T = unknown> {
  /** For the documentation: `integer, 1 to 64`. */
  readonly label: string
  readonly parse: (text: string) => Parsed<T>
}

export type Parsed<T> = { readonly value: T } | { readonly problem: string }

/** One row of the table of settings. */
export interface Setting<T = unknown> {
  readonly name: string
  readonly kind: Kind<T>
  readonly default?: string
  /** The text for the default in the documentation, where the default depends on another setting or on the release. */
  readonly defaultLabel?: string
  readonly unit?:
    | 'seconds'
    | 'milliseconds'
    | 'connections'
    | 'processes'
    | 'requests'
    | 'attempts'
    | 'steps'
    | 'bytes'
    | 'failures'
    | 'calls'
    | 'days'
  readonly description: string
}

/** Settings by the name of the member of Config or Secrets that has the value. */
export type Settings = Readonly<Record<string, Setting>>

/** The values of a table of settings. A setting without a default may be absent. */
export type ValuesOf<Table extends Settings> = {
  readonly [M in keyof Table as Table[M] extends WithDefault ? M : never]: ValueOf<Table[M]>
} & {
  readonly [M in keyof Table as Table[M] extends WithDefault ? never : M]?: ValueOf<Table[M]>
}

type WithDefault = Setting & { readonly default: string }
type ValueOf<Row extends Setting> = Row extends { readonly kind: Kind<infer T> } ? T : never

export const matching = (label: string, pattern: RegExp, hint: string): Kind<string> => ({
  label,
  parse: (value) => (pattern.test(value) ? { value } : { problem: `${quote(value)} is not ${hint}` }),
})

/** Refuses a text of spaces alone, although a system may have such a path. */
export const path = matching('path', /^(?!\s*$)[^\0]+$/, 'a path')

export const integer = (min: number, max: number): Kind<number> => ({
  label: `integer, ${min} to ${max}`,
  parse(value) {
    const number = /^(0|[1-9]\d{0,8})$/.test(value) ? Number(value) : Number.NaN
    return number >= min && number <= max
      ? { value: number }
      : { problem: `${quote(value)} is not an integer from ${min} to ${max}` }
  },
})

export const boolean: Kind<boolean> = {
  label: 'true or false',
  parse: (value) =>
    value === 'true' || value === 'false' ? { value: value === 'true' } : { problem: `${quote(value)} is not true or false` },
}

export const oneOf = <const T extends string>(values: readonly T[]): Kind<T> => ({
  label: values.join(', '),
  parse(value) {
    const found = values.find((candidate) => candidate === value)
    return found === undefined ? { problem: `${quote(value)} is not one of ${values.join(', ')}` } : { value: found }
  },
})

export const publicUrl: Kind<string> = {
  label: 'http(s) URL without trailing slash',
  parse(value) {
    const url = URL.canParse(value) ? new URL(value) : undefined
    // A parsed URL does not show a ? or # at its end. A path appended behind one would not be a path.
    const isPlain = url?.username === '' && url.password === '' && !/[?#\s]/.test(value)
    if (!isPlain || !/^https?:\/\//.test(value)) return { problem: `${quote(value)} is not an http or https URL` }
    return value.endsWith('/') ? { problem: `${quote(value)} ends in a slash, leave it out` } : { value }
  },
}

/** Address of a server that pawl sends requests to. The credentials for it have a setting of their own. */
export const providerUrl: Kind<string> = {
  label: 'http(s) URL',
  parse(value) {
    const url = URL.canParse(value) ? new URL(value) : undefined
    const isPlain = url?.username === '' && url.password === '' && url.hash === '' && !/\s/.test(value)
    return isPlain && /^https?:\/\//.test(value)
      ? { value }
      : { problem: `${quote(value)} is not an http or https URL without credentials and fragment` }
  },
}

export const auditSinkUrl: Kind<string> = {
  label: 'http(s), syslog+tls or syslog+tcp URL',
  parse(value) {
    if (!value.startsWith('syslog')) return providerUrl.parse(value)
    return /^syslog\+(?:tls|tcp):\/\/(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.test(value) && URL.canParse(value)
      ? { value }
      : { problem: `${quote(value)} is not syslog+tls://host:port or syslog+tcp://host:port` }
  },
}

export const vaultKeyUrl: Kind<string> = {
  label: 'http(s) URL that ends in /keys/NAME',
  parse(value) {
    const parsed = providerUrl.parse(value)
    if ('problem' in parsed || /\/keys\/[\w.-]+$/.test(value)) return parsed
    return { problem: `${quote(value)} does not end in /keys/NAME` }
  },
}

export const authorization: Kind<string> = {
  label: 'value of an HTTP header',
  // The value is a secret, so the problem does not repeat it.
  parse: (value) =>
    /^(?! *$)[\x20-\x7E]{1,4096}$/.test(value) ? { value } : { problem: 'not 1 to 4096 printable ASCII characters' },
}

/**
 * Address for the keys that verify access tokens, or for pushes and their tokens. Nobody on the way may read or change these, so it must be https,
 * except on this machine.
 */
export const httpsUrl: Kind<string> = {
  label: 'https URL',
  parse(value) {
    const parsed = providerUrl.parse(value)
    if ('problem' in parsed) return parsed
    const { protocol, hostname } = new URL(value)
    const isHere = /^(?:127(?:\.\d{1,3}){3}|\[::1\]|localhost)$/.test(hostname)
    return protocol === 'https:' || isHere ? parsed : { problem: `${quote(value)} is not https` }
  },
}

/** A list of values of one kind, separated by commas. An empty text is an empty list. */
const listOf = <T>(label: string, kind: Pick<Kind<T>, 'parse'>): Kind<readonly T[]> => ({
  label: `${label}, separated by commas`,
  parse(text) {
    const values: T[] = []
    for (const entry of text === '' ? [] : text.split(',')) {
      const parsed = kind.parse(entry.trim())
      if ('problem' in parsed) return parsed
      values.push(parsed.value)
    }
    return { value: Object.freeze(values) }
  },
})

export const addressList = listOf('IP addresses and CIDR ranges', {
  parse: (entry) =>
    isAddressOrRange(entry) ? { value: entry } : { problem: `${quote(entry)} is not an IP address or CIDR range` },
})

/** Names of environment variables. Those of pawl are refused: they hold secrets that no other program should get. */
export const variableList = listOf(
  'names of environment variables',
  matching('name', /^(?!PAWL_|DATABASE_URL)[A-Za-z_]\w*$/, 'the name of a variable, or is a setting of pawl'),
)

/** Signatures of JWTs with a public key (RFC 7518 §3.1, RFC 8037). */
const SIGNATURES = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']

export const algorithmList = listOf('algorithms', oneOf(SIGNATURES))
export const tokenTypeList = listOf('types of tokens', oneOf(['at+jwt', 'JWT']))
export const portList = listOf('ports', integer(1, 65_535))

export const tlsMode = oneOf(TLS_MODES)

export const databaseUrl: Kind<string> = {
  label: 'postgres:// URL',
  // The value holds a password, so the problem does not repeat it.
  parse(value) {
    const address = parseDatabaseUrl(value)
    if (address === undefined)
      return { problem: 'not a postgres://user:password@host:port,host:port/database URL of a server that takes writes' }
    const { hash, pathname, search } = new URL(address.urls[0] ?? '')
    // An unencoded / ? # or @ ends the password early. The rest would count as host, database or option, and error messages would show it.
    if (hash !== '' || `${pathname}${search}`.includes('@'))
      return { problem: 'a password with / ? # or @ must have them percent-encoded: %2F %3F %23 %40' }
    const problem = findTlsProblem(value)
    return problem === undefined ? { value } : { problem }
  },
}

export const masterKeys: Kind<GivenKeys> = {
  label: '32 bytes in standard Base64, or several such',
  parse(value) {
    const keys = parseKeyList(value)
    return keys ? { value: keys } : { problem: 'not 32 bytes in standard Base64, make one with: openssl rand -base64 32' }
  },
}

export const adminPassword: Kind<string> = {
  label: 'text of 12 to 256 characters',
  // RFC 7617 §2 allows no control characters; such a password could be set but never sent.
  parse(value) {
    if (!/^\P{Cc}{12,256}$/u.test(value)) return { problem: 'control characters, or not 12 to 256 characters' }
    return isWeakPassword(value) ? { problem: 'easily guessed, choose another' } : { value }
  },
}

/** Shortens a value for an error message to its first 60 characters. User, password and query of a URL may be secrets and are replaced. */
function quote(value: string): string {
  const shown = value
    .replace(/^([a-z][a-z0-9+.-]*:\/{0,2})?[^]*@/i, '$1[secret]@')
    .replace(/^([^?]*:\/\/[^?]*\?)[^]+$/, '$1[secret]')
  return JSON.stringify(shown.length > 60 ? `${shown.slice(0, 60)}...` : shown)
}
