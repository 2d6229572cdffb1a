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
    urls: target === null ? urls : urls.map(withoutTarget),
    mustWrite: names.length > 1 || (target !== null && target !== 'any'),
    location: `${protocol}//${urls.map((url) => new URL(url).host).join()}${pathname}`,
  }
}

function withoutTarget(text: string): string {
  const url = new URL(text)
  url.searchParams.delete(TARGET)
  return url.toString()
}

// Up to the last @ before the path stand user and password, where a comma is a comma.
const FORM = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)([^]*)$/
const TARGET = 'target_session_attrs'
const TARGETS = ['any', 'read-write', 'primary']
