// Serves requests with a code over any body as sent (v3 §5.4, order "S"). JSON in the body is read after the code was checked.
import type { Static, TSchema } from '@sinclair/typebox'
import type { ErrorCode } from '../../lib/errors.ts'
import type { Factors } from '../../protocol/protocol.ts'
import type { Answered, Endpoint, Parsed, SignedCall } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { authenticate } from '../stages/code.ts'
import { parseBody } from '../stages/parse.ts'
import { checkFactors, type Client, readAuthorization } from '../stages/receive.ts'
import { composeEndpoint, describeCode, jsonOr } from './compose.ts'

/** The call of a handler. `request` is undefined when no schema is declared. */
interface SignedBodyCall<Request> extends SignedCall<Request> {
  readonly client: Client
}

interface SignedDeclaration<Q extends TSchema, R extends TSchema, Parts>
  extends Answered<R, SignedBodyCall<Static<Q>>, Parts>,
    Partial<Parsed<Q>> {
  /** `factors` is a function when a setting of the application decides. */
  readonly authenticate: {
    readonly resourceId: string
    readonly factors: readonly Factors[] | ((parts: Parts) => readonly Factors[])
  }
  /** The error code for a request without authorization header; AUTHENTICATION_CODE_INVALID when absent. */
  readonly headerMissing?: ErrorCode
}

/** Declares an endpoint for phones with a right code. */
export function signedEndpoint<R extends TSchema, Parts extends ChannelParts, Q extends TSchema = TSchema>(
  declared: SignedDeclaration<Q, R, Parts>,
): Endpoint<Parts> {
  const { request: schema, authenticate: code, headerMissing } = declared
  const { resourceId, factors } = code
  return composeEndpoint(declared, {
    refusals: { headers: 'AUTHENTICATION_CODE_INVALID', ...(headerMissing && { headerMissing }) },
    headers: ['Authorization'],
    checks: [describeCode(code, 'the body as sent')],
    body: jsonOr('bytes', schema),
    covered: { by: 'code' },
    async serve(received, { parts, refusals, parse, handle, serialize }) {
      const header = readAuthorization(received, refusals.headers, headerMissing)
      checkFactors(header, typeof factors === 'function' ? factors(parts) : factors, refusals.headers)
      const bodies = received.protocol.coveredBodies(received.request)
      const attempt = { header, resourceId, bodies, audited: 'AS_SENT' } as const
      const { activation } = await authenticate(parts, received, attempt)
      const request = schema && parseBody(parse, received.request.body)
      return serialize(await handle({ request, activation, client: received.client }))
    },
  })
}
