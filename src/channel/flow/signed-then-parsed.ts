// Signed (v3 §5.4, order "S"), then read: the code covers the body as it came; the JSON is looked at after the code.
import type { Static, TSchema } from '@sinclair/typebox'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { Answered, Authenticated, Endpoint, Parsed } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { coveredBodies } from '../stages/attempt.ts'
import { checkFactors, readAuthorization } from '../stages/authorization.ts'
import { authenticate } from '../stages/code.ts'
import { parseBody } from '../stages/parse.ts'
import type { Client } from '../stages/receive.ts'
import { composeEndpoint } from './compose.ts'
import { describeCode } from './facts.ts'

/** `activation`: as the code left it. */
interface SignedParsedCall<Request> {
  readonly request: Request
  readonly activation: ActivationRow
  readonly client: Client
}

/** Declares an endpoint for phones with a right code over a JSON body. */
export function signedParsedEndpoint<Q extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: Answered<R, SignedParsedCall<Static<Q>>, Parts> & Parsed<Q> & Authenticated,
): Endpoint<Parts> {
  const { resourceId, factors } = declared.authenticate
  return composeEndpoint(declared, {
    refusals: { headers: 'AUTHENTICATION_CODE_INVALID' },
    headers: ['Authorization'],
    checks: [describeCode(declared.authenticate, 'the body as sent')],
    body: { kind: 'json', schema: declared.request },
    covered: { by: 'code' },
    async serve(received, { parts, refusals, parse, handle, serialize }) {
      const header = readAuthorization(received, refusals.headers)
      checkFactors(header, factors, refusals.headers)
      const covered = { bodies: coveredBodies(received), audited: 'AS_SENT' } as const
      const { activation } = await authenticate(parts, received, { header, resourceId, ...covered })
      const request = parseBody(parse, received.request.body)
      return serialize(await handle({ request, activation, client: received.client }))
    },
  })
}
