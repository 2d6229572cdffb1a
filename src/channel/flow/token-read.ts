// Serves requests with a token at endpoints that only read (v3 §11.3). One statement reads the token and the data. Nothing is written, so a phone may
// repeat the header within its window.
import type { Static, TSchema } from '@sinclair/typebox'
import { PawlError } from '../../lib/errors.ts'
import { FACTOR_COMBINATIONS } from '../../protocol/protocol.ts'
import type { OwnedActivation } from '../../storage/activation/find.ts'
import type { TokenNames, TokenRead } from '../../storage/token/reads.ts'
import type { Answered, Endpoint, Parsed } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { parseBody, refusalOr } from '../stages/parse.ts'
import type { Client } from '../stages/receive.ts'
import { acceptToken, readToken } from '../stages/token.ts'
import { composeEndpoint, describeToken, jsonOr } from './compose.ts'

/** The call of a handler. `found` has the data that were read with the token. */
interface TokenReadCall<Request, Found> {
  readonly request: Request
  readonly bearer: OwnedActivation
  readonly client: Client
  readonly found: Found
}

/** The declaration. Without a schema of the request, any body is accepted and not read. */
interface TokenReadDeclaration<Q extends TSchema, R extends TSchema, Found, Parts>
  extends Answered<R, TokenReadCall<Static<Q>, Found>, Parts>,
    Partial<Parsed<Q>> {
  /** Reads a token and the data of the answer. `request` is undefined if the body will be refused; the refusal comes after the check of the token. */
  readonly read: (names: TokenNames, parts: Parts, request: Static<Q> | undefined) => Promise<TokenRead<Found>>
}

/** Declares an endpoint that only reads, for phones with a token of any factors. */
export function tokenReadEndpoint<R extends TSchema, Found, Parts extends ChannelParts, Q extends TSchema = TSchema>(
  declared: TokenReadDeclaration<Q, R, Found, Parts>,
): Endpoint<Parts> {
  const { request: schema, path } = declared
  const terms = { resourceId: `/${path}`, factors: FACTOR_COMBINATIONS, isRepeatable: true }
  return composeEndpoint(declared, {
    refusals: { headers: 'AUTHENTICATION_CODE_INVALID' },
    headers: ['Token'],
    checks: [describeToken(terms.factors)],
    body: jsonOr('none', schema),
    async serve(received, { parts, refusals, parse, handle, serialize }) {
      const header = readToken(received)
      const request = header && refusalOr(() => schema && parseBody(parse, received.request.body))
      const names = header && { tokenId: header.tokenId, at: new Date(parts.platform.now()) }
      const read = names && (await declared.read(names, parts, request instanceof PawlError ? undefined : request))
      const token = read && { token: read.token, isTokenUsed: false }
      const { bearer } = await acceptToken(parts, received, terms, refusals.headers, token)
      if (read === undefined) throw new TypeError('a token was accepted that was not read')
      if (request instanceof PawlError) throw request
      return serialize(await handle({ request, bearer, client: received.client, found: read.found }))
    },
  })
}
