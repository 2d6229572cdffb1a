// Calls the bank's API inside the process, with the same validation, roles, limits and audit log as for any other caller.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Caller } from '../domain/credential/credential.ts'
import { TICKET_HEADER, type Tickets } from '../domain/credential/session.ts'
import type { Violation } from '../lib/errors.ts'
import { isForPaths } from '../lib/identifier.ts'
import { isTooDeep } from '../lib/json.ts'

export type Query = Readonly<Record<string, string | number | undefined>>
type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface Api {
  /** The JSON of the answer. The caller knows its type from the description of the API. Throws Refusal for every status but 200. */
  readonly get: <T>(path: string, query?: Query) => Promise<T>
  readonly send: <T>(method: Exclude<Method, 'GET'>, path: string, body?: unknown, query?: Query) => Promise<T>
}

/** Thrown for an answer of the API that is not a success. */
export class Refusal extends Error {
  readonly status: number
  readonly violations: readonly Violation[]
  /** The code of the API (cloud §1.2); empty for a refusal of the console's own. */
  readonly code: string

  constructor(status: number, message: string, violations: readonly Violation[], code = '') {
    super(message)
    this.name = 'Refusal'
    this.status = status
    this.violations = violations
    this.code = code
  }
}

/** A path with encoded parameters. Throws Refusal for `.` and `..`, which would lead to another path. */
export const at = (literals: TemplateStringsArray, ...names: readonly string[]): string =>
  literals.map((literal, i) => (i === 0 ? literal : toSegment(names[i - 1] ?? '') + literal)).join('')

function toSegment(name: string): string {
  if (!isForPaths(name)) throw new Refusal(400, `${name} is no name that a path can have`, [])
  return encodeURIComponent(name)
}

/** `path?name=value`. Names without a value are left out. */
export function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, String(value)]],
  )
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given).toString()}`
}

/** The API for one caller, during one request of a browser. Its calls have the id, the host and the address of that request. */
export function createApi(app: FastifyInstance, tickets: Tickets, caller: Caller, request: FastifyRequest): Api {
  const send = async <T>(method: Method, path: string, body?: unknown, query: Query = {}): Promise<T> => {
    const ticket = tickets.issue(caller)
    try {
      const reply = await app.inject({
        method,
        url: withQuery(path, query),
        remoteAddress: request.ip,
        headers: {
          [TICKET_HEADER]: ticket,
          host: request.host,
          'x-request-id': request.id,
          ...(method !== 'GET' && { 'content-type': 'application/json' }),
        },
        ...(method !== 'GET' && method !== 'DELETE' && { payload: JSON.stringify(body ?? {}) }),
      })
      if (reply.statusCode === 200) return reply.json<T>()
      throw toRefusal(reply.statusCode, reply.body)
    } finally {
      tickets.drop(ticket)
    }
  }
  return { get: (path, query) => send('GET', path, undefined, query), send }
}

/** The value of a call; undefined when the API refuses it with 4xx, and with `code` if one is given. Throws other Refusals. */
export async function unlessRefused<T>(answer: Promise<T>, code?: string): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof Refusal && error.status < 500 && (code ?? error.code) === error.code) return undefined
    throw error
  }
}

const REFUSED = 'The server refused it'

interface RefusedAnswer {
  readonly responseObject?: { readonly message?: string; readonly violations?: readonly Violation[]; readonly code?: string }
}

function toRefusal(status: number, body: string): Refusal {
  const { message = REFUSED, violations = [], code } = (JSON.parse(body) as RefusedAnswer).responseObject ?? {}
  // The message of this code guesses what is wrong; the violations know.
  const isGuess = code === 'ERROR_ADMIN' && violations.length > 0
  return new Refusal(status, isGuess ? REFUSED : message, violations, code)
}

/** Parses the value of a form line as JSON. For other text, and for more than 64 levels, throws a Refusal that names the line. */
export function parseJsonField(name: string, text: string): unknown {
  const refuse = (hint: string) => new Refusal(400, 'Request validation failed', [{ fieldName: name, hint }])
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw refuse(`must be JSON: ${error instanceof Error ? error.message : ''}`)
  }
  if (isTooDeep(value)) throw refuse('must be JSON of at most 64 levels')
  return value
}
