// Calls a running server as the bank does: finds its address and a credential, and explains its refusals.
import { ask, type Reply } from './ask.ts'
import { type Answer, text, type Terminal, type Values } from './command.ts'
import { readCredential } from './credential-store.ts'
import { bankUrl, readUrl } from './environment.ts'
import { explainFault, Fault, type FaultKind, usageFault } from './fault.ts'
import { parseJson } from './json-argument.ts'
import { readSecret } from './secret-argument.ts'

/** Options of every command that calls the cloud API. */
export const BANK_OPTIONS = {
  url: text(
    'URL',
    "where the bank's API is; by default PAWL_URL, or that of pawl login, or on this machine at PAWL_INTERNAL_PORT, PAWL_PORT or 8080",
  ),
  admin: text('USER:PASSWORD', 'the credential; by default PAWL_ADMIN, or that of pawl login'),
  adminFile: text('FILE', 'a file that holds it: then it is in no list of processes'),
} as const

export type BankValues = Values<typeof BANK_OPTIONS>

export interface Bank {
  readonly url: string
  /** `user:password`. */
  readonly admin: string
  /**
   * Calls the API and returns the answer as JSON; the caller knows its type from the description of the API. Throws a Fault with the text of a
   * refusal, or when no answer comes.
   */
  readonly call: <T = unknown>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<T>
  /** Calls the API for a command that prints the answer as it is. */
  readonly answer: (method: string, path: string, body?: unknown) => Promise<Answer>
}

/** Finds server and credential in the options, the environment, or the file of `pawl login`. Throws a Fault when none has a credential. */
export function openBank(values: BankValues, { env }: Pick<Terminal, 'env'>): Bank {
  // An empty variable counts as not set, as in the settings.
  const given = readSecret('--admin-file', values.admin, values.adminFile) ?? (env['PAWL_ADMIN'] || undefined)
  const givenUrl = values.url || env['PAWL_URL'] || undefined
  const stored = given !== undefined && givenUrl !== undefined ? undefined : readCredential(env)
  const url = readUrl(givenUrl ?? stored?.url ?? bankUrl(env))
  // A stored credential is sent only to the server that it was stored for.
  const admin = given ?? (stored !== undefined && readUrl(stored.url) === url ? stored.admin : undefined)
  if (admin !== undefined && !admin.includes(':'))
    throw usageFault('a credential is USER:PASSWORD, and the given one has no colon')
  if (admin === undefined)
    throw new Fault(
      'credential',
      `no credential for ${url}: pawl login stores one; else --admin USER:PASSWORD, --admin-file FILE or PAWL_ADMIN`,
    )
  return connectBank(url, admin, env)
}

/** A client of the server at `url` that sends `admin`, and the client certificate that `env` names. */
export function connectBank(url: string, admin: string, env: Terminal['env']): Bank {
  const call: Bank['call'] = async <T>(...given: Parameters<Bank['call']>) => (await callBank({ url, admin, env }, ...given)) as T
  return { url, admin, call, answer: async (method, path, body) => ({ json: await call(method, path, body) }) }
}

const TIMEOUT_MS = 30_000
/** What to look at when a server with TLS and this command do not take each other. */
export const CERTIFICATES =
  'NODE_EXTRA_CA_CERTS names the authority of the server, PAWL_CLIENT_CERTIFICATE and PAWL_CLIENT_KEY what this command shows'

async function callBank(
  { url, admin, env }: Pick<Bank, 'url' | 'admin'> & Pick<Terminal, 'env'>,
  ...[method, path, body, more = {}]: Parameters<Bank['call']>
): Promise<unknown> {
  const headers = { Authorization: `Basic ${Buffer.from(admin).toString('base64')}`, ...more }
  // Every method but GET sends a JSON body: `{}` when the caller gives none.
  const json = { headers: { ...headers, 'Content-Type': 'application/json' }, body: JSON.stringify(body ?? {}) }
  const request = { method, timeoutMs: TIMEOUT_MS, ...(method === 'GET' ? { headers } : json) }
  try {
    return readReply(`${method} ${url}${path}`, await ask(env, url + path, request))
  } catch (error) {
    if (error instanceof Fault) throw error
    // A server that ends the connection for want of a certificate looks to fetch like one that is away.
    const tls = url.startsWith('https:') ? `; ${CERTIFICATES}` : ''
    throw new Fault('unreachable', `${url} does not answer (${explainFault(error)}); --url says where the bank's API is${tls}`)
  }
}

function readReply(call: string, { status, text: said }: Reply): unknown {
  const json = parseJson(said)
  const ok = status >= 200 && status < 300
  if (ok && json !== undefined) return json
  if (ok || (status >= 300 && status < 400))
    throw new Fault(
      'unreachable',
      `${call}: HTTP ${status}, so what answers is no server of pawl; --url says where the bank's API is`,
    )
  const { code = '', message = '', violations } = readError(json)
  const details = (violations ?? []).map(({ fieldName, hint }) => `${fieldName ?? ''}: ${hint ?? ''}`).join(', ')
  const missing = violations?.find((violation) => violation.hint?.startsWith('there is no '))?.hint
  throw new Fault(
    missing === undefined ? kindOf(status, code) : 'missing',
    `${call}: HTTP ${status} ${code} ${message}${details && ` (${details})`}${adviceOn(status, code, missing)}`,
  )
}

/** Advice on a refusal, if there is one. `missing` is the server's text about a name that it does not know. */
function adviceOn(status: number, code: string, missing = ''): string {
  const noun = /^there is no (application|template|webhook|user) /.exec(missing)?.[1]
  if (noun !== undefined) return `; pawl ${noun === 'application' ? 'app' : noun} list shows those that there are`
  if (code === 'ERROR_REGISTRATION_NOT_FOUND')
    return '; pawl registration list shows those that there are, pawl registration create makes one'
  if (status === 404 && code === 'ERROR_NOT_FOUND') return '; with two listeners --url is that of PAWL_INTERNAL_PORT'
  if (status === 401) return '; the user name or the password is wrong: pawl login asks for others'
  return status === 403 ? '; the role of this credential does not allow it: --admin gives another' : ''
}

function kindOf(status: number, code: string): FaultKind {
  if (status === 401 || status === 403) return 'credential'
  if (status === 404 || code.endsWith('_NOT_FOUND')) return 'missing'
  return status === 503 || status === 502 || status === 504 ? 'unreachable' : 'refused'
}

interface ServerError {
  readonly code?: string
  readonly message?: string
  readonly violations?: readonly { readonly fieldName?: string; readonly hint?: string }[]
}

const readError = (json: unknown): ServerError =>
  typeof json === 'object' && json !== null && 'responseObject' in json ? ((json.responseObject ?? {}) as ServerError) : {}
