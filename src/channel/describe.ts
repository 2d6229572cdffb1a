// Describes the endpoints for phones for the OpenAPI document, from the facts that their flows state.
import { type TSchema, Type } from '@sinclair/typebox'
import { describeErrors, type ErrorDescription, type Operation, type SecurityScheme } from '../http/operation.ts'
import type { Protocol } from '../protocol/protocol.ts'
import type { Endpoint, FlowFacts } from './endpoint.ts'
import { methodsOf } from './mount.ts'

interface DeviceDescription {
  /** The path at which the API is mounted, and the prefix of its endpoints there. */
  readonly place: string
  readonly prefix: string
  /** The generations whose envelopes are described. */
  readonly protocols: readonly Protocol['path'][]
  readonly tag: string
  readonly errors: ErrorDescription
}

/** Describes one operation for each method of the endpoints. */
export const describeDeviceEndpoints = <Parts>(api: DeviceDescription, endpoints: readonly Endpoint<Parts>[]): Operation[] =>
  endpoints.flatMap((endpoint) =>
    methodsOf(endpoint).map((method) => describeEndpoint(api, endpoint, method, api.place + api.prefix + endpoint.path)),
  )

function describeEndpoint<Parts>(api: DeviceDescription, endpoint: Endpoint<Parts>, method: string, path: string): Operation {
  const { summary, description, flow, response, errors } = endpoint
  const generations = generationsOf(api, flow)
  return {
    method,
    path,
    operationId: nameOperation(method, path, methodsOf(endpoint).length > 1),
    tag: api.tag,
    summary,
    description: [description ?? [], flow.checks].flat().join('\n\n'),
    security: listSecurity(flow),
    // Only codes of 4.0 cover the body of a GET request, so no client should send one.
    body: method === 'GET' ? undefined : describeBody(flow, generations),
    answers: [
      {
        status: 200,
        description: 'done',
        schema: isSealed(flow) ? describeEnvelope('response', generations, response) : response,
      },
      ...describeErrors(api.errors, [...ANY_ENDPOINT, ...flow.refuses, ...errors]),
    ],
  }
}

/**
 * The operation id: `createTokenV3` for `/pa/v3/token/create`, `listOperationOnPhone` for the list of the mobile token API. If an endpoint has
 * several methods, its ids contain the method.
 */
function nameOperation(method: string, path: string, hasMethods: boolean): string {
  const [place = '', ...words] = path
    .replace('/auth/token/app/', '/')
    .replace('/register/token', '/token/register')
    .slice(1)
    .split('/')
  const version = /^v\d$/.test(words[0] ?? '') ? (words.shift() ?? '') : ''
  const last = words.pop() ?? ''
  const isVerb = !NOUNS.includes(last)
  const named = [
    isVerb ? last : 'read',
    ...words,
    ...(isVerb ? [] : [last]),
    hasMethods ? `by-${method}` : '',
    version,
    place === 'api' ? 'on-phone' : '',
  ]
  return named
    .flatMap((word) => word.split('-'))
    .filter((word) => word !== '')
    .map((word, i) => (i === 0 ? word : `${word.slice(0, 1).toUpperCase()}${word.slice(1).toLowerCase()}`))
    .join('')
}

// Endpoints whose names are nouns. They read the thing that they name.
const NOUNS = ['status', 'detail', 'history', 'info', 'application', 'activation', 'count']

function generationsOf({ protocols }: DeviceDescription, { body }: FlowFacts): readonly Protocol['path'][] {
  return body.kind === 'envelope' && body.isOfLast ? protocols.slice(-1) : protocols
}

const isSealed = ({ body }: FlowFacts): boolean => body.kind === 'envelope' || body.kind === 'nested'

function describeBody({ body }: FlowFacts, generations: readonly Protocol['path'][]): Operation['body'] {
  if (body.kind === 'none') return undefined
  if (body.kind === 'bytes') return { schema: ANY_BYTES, isRequired: false, mediaType: '*/*' }
  if (body.kind === 'json') return { schema: body.schema, isRequired: true }
  const plaintext = body.kind === 'envelope' ? body.plaintext : describeNested(generations, body.outer, body.inner)
  return { schema: describeEnvelope('request', generations, plaintext), isRequired: true }
}

