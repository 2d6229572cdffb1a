// Settings and their kinds: how the text of an environment variable becomes a value, or one line that says what is wrong.
import { findTlsProblem, parseDatabaseUrl, TLS_MODES } from '../lib/database-url.ts'
import { isAddressOrRange } from '../lib/address.ts'
import { type GivenKeys, parseKeyList } from '../lib/key-list.ts'
import { isWeakPassword } from '../lib/weak-password.ts'

/** How the text of a setting becomes its value. */
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
  /** How the documentation names the default, where it depends on another setting or on the release. */
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

/** Rows by the member that has the value. */
export type Settings = Readonly<Record<string, Setting>>

/** The values of a table: one for each row, which may be absent where the row has no default. */
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

/** A text of spaces alone is refused, though a system may have such a path. */
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
    // A parsed URL does not show a ? or # at its end, and no path could be put behind it.
    const isPlain = url?.username === '' && url.password === '' && !/[?#\s]/.test(value)
    if (!isPlain || !/^https?:\/\//.test(value)) return { problem: `${quote(value)} is not an http or https URL` }
    return value.endsWith('/') ? { problem: `${quote(value)} ends in a slash, leave it out` } : { value }
  },
}

/** Where pawl itself sends questions; credentials have a setting of their own. */
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

export const addressList: Kind<readonly string[]> = {
  label: 'IP addresses and CIDR ranges, separated by commas',
  parse(value) {
    const entries = value === '' ? [] : value.split(',').map((entry) => entry.trim())
    const wrong = entries.find((entry) => !isAddressOrRange(entry))
    return wrong === undefined
      ? { value: Object.freeze(entries) }
      : { problem: `${quote(wrong)} is not an IP address or CIDR range` }
  },
}

/** Where keys come from that decide who is let in, and where pushes and their tokens go: nobody on the way may read or change that. */
export const jwksUrl: Kind<string> = {
  label: 'https URL',
  parse(value) {
    const parsed = providerUrl.parse(value)
    if ('problem' in parsed) return parsed
    const { protocol, hostname } = new URL(value)
    const isHere = /^(?:127(?:\.\d{1,3}){3}|\[::1\]|localhost)$/.test(hostname)
    return protocol === 'https:' || isHere ? parsed : { problem: `${quote(value)} is not https` }
  },
}

/** Signatures of JWTs with a public key (RFC 7518 §3.1, RFC 8037). */
const SIGNATURES = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']

const wordList = (what: string, words: readonly string[]): Kind<readonly string[]> => ({
  label: `${what}, separated by commas`,
  parse(value) {
    const entries = value.split(',').map((entry) => entry.trim())
    const wrong = entries.find((entry) => !words.includes(entry))
    return wrong === undefined
      ? { value: Object.freeze(entries) }
      : { problem: `${quote(wrong)} is not one of ${words.join(', ')}` }
  },
})

/** Names of environment variables; none of pawl's own, which hold secrets that no other program is to have. */
export const variableList: Kind<readonly string[]> = {
  label: 'names of environment variables, separated by commas',
  parse(value) {
    const entries = value === '' ? [] : value.split(',').map((entry) => entry.trim())
    const wrong = entries.find((entry) => !/^(?!PAWL_|DATABASE_URL)[A-Za-z_]\w*$/.test(entry))
    return wrong === undefined
      ? { value: Object.freeze(entries) }
      : { problem: `${quote(wrong)} is not the name of a variable, or is a setting of pawl` }
  },
}

export const algorithmList = wordList('algorithms', SIGNATURES)
export const tokenTypeList = wordList('types of tokens', ['at+jwt', 'JWT'])

export const portList: Kind<readonly number[]> = {
  label: 'ports, separated by commas',
  parse(value) {
    const entries = value.split(',').map((entry) => ({ entry, parsed: integer(1, 65_535).parse(entry.trim()) }))
    const wrong = entries.find(({ parsed }) => 'problem' in parsed)
    return wrong === undefined
      ? { value: Object.freeze(entries.flatMap(({ parsed }) => ('value' in parsed ? [parsed.value] : []))) }
      : { problem: `${quote(wrong.entry)} is not a port from 1 to 65535` }
  },
}

export const tlsMode = oneOf(TLS_MODES)

export const databaseUrl: Kind<string> = {
  label: 'postgres:// URL',
  // The value holds a password, so the problem does not repeat it.
  parse(value) {
    const address = parseDatabaseUrl(value)
    if (address === undefined)
      return { problem: 'not a postgres://user:password@host:port,host:port/database URL of a server that takes writes' }
    const { hash, pathname, search } = new URL(address.urls[0] ?? '')
    // Such a character in the password ends it early: what follows would count as host, database or option, and be shown.
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

/** A value as problems repeat it: its first 60 characters, without user, password and query of a URL, which may be secrets. */
function quote(value: string): string {
  const shown = value
    .replace(/^([a-z][a-z0-9+.-]*:\/{0,2})?[^]*@/i, '$1[secret]@')
    .replace(/^([^?]*:\/\/[^?]*\?)[^]+$/, '$1[secret]')
  return JSON.stringify(shown.length > 60 ? `${shown.slice(0, 60)}...` : shown)
}
