// A token in place of a code (v3 §11.3): frequent requests of low risk. The body is JSON, read after the token.
import type { Static, TSchema } from '@sinclair/typebox'
import { compileParser } from '../../http/validation.ts'
import { inStage } from '../../lib/trace.ts'
import type { Factors } from '../../protocol/protocol.ts'
import type { Declaration, Endpoint } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { useUp } from '../stages/answer.ts'
import { parseBody } from '../stages/parse.ts'
import { type Client, receive } from '../stages/receive.ts'
import { acceptToken, type TokenBearer } from '../stages/token.ts'
import { describeToken } from './facts.ts'

export interface TokenCall<Request> {
  /** The body, parsed and validated. */
  readonly request: Request
  readonly bearer: TokenBearer
  readonly client: Client
}

interface TokenDeclaration<Q extends TSchema, R extends TSchema, Parts> extends Declaration<R> {
  readonly token: {
    /** Factor combinations a token must have been made with. */
    readonly factors: readonly Factors[]
    /** The header may come again within its window, nothing is written. */
    readonly isRepeatable: boolean
  }
  /** Schema of the JSON body. */
  readonly request: Q
  readonly handle: (call: TokenCall<Static<Q>>, parts: Parts) => Promise<Static<R>>
}

/** Declares an endpoint for phones with a token. */
export function tokenEndpoint<Q extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: TokenDeclaration<Q, R, Parts>,
): Endpoint<Parts> {
  const terms = { resourceId: `/${declared.path}`, ...declared.token }
  return {
    ...declared,
    flow: {
      refuses: ['AUTHENTICATION_CODE_INVALID', 'REQUEST_INVALID'],
      headers: ['Token'],
      checks: [describeToken(terms.factors)],
      body: { kind: 'json', schema: declared.request },
    },
    prepare(parts, protocols) {
      const parse = compileParser(declared.request)
      return async (request, serialize) => {
        const received = receive(protocols, request, RECEIVE)
        const accepted = await acceptToken(parts, received, terms, REFUSAL)
        const input = parseBody(parse, request.body, 'REQUEST_INVALID')
        await useUp(parts, accepted.uniqueValues, 'AUTHENTICATION_CODE_INVALID')
        const { client } = received
        return serialize(
          await inStage('handle', () => declared.handle({ request: input, bearer: accepted.bearer, client }, parts)),
        )
      }
    },
  }
}

const REFUSAL = 'AUTHENTICATION_CODE_INVALID' as const
const RECEIVE = { isJson: true, contradiction: 'AUTHENTICATION_CODE_INVALID' } as const
