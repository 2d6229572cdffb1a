// Calls the doors of pawl: one attempt and one retry under the same key, each with a limit of time.
import { randomUUID } from 'node:crypto'

export interface PawlOptions {
  /** Address of pawl's API for the bank, such as http://127.0.0.1:8081. */
  readonly url: string
  /** A credential with the role `verification`. */
  readonly username: string
  readonly password: string
  /** How long one of the two attempts may take, in milliseconds; 2000 by default. */
  readonly timeoutMs?: number
  /** Another `fetch`, for example with the certificate authority of your network. */
  readonly fetch?: typeof fetch
}

/** Sends one request to a door. Gives the answer, or throws PawlUnavailable. */
export type AskPawl = (path: string, body: object) => Promise<Readonly<Record<string, unknown>>>

/** pawl gave no answer that can be used. Nobody knows whether the request was genuine, so it must not be served. */
export class PawlUnavailable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'PawlUnavailable'
  }
}

/**
 * The second attempt carries the same Idempotency-Key, so a code whose verdict was lost on the way is not judged a second time. The key is
 * made here for each request: what a phone sends never decides it.
 */
export function createAsk({ url, username, password, timeoutMs = 2_000, fetch: send = fetch }: PawlOptions): AskPawl {
  const base = url.replace(/\/+$/, '')
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  return async (path, body) => {
    const request = {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json', 'idempotency-key': randomUUID() },
      body: JSON.stringify(body),
      redirect: 'error',
    } as const
    const attempt = () => tryOnce(send, `${base}${path}`, { ...request, signal: AbortSignal.timeout(timeoutMs) })
    return attempt().catch((error: unknown) => {
      if (error instanceof PawlRefused) throw error
      return attempt()
    })
  }
}

/** pawl refused the request itself: a wrong credential, a missing role, a member that it does not take. A retry would be refused again. */
class PawlRefused extends PawlUnavailable {}

async function tryOnce(send: typeof fetch, url: string, request: RequestInit): Promise<Readonly<Record<string, unknown>>> {
  let status: number
  let text: string
  try {
    const response = await send(url, request)
    status = response.status
    text = await response.text()
  } catch (error) {
    throw new PawlUnavailable(`pawl does not answer at ${new URL(url).origin}`, { cause: error })
  }
  if (status >= 400 && status < 500 && status !== 429)
    throw new PawlRefused(`pawl refused ${new URL(url).pathname} with ${status}: ${text.slice(0, 500)}`)
  const answer = status === 200 ? parseObject(text) : undefined
  if (answer === undefined) throw new PawlUnavailable(`pawl answered ${new URL(url).pathname} with ${status}`)
  return answer
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
