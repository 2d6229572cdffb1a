// Sends requests over a socket exactly as given: any method, header and body, nothing added but Host and Content-Length.
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import { request as openPlain } from 'node:http'
import { request as openSecure } from 'node:https'

export interface HttpRequest {
  readonly method: string
  /** The path with its query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

export interface HttpReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The parsed body; undefined when it is not JSON. */
  readonly json: unknown
}

export const NO_BODY = new Uint8Array(0)
const TIMEOUT_MS = 60_000

/** A request that may have headers several times. */
interface AnyRequest extends Omit<HttpRequest, 'headers'> {
  readonly headers: OutgoingHttpHeaders
}

/** Sends one request and reads the whole answer. Rejects when the connection breaks before there is one, and when none comes within `timeoutMs`. */
export function send(url: string, { method, path, headers, body }: AnyRequest, timeoutMs = TIMEOUT_MS): Promise<HttpReply> {
  const signal = AbortSignal.timeout(timeoutMs)
  const length = body.length > 0 ? { 'Content-Length': String(body.length) } : {}
  return new Promise((resolve, reject) => {
    const open = url.startsWith('https:') ? openSecure : openPlain
    const outgoing = open(url + path, { method, headers: { ...headers, ...length }, signal }, (incoming) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('error', reject)
      incoming.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text, json: parseJson(text) })
      })
    })
    outgoing.on('error', reject)
    outgoing.end(body.length > 0 ? body : undefined)
  })
}

/** Sends a JSON value, or nothing when there is none. */
export function sendJson(
  url: string,
  method: string,
  path: string,
  json?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<HttpReply> {
  const body = json === undefined ? NO_BODY : Buffer.from(JSON.stringify(json))
  const contentType = json === undefined ? {} : { 'Content-Type': 'application/json' }
  return send(url, { method, path, headers: { ...contentType, ...headers }, body })
}

export const toQuery = (members: Readonly<Record<string, unknown>>): string =>
  new URLSearchParams(Object.entries(members).map(([name, value]): [string, string] => [name, String(value)])).toString()

/** A member of a JSON value, found by its path; undefined when it is not there. */
export function member(json: unknown, ...path: readonly string[]): unknown {
  let value = json
  for (const name of path) {
    if (typeof value !== 'object' || value === null) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
