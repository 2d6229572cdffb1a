// Makes an endpoint of its declaration and its flow, and composes the facts about it for the description of the APIs.
import { type TSchema, Type } from '@sinclair/typebox'
import { compileParser, type Parser } from '../../http/validation.ts'
import type { ErrorCode } from '../../lib/errors.ts'
import { inStage } from '../../lib/trace.ts'
import type { Factors, Protocol } from '../../protocol/protocol.ts'
import type { BodyFacts, Declaration, Endpoint, FlowFacts, Parsed } from '../endpoint.ts'
import type { EnvelopePlace } from '../stages/envelope.ts'
import { type Received, receive } from '../stages/receive.ts'

/** The error codes of a flow's refusals. `headers` is also that of headers that contradict each other; absent when the flow reads none. */
type Refusals = { readonly headers?: ErrorCode } & Readonly<Record<string, ErrorCode>>

interface Flow<Context, Codes extends Refusals> extends Omit<FlowFacts, 'refuses'> {
  readonly refusals: Codes
  /** Runs the stages after the headers were received, in their order, and returns the JSON text of the answer. */
  readonly serve: (received: Received, context: Context) => Promise<string>
}

/** The parts that the stages get in addition to the request. */
interface Context<Q extends TSchema, Call, Result, Parts, Codes> {
  readonly parts: Parts
  /** All generations that serve the endpoint. */
  readonly protocols: readonly Protocol[]
  readonly refusals: Codes
  /** The parser of the declared schema. */
  readonly parse: Parser<Q>
  readonly handle: (call: Call) => Promise<Result>
  /** Writes JSON by the schema of the answer. */
  readonly serialize: (answer: unknown) => string
}

interface Composed<Q extends TSchema, Call, Result, Parts> extends Declaration, Partial<Parsed<Q>> {
  readonly handle: (call: Call, parts: Parts) => Promise<Result>
}

/** Makes an endpoint that receives a request and serves it by its flow. If the body is JSON, another content type is refused. */
export function composeEndpoint<Q extends TSchema, Call, Result, Parts, const Codes extends Refusals>(
  declared: Composed<Q, Call, Result, Parts>,
  { serve, refusals, ...facts }: Flow<Context<Q, Call, Result, Parts, Codes>, Codes>,
): Endpoint<Parts> {
  const { request: schema, path } = declared
  const parse = compileParser(schema ?? Type.Unknown()) as Parser<Q>
  const isJson = facts.body.kind !== 'none' && facts.body.kind !== 'bytes'
  const terms = { isJson, contradiction: refusals.headers }
  // With this name, the stack of every failure has the path of the endpoint.
  Object.defineProperty(serve, 'name', { value: path })
  return {
    ...declared,
    flow: { ...facts, refuses: [...Object.values(refusals), 'REQUEST_INVALID'] },
    prepare(parts, protocols) {
      const handle = (call: Call) => inStage('handle', () => declared.handle(call, parts))
      return async (request, serialize) => {
        const received = receive(protocols, request, terms)
        return await serve(received, { parts, protocols, refusals, parse, handle, serialize })
      }
    },
  }
}

export const describeEncryption = ({ scope, sharedInfo1 }: EnvelopePlace): string =>
  `Encrypted in ${scope === 'ACTIVATION_SCOPE' ? 'activation' : 'application'} scope, label \`${sharedInfo1}\`.`

/** `factors` is a function if they depend on a setting of the application. */
export const describeCode = (
  {
    resourceId,
    factors,
  }: { readonly resourceId: string; readonly factors: readonly Factors[] | ((...given: never[]) => unknown) },
  covered: 'the body as sent' | 'the decrypted body',
): string => {
  const allowed = typeof factors === 'function' ? 'by setting' : factors.join(', ')
  return `Authentication code over resource id \`${resourceId}\` and ${covered}. Factors: ${allowed}.`
}

export const describeToken = (factors: readonly Factors[]): string => `Token made with factors: ${factors.join(', ')}.`

/** A body that is the JSON of a schema. Without a schema the body is not read. */
export const jsonOr = (otherwise: 'none' | 'bytes', schema: TSchema | undefined): BodyFacts =>
  schema === undefined ? { kind: otherwise } : { kind: 'json', schema }
