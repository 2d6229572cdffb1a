// Composes the OpenAPI 3.1 document from a list of operations. Its schemas are those that validate requests, so the two cannot differ.
import type { TSchema } from '@sinclair/typebox'
import { createSchemas, examplesOf, type Json, type Schemas } from './openapi-schemas.ts'
import type { Answer, Operation, SecurityScheme } from './operation.ts'

export interface DocumentInfo {
  readonly title: string
  readonly version: string
  /** Markdown. */
  readonly description: string
}

/** A group of operations, and a message that the server sends. */
export interface Tag {
  readonly name: string
  /** Markdown. */
  readonly description: string
}

export interface Message {
  readonly name: string
  readonly summary: string
  readonly description: string
  readonly schema: TSchema
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Composes the document as a JSON value. The given tags come in their order, other tags after them. Throws when two operations have the same
 * name.
 */
export function renderOpenApi(
  info: DocumentInfo,
  operations: readonly Operation[],
  { tags = [], messages = [] }: { readonly tags?: readonly Tag[]; readonly messages?: readonly Message[] } = {},
): Json {
  const schemas = createSchemas()
  const answers = createShelf()
  const paths: Record<string, Json> = {}
  const names = new Set<string>()
  for (const operation of operations) {
    if (names.has(operation.operationId)) throw new TypeError(`two operations are named ${operation.operationId}`)
    names.add(operation.operationId)
    const path = toTemplate(operation.path)
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: renderOperation(operation, schemas, answers.place) }
  }
  const used = new Set(operations.map(({ tag }) => tag))
  const known = tags.filter(({ name }) => used.delete(name))
  const document = {
    openapi: '3.1.0',
    info,
    servers: [{ url: '.', description: 'where this document comes from' }],
    tags: [...known, ...[...used].map((name) => ({ name }))],
    paths,
    webhooks: Object.fromEntries(messages.map((message) => [message.name, { post: renderMessage(message, schemas) }])),
    components: { schemas: schemas.components(), securitySchemes: SECURITY_SCHEMES, responses: answers.responses() },
  }
  // The copy has no symbols of TypeBox; the schemas themselves, which are compiled elsewhere, stay as they are.
  return JSON.parse(JSON.stringify(document))
}

const renderMessage = ({ name, summary, description, schema, headers }: Message, schemas: Schemas): Json => ({
  operationId: name,
  summary,
  description,
  parameters: Object.entries(headers).map(([header, meaning]) => ({
    name: header,
    in: 'header',
    required: true,
    description: meaning,
    schema: { type: 'string' },
  })),
  requestBody: {
    required: true,
    content: { [JSON_TYPE]: { schema: schemas.place(schema), examples: renderExamples(schema, undefined) } },
  },
  responses: { 200: { description: 'any 2xx: the message is received' } },
})

/** Writes `/a/:b` as `/a/{b}`. */
const toTemplate = (path: string): string => path.replace(/:(\w+)/g, '{$1}')

function renderOperation(operation: Operation, schemas: Schemas, place: (answer: Answer, rendered: Json) => Json): Json {
  const { tag, operationId, summary, description, body, answers, security, server } = operation
  const parameters = [
    ...renderParameters('path', operation.params, schemas),
    ...renderParameters('query', operation.query, schemas),
    ...renderParameters('header', operation.headers, schemas),
  ]
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description && { description }),
    ...(server && { servers: [server] }),
    security: security.map((schemes) => Object.fromEntries(schemes.map((scheme) => [scheme, []]))),
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: { required: body.isRequired, content: renderContent(body, `${capitalize(operationId)}Request`, schemas) },
    }),
    responses: Object.fromEntries(
      answers.map((answer) => [
        answer.status,
        place(answer, renderAnswer(answer, `${capitalize(operationId)}Response`, schemas)),
      ]),
    ),
  }
}

const capitalize = (name: string): string => name.slice(0, 1).toUpperCase() + name.slice(1)

function renderParameters(place: 'path' | 'query' | 'header', schema: TSchema | undefined, schemas: Schemas): Json[] {
  if (schema === undefined) return []
  const { properties = {}, required = [] } = schema as { properties?: Record<string, TSchema>; required?: string[] }
  return Object.entries(properties).map(([name, member]) => ({
    name,
    in: place,
    required: required.includes(name) && member['default'] === undefined,
    ...(member.description && { description: member.description }),
    schema: schemas.place(member),
    example: examplesOf(member)[0],
  }))
}

function renderAnswer(answer: Answer, name: string, schemas: Schemas): Json {
  const { description, schema, mediaType = JSON_TYPE, headers = {}, codes } = answer
  const names = Object.entries(headers)
  const shown = names.map(([header, meaning]) => [header, { description: meaning, schema: { type: 'string' } }])
  return {
    description,
    ...(names.length > 0 && { headers: Object.fromEntries(shown) }),
    // A redirect has no body.
    ...(answer.status !== SEE_OTHER && {
      content: schema ? renderContent({ ...answer, schema }, name, schemas) : { [mediaType]: {} },
    }),
    ...(codes && { 'x-codes': codes }),
  }
}

const SEE_OTHER = 303

interface Content {
  readonly schema: TSchema
  readonly mediaType?: string
  readonly examples?: Readonly<Record<string, unknown>>
}

/** The content of a body. `name` is that of its schema, if the schema has none itself. */
function renderContent({ schema, mediaType = JSON_TYPE, examples }: Content, name: string, schemas: Schemas): Json {
  if (mediaType !== JSON_TYPE) return { [mediaType]: { schema: schemas.place(schema) } }
  return { [mediaType]: { schema: schemas.place(schema, name), examples: renderExamples(schema, examples) } }
}

function renderExamples(schema: TSchema, given: Readonly<Record<string, unknown>> | undefined): Json {
  const named = given ?? Object.fromEntries(examplesOf(schema).map((value, index) => [`example ${index + 1}`, value]))
  return Object.fromEntries(Object.entries(named).map(([name, value]) => [name, { value }]))
}

/** Collects error answers, so that each different one is in the document once. */
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
  accessToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: "An access token of the bank's authorization server, where `PAWL_JWT_JWKS_URL` names its keys.",
  },
  powerAuthAuthorization: protocolHeader('X-PowerAuth-Authorization', AUTHORIZATION),
  powerAuthEncryption: protocolHeader('X-PowerAuth-Encryption', ENCRYPTION),
  powerAuthToken: protocolHeader('X-PowerAuth-Token', TOKEN),
  svcAuthorization: protocolHeader('X-Svc-Authorization', AUTHORIZATION),
  svcEncryption: protocolHeader('X-Svc-Encryption', ENCRYPTION),
  svcToken: protocolHeader('X-Svc-Token', TOKEN),
}
