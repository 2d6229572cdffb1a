// Signed (v3 §5.4, order "S"), then read: the code covers the body as it came; the JSON is looked at after the code.
import type { Static, TSchema } from '@sinclair/typebox'
import { compileParser } from '../../http/validation.ts'
import { inStage } from '../../lib/trace.ts'
import type { Factors } from '../../protocol/protocol.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { Declaration, Endpoint } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { checkFactors, readAuthorization } from '../stages/authorization.ts'
import { coveredBodies } from '../stages/attempt.ts'
import { authenticate } from '../stages/code.ts'
import { parseBody } from '../stages/parse.ts'
import { type Client, receive } from '../stages/receive.ts'
import { describeCode } from './facts.ts'

export interface SignedParsedCall<Request> {
  /** The body, parsed and validated. */
  readonly request: Request
  /** The activation as the code left it. */
  readonly activation: ActivationRow
  readonly client: Client
}

interface SignedParsedDeclaration<Q extends TSchema, R extends TSchema, Parts> extends Declaration<R> {
  readonly authenticate: { readonly resourceId: string; readonly factors: readonly Factors[] }
  /** Schema of the JSON body. */
  readonly request: Q
  readonly handle: (call: SignedParsedCall<Static<Q>>, parts: Parts) => Promise<Static<R>>
}

/** Declares an endpoint for phones with a right code over a JSON body. */
export function signedParsedEndpoint<Q extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: SignedParsedDeclaration<Q, R, Parts>,
): Endpoint<Parts> {
  const { resourceId, factors } = declared.authenticate
  return {
    ...declared,
    flow: {
      refuses: ['AUTHENTICATION_CODE_INVALID', 'REQUEST_INVALID'],
      headers: ['Authorization'],
      checks: [describeCode({ resourceId, factors }, 'the body as sent')],
      body: { kind: 'json', schema: declared.request },
      covered: { by: 'code' },
    },
    prepare(parts, protocols) {
      const parse = compileParser(declared.request)
      return async (request, serialize) => {
        const received = receive(protocols, request, RECEIVE)
        const header = readAuthorization(received, CODES)
        checkFactors(header, factors, 'AUTHENTICATION_CODE_INVALID')
        const covered = { bodies: coveredBodies(received), audited: 'AS_SENT' } as const
        const { activation } = await authenticate(parts, received, { header, resourceId, ...covered })
        const input = parseBody(parse, request.body, 'REQUEST_INVALID')
        const { client } = received
        return serialize(await inStage('handle', () => declared.handle({ request: input, activation, client }, parts)))
      }
    },
  }
}

const CODES = { headerMissing: 'AUTHENTICATION_CODE_INVALID', headerMalformed: 'AUTHENTICATION_CODE_INVALID' } as const
const RECEIVE = { isJson: true, contradiction: 'AUTHENTICATION_CODE_INVALID' } as const
