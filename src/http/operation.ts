// Declares the description of one endpoint for the OpenAPI document. Each API makes it from the declarations that serve its requests.
import { type TSchema, Type } from '@sinclair/typebox'
import type { ErrorCode } from '../lib/errors.ts'

export interface Operation {
  readonly method: string
  /** The path as the server mounts it: `/admin/users/:name`. */
  readonly path: string
  /** A verb and its object; unique. */
  readonly operationId: string
  /** The group in which it is shown. */
  readonly tag: string
  /** One line, without a full stop. */
  readonly summary: string
  /** Markdown. */
  readonly description?: string
  /** The alternatives; each names credentials that are sent together. Without any, the endpoint needs none. */
  readonly security: readonly (readonly SecurityScheme[])[]
  /** Objects whose members are the parameters. */
  readonly params?: TSchema | undefined
  readonly query?: TSchema | undefined
  readonly headers?: TSchema | undefined
  /** The body, in JSON unless `mediaType` says otherwise. */
  readonly body?: { readonly schema: TSchema; readonly isRequired: boolean; readonly mediaType?: string } | undefined
  readonly answers: readonly Answer[]
  /** The address where it is served, if the document comes from another one. */
  readonly server?: { readonly url: string; readonly description: string }
}

export interface Answer {
  readonly status: number
  readonly description: string
  /** Absent if the body is not JSON; `mediaType` then names its type. */
  readonly schema?: TSchema
  readonly mediaType?: string
  /** Wire codes of errors that have this status here. */
  readonly codes?: readonly string[]
  /** Maps each name to its meaning. */
  readonly headers?: Readonly<Record<string, string>>
  /** Maps each name to a body. For schemas without examples of their own. */
  readonly examples?: Readonly<Record<string, unknown>>
}

/** Credentials by their names in the document. */
export type SecurityScheme =
  | 'basic'
  | 'accessToken'
  | 'powerAuthAuthorization'
  | 'powerAuthEncryption'
  | 'powerAuthToken'
  | 'svcAuthorization'
  | 'svcEncryption'
  | 'svcToken'

/**
 * How the bank's callers prove who they are: one of these. A client certificate is of the connection, and the text of the document names it: the
 * generator for Java does not know `mutualTLS`, and says so as an error for every operation.
 */
export const OF_BANK: Operation['security'] = [['basic'], ['accessToken']]

/** The errors of one API: its table, and the body for a row. */
export interface ErrorDescription {
  readonly rendering: ErrorTable
  /** The schema of the body, for all codes; ErrorResponse when absent. */
  readonly schema?: TSchema
  readonly example?: (error: RenderedError) => unknown
  readonly headers?: Readonly<Record<number, Readonly<Record<string, string>>>>
}

/** The wire forms of an API's error codes. */
export type ErrorTable = Readonly<Partial<Record<ErrorCode, RenderedError>> & Record<'INTERNAL', RenderedError>>

/** The wire form of a code. A code of another API gets the form of an internal failure, because no endpoint of this API throws it. */
export const rowOf = (table: ErrorTable, code: ErrorCode): RenderedError => table[code] ?? table.INTERNAL

export interface RenderedError {
  readonly status: number
  readonly code: string
  readonly message: string
}

/** The answers for these error codes, one for each status. */
export function describeErrors(api: ErrorDescription, codes: readonly ErrorCode[]): Answer[] {
  const rendered = [...new Set(codes)].map((code) => rowOf(api.rendering, code))
  const statuses = [...new Set(rendered.map(({ status }) => status))].sort((a, b) => a - b)
  return statuses.map((status) => {
    const errors = rendered.filter((error) => error.status === status)
    const byText = new Map(errors.map((error) => [`\`${error.code}\`: ${error.message}`, error]))
    const wireCodes = [...new Set(errors.map(({ code }) => code))].sort()
    return {
      status,
      description: [...byText.keys()].sort().join('; '),
      schema: api.schema ?? ErrorResponse,
      codes: wireCodes,
      headers: { ...COMMON_HEADERS[status], ...api.headers?.[status] },
      examples: Object.fromEntries(errors.map((error) => [nameExample(error, errors), (api.example ?? showError)(error)])),
    }
  })
}

const showError = ({ code, message }: RenderedError) => ({ status: 'ERROR', responseObject: { code, message } })

/** The name of an example: the wire code, with the message where several errors have the code. */
const nameExample = ({ code, message }: RenderedError, all: readonly RenderedError[]): string =>
  all.some((other) => other.code === code && other.message !== message) ? `${code} ${message}` : code

const RETRY_AFTER = 'seconds to wait before the same request may succeed'
const REQUEST_ID = 'names the request in the log'
const COMMON_HEADERS: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  429: { 'Retry-After': RETRY_AFTER },
  500: { 'X-Request-Id': REQUEST_ID },
  503: { 'Retry-After': RETRY_AFTER, 'X-Request-Id': REQUEST_ID },
}

/** The body of an error of every API but the mobile utility's. */
export const ErrorResponse = Type.Object(
  {
    status: Type.Literal('ERROR'),
    responseObject: Type.Object({
      code: Type.String(),
      message: Type.String(),
      violations: Type.Optional(
        Type.Array(
          Type.Object(
            {
              fieldName: Type.String({ examples: ['userId'] }),
              invalidValue: Type.Optional(
                Type.String({ description: 'cut at 128 characters, left out for secrets', examples: [''] }),
              ),
              hint: Type.String({ examples: ['must not be blank'] }),
            },
            { title: 'ErrorViolation' },
          ),
          { description: 'of the cloud API: what is wrong with the request, the first 64 faults of it' },
        ),
      ),
    }),
  },
  { title: 'ErrorResponse' },
)
