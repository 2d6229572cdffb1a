// Watches a server: the description of the APIs must have the status and the body of every answer.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { member } from '../../phone/http.ts'

export interface Documented {
  /** A line for each answer that the document does not have. */
  readonly undocumented: () => readonly string[]
}

/** Follows the answers of `server` from now on. Compiled schemas are kept for the next server with the same document. */
export function watchAnswers(server: Server, document: object): Documented {
  const find = finders.get(document) ?? createFinder(document)
  finders.set(document, find)
  const found = new Set<string>()
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const end = response.end.bind(response) as (...args: unknown[]) => ServerResponse
    response.end = ((...args: unknown[]) => {
      const problem = judge(find, request, response, args[0])
      if (problem !== undefined) found.add(problem)
      return end(...args)
    }) as typeof response.end
  })
  return { undocumented: () => [...found] }
}

/** Compiles a schema of the document with those it refers to, and refuses keywords that JSON Schema does not have. */
export const compileSchema = (schema: unknown, document: object): ValidateFunction =>
  validatorOf(document).compile(JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/', `"$ref":"${DOCUMENT}#/`)))

/** A validator that can follow references into the document; shared schemas are compiled once. */
function validatorOf(document: object): Ajv2020 {
  const known = validators.get(document)
  if (known !== undefined) return known
  const ajv = new Ajv2020({
    strict: true,
    strictTypes: false,
    keywords: ['components'],
    allowUnionTypes: true,
    formats: { int64: true, uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/ },
  })
  ajv.addSchema({ $id: DOCUMENT, components: { schemas: member(document, 'components', 'schemas') } })
  validators.set(document, ajv)
  return ajv
}

const validators = new WeakMap<object, Ajv2020>()
const DOCUMENT = 'pawl:/openapi.json'

/** Follows a reference inside the document. */
export function resolve(document: unknown, value: unknown): unknown {
  const reference = member(value, '$ref')
  return typeof reference === 'string' ? member(document, ...reference.slice(2).split('/')) : value
}

interface Found {
  readonly operation: unknown
  readonly validate: (status: number) => ValidateFunction | undefined
  /** The codes that errors of a status may have. */
  readonly codes: (status: number) => readonly unknown[] | undefined
}

type Find = (method: string, path: string) => Found | undefined

const finders = new WeakMap<object, Find>()

function judge(
  find: Find,
  { method = '', url = '' }: IncomingMessage,
  response: ServerResponse,
  chunk: unknown,
): string | undefined {
  // The console is no API, and has tests of its own.
  if (/^\/console\b/.test(url)) return undefined
  const { statusCode: status } = response
  // HEAD is GET without the body. Endpoints whose code covers the method have no HEAD.
  if (method === 'HEAD' && status === 404) return undefined
  const found = find(method === 'HEAD' ? 'GET' : method, url.split('?')[0] ?? '')
  const place = `${method} ${url.split('?')[0]} answers ${status}`
  if (found === undefined) return status < 400 ? `${place} and is not in the document` : undefined
  if (member(found.operation, 'responses', String(status)) === undefined) return `${place}, which the document does not list`
  if (method === 'HEAD') return undefined
  const codes = found.codes(status)
  const validate = found.validate(status)
  if (validate === undefined) return undefined
  const text = Buffer.isBuffer(chunk) ? chunk.toString('utf8') : String(chunk)
  try {
    const json: unknown = JSON.parse(text)
    if (!validate(json)) return `${place}: ${text.slice(0, 300)} is not as documented: ${explain(validate)}`
    const code = member(json, 'responseObject', 'code') ?? member(json, 'code')
    return codes === undefined || codes.includes(code)
      ? undefined
      : `${place} with the code ${String(code)}, which the document does not list`
  } catch {
    return `${place}: ${text.slice(0, 300)} is no JSON`
  }
}

const explain = ({ errors }: ValidateFunction): string => JSON.stringify(errors)

/** Finds the operation of a path. Names have precedence over parameters; a malformed path has no operation. */
function createFinder(document: object): Find {
  const templates = Object.entries(member(document, 'paths') as Record<string, Record<string, unknown>>)
    .map(([path, methods]) => ({ pattern: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`), methods, path }))
    .toSorted((a, b) => a.path.split('{').length - b.path.split('{').length)
  const compiled = new Map<unknown, ValidateFunction>()
  return (method, path) => {
    const operation = templates.find(({ pattern, methods }) => pattern.test(path) && method.toLowerCase() in methods)?.methods[
      method.toLowerCase()
    ]
    if (operation === undefined) return undefined
    const validate = (status: number): ValidateFunction | undefined => {
      const answer = resolve(document, member(operation, 'responses', String(status)))
      const schema = member(answer, 'content', 'application/json', 'schema')
      if (schema === undefined) return undefined
      const known = compiled.get(schema) ?? compileSchema(schema, document)
      compiled.set(schema, known)
      return known
    }
    const codes = (status: number) =>
      member(resolve(document, member(operation, 'responses', String(status))), 'x-codes') as readonly unknown[] | undefined
    return { operation, validate, codes }
  }
}
