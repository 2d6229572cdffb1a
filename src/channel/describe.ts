// What the description of the APIs says of the phone's endpoints: what their flows say of themselves.
import { Type } from '@sinclair/typebox'
import { describeErrors, type ErrorDescription, type Operation, type SecurityScheme } from '../http/operation.ts'
import type { Protocol } from '../protocol/protocol.ts'
import { describeNested, describeRequestEnvelope, describeResponseEnvelope } from './describe-envelope.ts'
import type { Endpoint, FlowFacts } from './endpoint.ts'
import { methodsOf, urlsOf } from './mount.ts'

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
export const describeDeviceEndpoints = <Parts>(api: DeviceDescription, endpoints: readonly Endpoint<Parts>[]): Operation[] =>
  endpoints.flatMap((endpoint) =>
    urlsOf(api.prefix, endpoint).flatMap((url) =>
      methodsOf(endpoint).map((method) => describeEndpoint(api, endpoint, method, `${api.place}${url}`)),
    ),
  )

function describeEndpoint<Parts>(api: DeviceDescription, endpoint: Endpoint<Parts>, method: string, path: string): Operation {
  const { summary, description, flow, response, errors } = endpoint
  const generations = generationsOf(api, flow)
  return {
    method,
    path,
    tag: api.tag,
    summary,
    description: [description ?? [], flow.checks].flat().join('\n\n'),
    security: listSecurity(flow),
    // A body of a GET request is covered by codes of 4.0 only; nobody should send one.
    body: method === 'GET' ? undefined : describeBody(flow, generations),
    answers: [
      { status: 200, description: 'done', schema: isSealed(flow) ? describeResponseEnvelope(generations, response) : response },
      ...describeErrors(api.errors, [...ANY_ENDPOINT, ...flow.refuses, ...errors]),
    ],
  }
}

function generationsOf({ protocols }: DeviceDescription, { body }: FlowFacts): readonly Protocol['path'][] {
  return body.kind === 'envelope' && body.isOfLast ? protocols.slice(-1) : protocols
}

const isSealed = ({ body }: FlowFacts): boolean => body.kind === 'envelope' || body.kind === 'nested'

function describeBody({ body }: FlowFacts, generations: readonly Protocol['path'][]): Operation['body'] {
  if (body.kind === 'none') return undefined
  if (body.kind === 'bytes') return { schema: ANY_BYTES, isRequired: false, mediaType: '*/*' }
  if (body.kind === 'json') return { schema: body.schema, isRequired: true }
  const plaintext = body.kind === 'envelope' ? body.plaintext : describeNested(generations, body.outer, body.inner)
  return { schema: describeRequestEnvelope(generations, plaintext), isRequired: true }
}

/** Either spelling of the headers, never both. */
const listSecurity = ({ headers }: FlowFacts): readonly SecurityScheme[][] =>
  headers.length === 0 ? [] : [headers.map((name) => `powerAuth${name}` as const), headers.map((name) => `svc${name}` as const)]

/** A source without failures left, a failure of ours. */
const ANY_ENDPOINT = ['TOO_MANY_REQUESTS', 'UNAVAILABLE', 'INTERNAL'] as const
const ANY_BYTES = Type.Unknown({ description: 'any bytes; the code covers them as they are', examples: [{}] })
