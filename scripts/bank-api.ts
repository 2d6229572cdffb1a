// How command lines call a running server as the bank does: where it listens, with which credential, and what a refusal says.
import { readFileSync } from 'node:fs'
import { explainFault, UsageError } from './command-line.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Options of every command that calls the cloud API. */
export const BANK_OPTIONS = {
  admin: { type: 'string' },
  'admin-file': { type: 'string' },
  url: { type: 'string' },
} as const

/** Their lines in a usage. */
export const BANK_USAGE = `  --admin USER:PASSWORD  the credential, or with --admin-file FILE a file that holds it: then it is in no list of processes
  --url URL              where the cloud API is; by default on this machine, at PAWL_INTERNAL_PORT, PAWL_PORT or 8080`

/** Where a server with this environment serves phones. */
export const phonesUrl = (env: Environment): string => localUrl(env['PAWL_HOST'], env['PAWL_PORT'])

/** Where a server with this environment serves the bank: a listener of its own, or that of the phones. */
export const bankUrl = (env: Environment): string =>
  env['PAWL_INTERNAL_PORT'] ? localUrl(env['PAWL_INTERNAL_HOST'], env['PAWL_INTERNAL_PORT']) : phonesUrl(env)

/** An address that stands for every interface is reached by the loopback one. */
function localUrl(host: string | undefined, port: string | undefined): string {
  const isEvery = !host || host === '0.0.0.0' || host === '::'
  const name = isEvery ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  return `http://${name}:${port || '8080'}`
}

export interface BankApi {
  readonly url: string
  /** `user:password`. */
  readonly admin: string
}

/** The server and the credential that a command line names. Throws UsageError when it names no credential. */
export function readBank(values: { admin?: string; 'admin-file'?: string; url?: string }, env: Environment): BankApi {
  const admin = values['admin-file'] === undefined ? values.admin : readFileSync(values['admin-file'], 'utf8').trim()
  if (!admin?.includes(':')) throw new UsageError('--admin USER:PASSWORD or --admin-file FILE is needed')
  return { url: values.url?.replace(/\/+$/, '') ?? bankUrl(env), admin }
}

export interface BankCall {
  readonly method: string
  readonly path: string
  readonly body?: unknown
}

/** The answer as JSON. Throws what a refusal says, or that there is no answer. */
export async function callBank({ url, admin }: BankApi, { method, path, body }: BankCall): Promise<unknown> {
  const authorization = { Authorization: `Basic ${Buffer.from(admin).toString('base64')}` }
  // Whatever writes says that it sends JSON, also where there is nothing to say.
  const json = { headers: { ...authorization, 'Content-Type': 'application/json' }, body: JSON.stringify(body ?? {}) }
  const reply = await fetch(url + path, { method, ...(method === 'GET' ? { headers: authorization } : json) }).catch(
    (error: unknown) => {
      throw new Error(`${url} does not answer (${explainFault(error)}); --url says where the cloud API is`)
    },
  )
  const text = await reply.text()
  if (reply.ok) return JSON.parse(text)
  const hint = reply.status === 404 ? '; with two listeners --url is that of PAWL_INTERNAL_PORT' : ''
  throw new Error(`${method} ${path}: HTTP ${reply.status} ${text}${hint}`)
}
