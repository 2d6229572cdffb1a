// The flow of a token in place of a code, for frequent requests of low risk (v3 §11.3). The JSON body is read after the token was checked.
import type { Static, TSchema } from '@sinclair/typebox'
import type { Factors } from '../../protocol/protocol.ts'
import type { OwnedActivation } from '../../storage/activation/find.ts'
import type { Answered, Endpoint, Parsed } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { useUp } from '../stages/answer.ts'
import { parseBody } from '../stages/parse.ts'
import type { Client } from '../stages/receive.ts'
import { acceptToken } from '../stages/token.ts'
import { composeEndpoint, describeToken } from './compose.ts'

interface TokenCall<Request> {
  readonly request: Request
  readonly bearer: OwnedActivation
  readonly client: Client
}

interface TokenDeclaration<Q extends TSchema, R extends TSchema, Parts>
  extends Answered<R, TokenCall<Static<Q>>, Parts>,
    Parsed<Q> {
  /**
   * The factors with which the token must have been made. The header of a repeatable request may come again within its window; nothing is
   * written.
   */
  readonly token: { readonly factors: readonly Factors[]; readonly isRepeatable: boolean }
}

/** Declares an endpoint for phones with a token. */
export function tokenEndpoint<Q extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: TokenDeclaration<Q, R, Parts>,
): Endpoint<Parts> {
  const { token, path } = declared
  return composeEndpoint(declared, {
    refusals: { headers: 'AUTHENTICATION_CODE_INVALID' },
    headers: ['Token'],
    checks: [describeToken(token.factors)],
    body: { kind: 'json', schema: declared.request },
    async serve(received, { parts, refusals, parse, handle, serialize }) {
      const { bearer, uniqueValues } = await acceptToken(parts, received, { resourceId: `/${path}`, ...token }, refusals.headers)
      const request = parseBody(parse, received.request.body)
      await useUp(parts, uniqueValues, refusals.headers)
      return serialize(await handle({ request, bearer, client: received.client }))
    },
  })
}
