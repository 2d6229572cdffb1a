// A typed client of pawl's cloud API: every path, body and answer of the description, and webhooks that are checked.
import createFetchClient, { type Client } from 'openapi-fetch'
import type { components, paths } from './schema.ts'

export { readWebhook, WebhookError, type WebhookHeaders, type WebhookMessage } from './webhook.ts'
export type { components, paths } from './schema.ts'

export type Operation = components['schemas']['Operation']
export type Registration = components['schemas']['Registration']
export type ErrorResponse = components['schemas']['ErrorResponse']

export interface PawlOptions {
  /** Of the listener for the bank, without trailing slash. */
  readonly url: string
  readonly username: string
  readonly password: string
  /** How long an answer may take, in milliseconds; 30000 by default. */
  readonly timeoutMs?: number
  /** Another `fetch`, for example with the certificate authority of your network. */
  readonly fetch?: (request: Request) => Promise<Response>
}

/** What the server refused. `code` is the one of docs/ERRORS.md. */
export class PawlError extends Error {
  readonly status: number
  readonly code: string | undefined
  readonly violations: readonly components['schemas']['ErrorViolation'][]

  constructor(status: number, error: ErrorResponse | undefined) {
    const { code, message = `HTTP ${status}`, violations = [] } = error?.responseObject ?? {}
    super([message, ...violations.map(({ fieldName, hint }) => `${fieldName} ${hint}`)].join('; '))
    this.name = 'PawlError'
    this.status = status
    this.code = code
    this.violations = violations
  }
}

/** A client with HTTP Basic: `pawl.POST('/registration', { body: { userId } })`. A call rejects when no answer comes in time. */
export function createPawl({ url, username, password, timeoutMs = 30_000, fetch: send = fetch }: PawlOptions): Client<paths> {
  const credential = Buffer.from(`${username}:${password}`, 'utf8').toString('base64')
  return createFetchClient<paths>({
    baseUrl: url,
    headers: { authorization: `Basic ${credential}` },
    fetch: (request) => send(new Request(request, { signal: AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]) })),
  })
}

/** The body of an answer; throws PawlError when the server refused. */
export function take<Data>(answer: { readonly data?: Data; readonly error?: unknown; readonly response: Response }): Data {
  if (answer.data === undefined || answer.error !== undefined)
    throw new PawlError(answer.response.status, answer.error as ErrorResponse | undefined)
  return answer.data
}

/** Asks every `everyMs` until the operation is not PENDING any more; a webhook tells it sooner. Throws after `timeoutMs`. */
export async function waitForOperation(
  pawl: Client<paths>,
  operationId: string,
  { everyMs = 1_000, timeoutMs = 300_000 } = {},
): Promise<Operation> {
  const end = Date.now() + timeoutMs
  for (;;) {
    const operation = take(await pawl.GET('/operations', { params: { query: { operationId } } }))
    if (operation.status !== 'PENDING') return operation
    if (Date.now() >= end) throw new Error(`operation ${operationId} is still PENDING`)
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}
