// A token in place of a code (v3 §11.3) for what only reads: the token and what it is to show are read in one statement. The header may come
// again within its window, nothing is written.
import type { Static, TSchema } from '@sinclair/typebox'
import { compileParser } from '../../http/validation.ts'
import { inStage } from '../../lib/trace.ts'
import { FACTOR_COMBINATIONS } from '../../protocol/protocol.ts'
import type { TokenNames, TokenRead } from '../../storage/token/reads.ts'
import type { Declaration, Endpoint } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { parseBody, unlessRefused } from '../stages/parse.ts'
import { type Client, receive } from '../stages/receive.ts'
import { acceptToken, readToken, type TokenBearer } from '../stages/token.ts'
import { describeToken } from './facts.ts'

export interface TokenReadCall<Request, Found> {
  /** The body, parsed and validated. */
  readonly request: Request
  readonly bearer: TokenBearer
  readonly client: Client
  /** What was read with the token. */
  readonly found: Found
}

interface TokenReadDeclaration<Q extends TSchema, R extends TSchema, Found, Parts> extends Declaration<R> {
  /** Schema of the JSON body. Without it any body is taken, and nothing of it is read. */
  readonly request?: Q
  /** Reads a token and what it is to show. `request` is undefined where the body is refused: the token is judged before that. */
  readonly read: (names: TokenNames, parts: Parts, request: Static<Q> | undefined) => Promise<TokenRead<Found>>
  readonly handle: (call: TokenReadCall<Static<Q>, Found>, parts: Parts) => Promise<Static<R>>
}

/** Declares an endpoint that only reads, for phones with a token of any factors. */
export function tokenReadEndpoint<R extends TSchema, Found, Parts extends ChannelParts, Q extends TSchema = TSchema>(
  declared: TokenReadDeclaration<Q, R, Found, Parts>,
): Endpoint<Parts> {
  const terms = { resourceId: `/${declared.path}`, factors: FACTOR_COMBINATIONS, isRepeatable: true }
  const { request: schema } = declared
  const received = { isJson: schema !== undefined, contradiction: REFUSAL } as const
  return {
    ...declared,
    flow: {
      refuses: ['AUTHENTICATION_CODE_INVALID', 'REQUEST_INVALID'],
      headers: ['Token'],
      checks: [describeToken(terms.factors)],
      body: schema === undefined ? { kind: 'none' } : { kind: 'json', schema },
    },
    prepare(parts, protocols) {
      const parse = schema && compileParser(schema)
      return async (request, serialize) => {
        const call = receive(protocols, request, received)
        const readBody = () => (parse ? parseBody(parse, request.body, 'REQUEST_INVALID') : undefined)
        const header = readToken(call)
        const names = header && { tokenId: header.tokenId, at: new Date(parts.platform.now()) }
        const read = names && (await declared.read(names, parts, unlessRefused(readBody)))
        const token = read && { token: read.token, isTokenUsed: false }
        const { bearer } = await acceptToken(parts, call, terms, REFUSAL, token)
        if (read === undefined) throw new TypeError('a token was accepted that was not read')
        const { client } = call
        return serialize(
          await inStage('handle', () => declared.handle({ request: readBody(), bearer, client, found: read.found }, parts)),
        )
      }
    },
  }
}

const REFUSAL = 'AUTHENTICATION_CODE_INVALID' as const
