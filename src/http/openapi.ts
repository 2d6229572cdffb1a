// The OpenAPI 3.1 document of a list of operations. Schemas are those that validate, so the document cannot say anything else.
import type { TSchema } from '@sinclair/typebox'
import { examplesOf } from './example.ts'
import type { Answer, Operation, SecurityScheme } from './operation.ts'

export interface DocumentInfo {
  readonly title: string
  readonly version: string
  /** Markdown. */
  readonly description: string
}

type Json = Record<string, unknown>

/** The document as a JSON value. */
export function renderOpenApi(info: DocumentInfo, operations: readonly Operation[]): Json {
  const answers = createShelf()
  const paths: Record<string, Json> = {}
  for (const operation of operations) {
    const path = toTemplate(operation.path)
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: renderOperation(operation, answers.place) }
  }
  const document = {
    openapi: '3.1.0',
    info,
    servers: [{ url: '/', description: 'where this document comes from' }],
    tags: [...new Set(operations.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: { securitySchemes: SECURITY_SCHEMES, responses: answers.responses() },
  }
  // What is compiled elsewhere stays as it is: symbols of TypeBox are dropped, patterns are spelled for every dialect.
  return JSON.parse(JSON.stringify(document, (name, value: unknown) => (name === 'pattern' ? toPortable(String(value)) : value)))
}

/** `/a/:b` as `/a/{b}`. */
const toTemplate = (path: string): string => path.replace(/:(\w+)/g, '{$1}')

/** `[^]` is any character in JavaScript alone. */
const toPortable = (pattern: string): string => pattern.replaceAll('[^]', '[\\s\\S]')

function renderOperation(operation: Operation, place: (answer: Answer, rendered: Json) => Json): Json {
  const { tag, summary, description, body, answers, security, server } = operation
  const parameters = [
    ...renderParameters('path', operation.params),
    ...renderParameters('query', operation.query),
    ...renderParameters('header', operation.headers),
  ]
  return {
    operationId: nameOperation(operation),
    tags: [tag],
    summary,
    ...(description && { description }),
    ...(server && { servers: [server] }),
    security: security.map((schemes) => Object.fromEntries(schemes.map((scheme) => [scheme, []]))),
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: { required: body.isRequired, content: renderContent(body.schema, body.mediaType ?? JSON_TYPE, undefined) },
    }),
    responses: Object.fromEntries(answers.map((answer) => [answer.status, place(answer, renderAnswer(answer))])),
  }
}

/** `getAdminUsersName` for `GET /admin/users/{name}`. */
const nameOperation = ({ method, path }: Operation): string =>
  method.toLowerCase() +
  path
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('')

function renderParameters(place: 'path' | 'query' | 'header', schema: TSchema | undefined): Json[] {
  if (schema === undefined) return []
  const { properties = {}, required = [] } = schema as { properties?: Record<string, TSchema>; required?: string[] }
  return Object.entries(properties).map(([name, member]) => ({
    name,
    in: place,
    required: required.includes(name) && member['default'] === undefined,
    ...(member.description && { description: member.description }),
    schema: member,
    example: examplesOf(member)[0],
  }))
}

function renderAnswer({ description, schema, mediaType = JSON_TYPE, headers = {}, examples }: Answer): Json {
  const names = Object.entries(headers)
  const shown = names.map(([name, meaning]) => [name, { description: meaning, schema: { type: 'string' } }])
  return {
    description,
    ...(names.length > 0 && { headers: Object.fromEntries(shown) }),
    content: schema ? renderContent(schema, mediaType, examples) : { [mediaType]: {} },
  }
}

function renderContent(schema: TSchema, mediaType: string, given: Readonly<Record<string, unknown>> | undefined): Json {
  const named = given ?? Object.fromEntries(examplesOf(schema).map((value, index) => [`example ${index + 1}`, value]))
  const examples = Object.fromEntries(Object.entries(named).map(([name, value]) => [name, { value }]))
  return { [mediaType]: { schema, ...(mediaType === JSON_TYPE && { examples }) } }
}

/** Errors are the same for many operations; each different one stands in the document once. */
function createShelf() {
  const names = new Map<string, string>()
  const responses: Record<string, Json> = {}
  return {
    responses: () => responses,
    place: (answer: Answer, rendered: Json): Json => {
      if (answer.status < 400) return rendered
      const text = JSON.stringify(rendered)
      const alike = [...names.values()].filter((name) => name.startsWith(`Error${answer.status}`)).length
      const name = names.get(text) ?? `Error${answer.status}_${alike + 1}`
      names.set(text, name)
      responses[name] = rendered
      return { $ref: `#/components/responses/${name}` }
    },
  }
}

const JSON_TYPE = 'application/json'

const protocolHeader = (name: string, description: string): Json => ({ type: 'apiKey', in: 'header', name, description })
const AUTHORIZATION = 'Authentication code of a phone: activation, application key, nonce, factors, code, version.'
const ENCRYPTION = 'What the body is encrypted for: version, application key and, in activation scope, the activation.'
const TOKEN = 'Digest of a token: token, nonce, timestamp, version.'

const SECURITY_SCHEMES: Readonly<Record<SecurityScheme, Json>> = {
  basic: { type: 'http', scheme: 'basic', description: 'User name and password of a credential, in UTF-8.' },
  powerAuthAuthorization: protocolHeader('X-PowerAuth-Authorization', AUTHORIZATION),
  powerAuthEncryption: protocolHeader('X-PowerAuth-Encryption', ENCRYPTION),
  powerAuthToken: protocolHeader('X-PowerAuth-Token', TOKEN),
  svcAuthorization: protocolHeader('X-Svc-Authorization', AUTHORIZATION),
  svcEncryption: protocolHeader('X-Svc-Encryption', ENCRYPTION),
  svcToken: protocolHeader('X-Svc-Token', TOKEN),
}
