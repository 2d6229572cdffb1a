// Parses the URL of a PostgreSQL on one or several hosts, in the form of libpq (PostgreSQL, "Specifying Multiple Hosts").

export interface DatabaseAddress {
  /** One URL for each host, in the order in which they are tried. Each has all options of the given URL. */
  readonly urls: readonly string[]
  /** Whether the server must take writes. It must if there are several hosts, or if the URL asks for it. */
  readonly mustWrite: boolean
  /** Protocol, hosts and database, for people to read. */
  readonly location: string
}

/**
 * Parses `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?target_session_attrs=read-write`. Undefined for a text that is no such URL, and for
 * one that asks for a server without writes.
 */
export function parseDatabaseUrl(text: string): DatabaseAddress | undefined {
  const [, before = '', hosts, after = ''] = FORM.exec(text) ?? []
  if (hosts === undefined) return undefined
  const names = hosts.split(',')
  const urls = names.map((host) => `${before}${host}${after}`)
  if (!urls.every((url) => URL.canParse(url)) || (names.length > 1 && names.includes(''))) return undefined
  const target = new URL(urls[0] ?? '').searchParams.get(TARGET)
  if (target !== null && !TARGETS.includes(target)) return undefined
  const { protocol, pathname } = new URL(urls[0] ?? '')
  return {
    urls: (target === null ? urls : urls.map(withoutTarget)).map(nameVerification),
    mustWrite: names.length > 1 || (target !== null && target !== 'any'),
    location: `${protocol}//${urls.map((url) => new URL(url).host).join()}${pathname}`,
  }
}

function withoutTarget(text: string): string {
  const url = new URL(text)
  url.searchParams.delete(TARGET)
  return url.toString()
}

/** Writes verify-full in place of the modes that node-postgres treats as verify-full; otherwise node-postgres prints ten lines about it on stderr. */
const nameVerification = (text: string): string =>
  isLibpq(new URL(text).searchParams) ? text : text.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, '$1verify-full')

/**
 * The problem with the TLS options in the query of such a URL; undefined without one. node-postgres would ignore an unknown mode and connect without
 * TLS. Throws a TypeError for a text that parseDatabaseUrl refuses.
 */
export function findTlsProblem(text: string): string | undefined {
  const { searchParams } = new URL(parseDatabaseUrl(text)?.urls[0] ?? '')
  const names = [...searchParams.keys()].filter((name) => /ssl|tls|mode$/i.test(name))
  for (const name of names) {
    const values = Object.entries(TLS_OPTIONS).find(([known]) => known === name)?.[1]
    if (values === undefined)
      return `has no option ${JSON.stringify(name.slice(0, 40))}; TLS has ${Object.keys(TLS_OPTIONS).join(', ')}`
    const given = searchParams.getAll(name)
    if (given.length > 1) return `has the option ${name} twice`
    if (values.length > 0 && !values.includes(given[0] ?? '')) return `has an option ${name} that is none of ${values.join(', ')}`
  }
  const isVouched = !isLibpq(searchParams) || searchParams.get('sslmode') !== 'verify-ca' || searchParams.has('sslrootcert')
  return isVouched ? undefined : 'has sslmode=verify-ca without sslrootcert, which names the authority'
}

const isLibpq = (options: URLSearchParams): boolean => options.get('uselibpqcompat') === 'true'

export const TLS_MODES: readonly string[] = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full']
/** The options that node-postgres knows, or ignores without harm, with their values. An option with an empty list takes any text. */
const TLS_OPTIONS: Readonly<Record<string, readonly string[]>> = {
  sslmode: TLS_MODES,
  sslrootcert: [],
  sslcert: [],
  sslkey: [],
  sslnegotiation: ['postgres', 'direct'],
  ssl: ['true', '1', '0', 'no-verify'],
  uselibpqcompat: ['true', 'false'],
  gssencmode: ['disable', 'prefer'],
  sslcompression: ['0'],
  sslsni: ['0', '1'],
}

// User and password end at the last @ before the path. A comma in them does not separate hosts.
const FORM = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)([^]*)$/
const TARGET = 'target_session_attrs'
const TARGETS = ['any', 'read-write', 'primary']
