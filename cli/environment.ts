// Finds the address of a server, in what somebody typed or in the settings of this environment, and the home of the account.
import { userInfo } from 'node:os'
import { Fault, usageFault } from './fault.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** The home of this account. `os.homedir` would take an empty HOME for one, and files with secrets would lie in the current folder. */
export function homeOf(env: Environment): string {
  if (env['HOME']) return env['HOME']
  const home = homeOfAccount()
  if (home === '') throw new Fault('usage', 'HOME is not set, and the system knows no home of this account: set HOME')
  return home
}

/** Empty where the system does not know the account, or no home of it. */
function homeOfAccount(): string {
  try {
    return userInfo().homedir
  } catch {
    return ''
  }
}

/** The address at which a server with this environment serves phones. */
export const phonesUrl = (env: Environment): string => localUrl(env['PAWL_HOST'], portOf(env['PAWL_PORT']))

/** The address at which a server with this environment serves the bank: that of the internal listener, or that of the phones. */
export function bankUrl(env: Environment): string {
  const port = portOf(env['PAWL_INTERNAL_PORT'])
  return port === undefined
    ? phonesUrl(env)
    : localUrl(env['PAWL_INTERNAL_HOST'], port, env['PAWL_INTERNAL_TLS_CERTIFICATE'] ? 'https' : 'http')
}

/** A port in digits; undefined for other texts, as Kubernetes may put the address of a Service into such a variable (docs/CONFIG.md). */
const portOf = (text: string | undefined): string | undefined => (/^\d+$/.test(text ?? '') ? text : undefined)

/** An address that stands for every interface is reached by the loopback one. */
function localUrl(host: string | undefined, port: string | undefined, scheme: 'http' | 'https' = 'http'): string {
  const isEvery = !host || host === '0.0.0.0' || host === '::'
  const name = isEvery ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  return `${scheme}://${name}:${port || '8080'}`
}

/** The address of a server in the form of a browser, without a slash at its end. Throws a Fault for any other text. */
export function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw usageFault(`${showAddress(text)} is no address of a server, which is like http://127.0.0.1:8081`)
  const { username, password, search, hash } = url
  if (username + password + search + hash !== '') throw usageFault('the address of a server has no user, no ? and no #')
  return url.href.replace(/\/+$/, '')
}

/** What a message says for an address that somebody typed. One with an `@` may hold a password, and messages are kept in logs. */
export const showAddress = (text: string): string => (text.includes('@') ? 'what was given' : text)