/** The headers of a flow in either spelling. A request uses one spelling. */
const listSecurity = ({ headers }: FlowFacts): readonly SecurityScheme[][] =>
  headers.length === 0 ? [] : [headers.map((name) => `powerAuth${name}` as const), headers.map((name) => `svc${name}` as const)]

/** Refusals of every endpoint: for a source that has used up its failures, and for failures of pawl. */
const ANY_ENDPOINT = ['TOO_MANY_REQUESTS', 'UNAVAILABLE', 'INTERNAL'] as const
const ANY_BYTES = Type.Unknown({ description: 'any bytes; the code covers them as they are', examples: [{}] })

type Generation = Protocol['path']

/** The envelope of each generation, around a plaintext. */
const describeEnvelope = (of: 'request' | 'response', generations: readonly Generation[], plaintext: TSchema): TSchema =>
  oneOf(generations.map((generation) => withPlaintext(ENVELOPES[generation][of], plaintext)))

/** The outer plaintext whose member `activationData` is an envelope of its own. */
function describeNested(generations: readonly Generation[], outer: TSchema, inner: TSchema): TSchema {
  const activationData = describeEnvelope('request', generations.slice(0, 1), inner)
  return Type.Object({ ...(outer['properties'] as Record<string, TSchema>), activationData })
}

const oneOf = (schemas: TSchema[]): TSchema => {
  const [first, ...others] = schemas
  return first !== undefined && others.length === 0 ? first : Type.Union(schemas)
}

/** An envelope, with the schema of its plaintext as its content. */
function withPlaintext(envelope: TSchema, plaintext: TSchema): TSchema {
  const { encryptedData, ...others } = envelope['properties'] as Record<string, TSchema>
  const opened = { contentMediaType: 'application/json', contentSchema: plaintext }
  return Type.Object({ encryptedData: { ...encryptedData, ...opened } as TSchema, ...others })
}

const Bytes = (description: string) =>
  Type.String({ contentEncoding: 'base64', description: `Base64, ${description}`, examples: ['AAECAwQFBgcICQoLDA0ODw=='] })
const Timestamp = Type.Integer({ description: 'milliseconds since 1970-01-01 UTC' })

const KeyId = Type.String({ description: 'key of keystore/create', examples: ['5a9e1a2b-6f4d-4c1e-9b0a-3d2c1b0a9f8e'] })

/** A version of v3 sends exactly the members that it defines (v3 §6.5); v4 has one form (v4 §5.1). */
const ENVELOPES: Record<Generation, { readonly request: TSchema; readonly response: TSchema }> = {
  v3: {
    request: Type.Object({
      ephemeralPublicKey: Bytes('point of P-256'),
      encryptedData: Bytes('ciphertext'),
      mac: Bytes('32 bytes'),
      nonce: Type.Optional(Bytes('16 bytes, from 3.1')),
      timestamp: Type.Optional({ ...Timestamp, description: `${Timestamp.description}, from 3.2` }),
      temporaryKeyId: Type.Optional({ ...KeyId, description: `${KeyId.description}, from 3.3` }),
    }),
    response: Type.Object({
      encryptedData: Bytes('ciphertext'),
      mac: Bytes('32 bytes'),
      nonce: Type.Optional(Bytes('16 bytes, from 3.2')),
      timestamp: Type.Optional({ ...Timestamp, description: `${Timestamp.description}, from 3.2` }),
    }),
  },
  v4: {
    request: Type.Object({
      temporaryKeyId: KeyId,
      encryptedData: Bytes('nonce of 12 bytes, tag of 32 bytes, ciphertext'),
      nonce: Bytes('24 bytes: nonces of request and answer'),
      timestamp: Timestamp,
    }),
    response: Type.Object({
      encryptedData: Bytes('nonce of 12 bytes, tag of 32 bytes, ciphertext'),
      timestamp: Timestamp,
    }),
  },
}
