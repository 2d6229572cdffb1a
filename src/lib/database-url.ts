// The URL of a PostgreSQL that several hosts may serve, in the form that libpq takes (PostgreSQL, "Specifying Multiple Hosts").

export interface DatabaseAddress {
  /** One URL for each host, in the order in which they are tried; each has the settings of all. */
  readonly urls: readonly string[]
  /** Whether only a host that takes writes will do. Where there are several hosts, no other one would. */
  readonly mustWrite: boolean
  /** For people: protocol, hosts and database. */
  readonly location: string
}

/**
 * Reads `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?target_session_attrs=read-write`; undefined when it is no such URL, or asks
 * for a server that takes no writes.
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

/** Writes verify-full in place of the modes that node-postgres takes for it: otherwise it says so in ten lines on stderr. */
const nameVerification = (text: string): string =>
  isLibpq(new URL(text).searchParams) ? text : text.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, '$1verify-full')

/**
 * What is wrong with the options of TLS behind the `?` of such a URL; undefined when nothing is. node-postgres ignores a mode that it does not
 * know, and goes on in the clear. Throws a TypeError for a text that parseDatabaseUrl does not take.
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
/** The options that node-postgres knows, or ignores without harm, with their values; an option without values takes any text. */
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

// Up to the last @ before the path stand user and password, where a comma is a comma.
const FORM = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)([^]*)$/
const TARGET = 'target_session_attrs'
const TARGETS = ['any', 'read-write', 'primary']
