// What the description of the APIs says of the phone's endpoints: derived from what the pipeline does with their declarations.
import { type TSchema, Type } from '@sinclair/typebox'
import {
  describeErrors,
  type ErrorDescription,
  listCallersFaults,
  type Operation,
  type SecurityScheme,
} from '../http/operation.ts'
import type { ErrorCode } from '../lib/errors.ts'
import type { Protocol } from '../protocol/protocol.ts'
import { type AnyEndpoint, defaultRefusals } from './endpoint.ts'
import { methodsOf, urlsOf } from './mount.ts'
import type { ChannelParts } from './parts.ts'

export interface DeviceDescription {
  /** Where the API is mounted, and the prefix of its endpoints there. */
  readonly place: string
  readonly prefix: string
  /** Whose envelopes are described. */
  readonly protocols: readonly Protocol['path'][]
  readonly tag: string
  readonly errors: ErrorDescription
}

/** One operation for each method and path of the endpoints. */
export const describeDeviceEndpoints = <P extends ChannelParts>(
  api: DeviceDescription,
  endpoints: readonly AnyEndpoint<P>[],
): Operation[] =>
  endpoints.flatMap((endpoint) =>
    urlsOf(api.prefix, endpoint).flatMap((url) =>
      methodsOf(endpoint).map((method) => describeEndpoint(api, endpoint, method, `${api.place}${url}`)),
    ),
  )

function describeEndpoint<P extends ChannelParts>(
  { tag, errors, protocols }: DeviceDescription,
  endpoint: AnyEndpoint<P>,
  method: string,
  path: string,
): Operation {
  const { encrypt, summary = `${method} ${path}` } = endpoint
  const response = endpoint.response as TSchema
  const generations = encrypt?.hasOwnHeader === true ? protocols.slice(1) : protocols
  const requests = generations.map((protocol) => ENVELOPES[protocol].request)
  const responses = generations.map((protocol) => ENVELOPES[protocol].response)
  return {
    method,
    path,
    tag,
    summary,
    description: describeChecks(endpoint),
    security: listSecurity(endpoint),
    // A body of a GET request is covered by codes of 4.0 only; nobody should send one.
    body: method === 'GET' ? undefined : describeBody(endpoint, requests),
    answers: [
      { status: 200, description: 'done', schema: encrypt ? describeEnvelopes(responses, response) : response },
      ...describeErrors(errors, listCodes(endpoint, errors)),
    ],
  }
}

function describeBody<P extends ChannelParts>(endpoint: AnyEndpoint<P>, envelopes: readonly TSchema[]): Operation['body'] {
  const { encrypt, order, nested } = endpoint
  const request = endpoint.request as TSchema | undefined
  if (encrypt) {
    const [envelope = Type.Object({})] = envelopes
    const plaintext = nested === undefined ? request : showNested(request ?? Type.Object({}), nested.request, envelope)
    return { schema: describeEnvelopes(envelopes, plaintext ?? Type.Unknown()), isRequired: true }
  }
  if (request && order.includes('validate')) return { schema: request, isRequired: true }
  if (!endpoint.authenticate) return undefined
  const schema = Type.Unknown({ description: 'any bytes; the code covers them as they are', examples: [{}] })
  return { schema, isRequired: false, mediaType: '*/*' }
}

/** The envelopes of one generation, or of each. */
function describeEnvelopes(envelopes: readonly TSchema[], plaintext: TSchema): TSchema {
  const [first, ...others] = envelopes.map((envelope) => withPlaintext(envelope, plaintext))
  return first !== undefined && others.length === 0 ? first : Type.Union([...(first ? [first] : []), ...others])
}

/** An envelope and, as its content, what it decrypts to. */
const withPlaintext = (envelope: TSchema, plaintext: TSchema): TSchema => {
  const { encryptedData, ...others } = envelope['properties'] as Record<string, TSchema>
  const opened = { contentMediaType: 'application/json', contentSchema: plaintext }
  return Type.Object({ encryptedData: { ...encryptedData, ...opened } as TSchema, ...others })
}

