// Signed (v3 §5.4, order "S"): the code covers the body as it came, whatever it is. The body is not read.
import type { TSchema } from '@sinclair/typebox'
import type { ErrorCode } from '../../lib/errors.ts'
import type { Factors } from '../../protocol/protocol.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { Answered, Endpoint } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { coveredBodies } from '../stages/attempt.ts'
import { checkFactors, readAuthorization } from '../stages/authorization.ts'
import { authenticate } from '../stages/code.ts'
import { composeEndpoint } from './compose.ts'
import { describeCode } from './facts.ts'

interface SignedDeclaration<R extends TSchema, Parts> extends Answered<R, { readonly activation: ActivationRow }, Parts> {
  readonly authenticate: {
    readonly resourceId: string
    /** What the code may be made with; a function where a setting decides. */
    readonly factors: readonly Factors[] | ((parts: Parts) => readonly Factors[])
  }
  /** How a request without authorization header is refused; AUTHENTICATION_CODE_INVALID when absent. */
  readonly headerMissing?: ErrorCode
}

/** Declares an endpoint for phones with a right code. `activation`: as the code left it. */
export function signedEndpoint<R extends TSchema, Parts extends ChannelParts>(
  declared: SignedDeclaration<R, Parts>,
): Endpoint<Parts> {
  const {
    authenticate: { resourceId, factors },
    headerMissing,
  } = declared
  const fixedFactors = typeof factors === 'function' ? undefined : factors
  return composeEndpoint(declared, {
    refusals: { headers: 'AUTHENTICATION_CODE_INVALID', ...(headerMissing && { headerMissing }) },
    headers: ['Authorization'],
    checks: [describeCode({ resourceId, factors: fixedFactors }, 'the body as sent')],
    body: { kind: 'bytes' },
    covered: { by: 'code' },
    async serve(received, { parts, refusals, handle, serialize }) {
      const header = readAuthorization(received, refusals.headers, headerMissing)
      checkFactors(header, typeof factors === 'function' ? factors(parts) : factors, refusals.headers)
      const covered = { bodies: coveredBodies(received), audited: 'AS_SENT' } as const
      const { activation } = await authenticate(parts, received, { header, resourceId, ...covered })
      return serialize(await handle({ activation }))
    },
  })
}
