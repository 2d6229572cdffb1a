// A token in place of a code (v3 §11.3), and nothing else: the body is not read.
import type { Static, TSchema } from '@sinclair/typebox'
import type { Factors } from '../../protocol/protocol.ts'
import type { Declaration, Endpoint } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { useUp } from '../stages/answer.ts'
import { type Client, receive } from '../stages/receive.ts'
import { acceptToken, type TokenBearer } from '../stages/token.ts'
import { describeToken } from './facts.ts'

export interface TokenAloneCall {
  readonly bearer: TokenBearer
  readonly client: Client
}

interface TokenAloneDeclaration<R extends TSchema, Parts> extends Declaration<R> {
  readonly token: {
    /** Factor combinations a token must have been made with. */
    readonly factors: readonly Factors[]
    /** The header may come again within its window, nothing is written. */
    readonly isRepeatable: boolean
  }
  readonly handle: (call: TokenAloneCall, parts: Parts) => Promise<Static<R>>
}

/** Declares an endpoint for phones with a token, with any body. */
export function tokenAloneEndpoint<R extends TSchema, Parts extends ChannelParts>(
  declared: TokenAloneDeclaration<R, Parts>,
): Endpoint<Parts> {
  const terms = { resourceId: `/${declared.path}`, ...declared.token }
  return {
    ...declared,
    flow: {
      refuses: ['AUTHENTICATION_CODE_INVALID', 'REQUEST_INVALID'],
      headers: ['Token'],
      checks: [describeToken(terms.factors)],
      body: { kind: 'none' },
    },
    prepare: (parts, protocols) => async (request, serialize) => {
      const received = receive(protocols, request, RECEIVE)
      const { bearer, uniqueValues } = await acceptToken(parts, received, terms, CODES)
      await useUp(parts, uniqueValues, 'AUTHENTICATION_CODE_INVALID')
      return serialize(await declared.handle({ bearer, client: received.client }, parts))
    },
  }
}

const CODES = { headerMissing: 'AUTHENTICATION_CODE_INVALID', token: 'AUTHENTICATION_CODE_INVALID' } as const
const RECEIVE = { isJson: false, bytesMax: Number.POSITIVE_INFINITY, contradiction: 'AUTHENTICATION_CODE_INVALID' } as const