/** The member of the outer plaintext that is an envelope of its own. */
const showNested = (outer: TSchema, inner: TSchema, envelope: TSchema): TSchema =>
  Type.Object({ ...(outer['properties'] as Record<string, TSchema>), activationData: withPlaintext(envelope, inner) })

/** Either spelling of the headers, never both. */
function listSecurity<P extends ChannelParts>({ authenticate, token, encrypt }: AnyEndpoint<P>): readonly SecurityScheme[][] {
  if (authenticate && encrypt?.hasOwnHeader === true)
    return [
      ['powerAuthAuthorization', 'powerAuthEncryption'],
      ['svcAuthorization', 'svcEncryption'],
    ]
  if (authenticate) return [['powerAuthAuthorization'], ['svcAuthorization']]
  if (token && encrypt)
    return [
      ['powerAuthToken', 'powerAuthEncryption'],
      ['svcToken', 'svcEncryption'],
    ]
  if (token) return [['powerAuthToken'], ['svcToken']]
  return encrypt ? [['powerAuthEncryption'], ['svcEncryption']] : []
}

function describeChecks<P extends ChannelParts>({ description, authenticate, token, encrypt }: AnyEndpoint<P>): string {
  const factors = authenticate?.factors ?? token?.factors
  const names = typeof factors === 'function' ? 'by setting' : factors?.join(', ')
  const covered = authenticate?.covers === 'plaintext' ? 'the decrypted body' : 'the body as sent'
  return [
    description,
    authenticate && `Authentication code over resource id \`${authenticate.resourceId}\` and ${covered}. Factors: ${names}.`,
    token && `Token made with factors: ${names}.`,
    encrypt &&
      `Encrypted in ${encrypt.scope === 'ACTIVATION_SCOPE' ? 'activation' : 'application'} scope, label \`${encrypt.sharedInfo1}\`.`,
  ]
    .filter((text) => text !== undefined)
    .join('\n\n')
}

/** What the pipeline refuses in the endpoint's order, and what the endpoint itself throws. */
function listCodes<P extends ChannelParts>(endpoint: AnyEndpoint<P>, api: ErrorDescription): ErrorCode[] {
  const { authenticate, token, encrypt, order, errors } = endpoint
  const refusals = { ...defaultRefusals, ...endpoint.refusals }
  const isSigned = authenticate !== undefined || token !== undefined
  // A source without failures left, and a body over the limit, before anything else.
  const codes: ErrorCode[] = [
    'TOO_MANY_REQUESTS',
    'REQUEST_INVALID',
    'UNAVAILABLE',
    'INTERNAL',
    ...(errors ?? listCallersFaults(api)),
  ]
  if (isSigned) codes.push('AUTHENTICATION_CODE_INVALID', refusals.headerMissing, refusals.headerMalformed)
  else if (encrypt) codes.push('ENCRYPTION_FAILED')
  if (order.includes('factors')) codes.push(refusals.factors)
  if (order.includes('envelope')) codes.push(refusals.envelope, ...(authenticate ? [] : ['ENCRYPTION_FAILED' as const]))
  if (order.includes('open')) codes.push(refusals.open)
  if (order.includes('open-nested')) codes.push(refusals.plaintext, refusals.nested)
  if (order.includes('validate')) codes.push(refusals.request, ...(encrypt ? [refusals.plaintext] : []))
  return codes
}

const Bytes = (description: string) =>
  Type.String({ contentEncoding: 'base64', description: `Base64, ${description}`, examples: ['AAECAwQFBgcICQoLDA0ODw=='] })
const Timestamp = Type.Integer({ description: 'milliseconds since 1970-01-01 UTC' })

const KeyId = Type.String({ description: 'key of keystore/create', examples: ['5a9e1a2b-6f4d-4c1e-9b0a-3d2c1b0a9f8e'] })

/** A version of v3 sends exactly the members it defines (v3 §6.5); v4 has one form (v4 §5.1). */
const ENVELOPES: Record<Protocol['path'], { readonly request: TSchema; readonly response: TSchema }> = {
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
