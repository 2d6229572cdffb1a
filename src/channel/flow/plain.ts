// Neither signed nor encrypted (v3 §5.4, order "-").
import type { Static, TSchema } from '@sinclair/typebox'
import { compileParser } from '../../http/validation.ts'
import { inStage } from '../../lib/trace.ts'
import type { Dialect } from '../headers.ts'
import type { Declaration, Endpoint } from '../endpoint.ts'
import { parseBody } from '../stages/parse.ts'
import { type Client, receive } from '../stages/receive.ts'

export interface PlainCall<Request> {
  /** The body, parsed and validated. */
  readonly request: Request
  readonly client: Client
  readonly dialect: Dialect
}

interface PlainDeclaration<Q extends TSchema, R extends TSchema, Parts> extends Declaration<R> {
  /** Schema of the JSON body. */
  readonly request: Q
  readonly handle: (call: PlainCall<Static<Q>>, parts: Parts) => Promise<Static<R>>
}

/** Declares an endpoint that anybody may call; what its JSON body says is checked by its handler. */
export function plainEndpoint<Q extends TSchema, R extends TSchema, Parts>(
  declared: PlainDeclaration<Q, R, Parts>,
): Endpoint<Parts> {
  return {
    ...declared,
    flow: { refuses: ['REQUEST_INVALID'], headers: [], checks: [], body: { kind: 'json', schema: declared.request } },
    prepare(parts, protocols) {
      const parse = compileParser(declared.request)
      return async (request, serialize) => {
        const { client, dialect } = receive(protocols, request, TERMS)
        const input = parseBody(parse, request.body, 'REQUEST_INVALID')
        return serialize(await inStage('handle', () => declared.handle({ request: input, client, dialect }, parts)))
      }
    },
  }
}

const TERMS = { isJson: true, contradiction: undefined }
