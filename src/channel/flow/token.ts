// Serves requests with a token in place of a code, which are frequent and of low risk (v3 §11.3). The JSON body is read after the token was checked.
import type { Static, TSchema } from '@sinclair/typebox'
import { FACTOR_COMBINATIONS } from '../../protocol/protocol.ts'
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
  /** Whether a phone may repeat the header within its window. Nothing is then written. */
  readonly isRepeatable: boolean
}

/** Declares an endpoint for phones with a token of any factors. */
export function tokenEndpoint<Q extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: TokenDeclaration<Q, R, Parts>,
): Endpoint<Parts> {
  const { path, isRepeatable } = declared
  const terms = { resourceId: `/${path}`, factors: FACTOR_COMBINATIONS, isRepeatable }
  return composeEndpoint(declared, {
    refusals: { headers: 'AUTHENTICATION_CODE_INVALID' },
    headers: ['Token'],
    checks: [describeToken(terms.factors)],
    body: { kind: 'json', schema: declared.request },
    async serve(received, { parts, refusals, parse, handle, serialize }) {
      const { bearer, uniqueValues } = await acceptToken(parts, received, terms, refusals.headers)
      const request = parseBody(parse, received.request.body)
      await useUp(parts, uniqueValues, refusals.headers)
      return serialize(await handle({ request, bearer, client: received.client }))
    },
  })
}
