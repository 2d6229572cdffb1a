// Serves requests with a code by the keys of a pending upgrade (upgrade/confirm: v4 §10.3). The code covers any body. The handler decides in the
// transaction of the code.
import { Ok } from '../../http/types.ts'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { Tx } from '../../storage/database/database.ts'
import type { Authenticated, Declaration, Endpoint } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { checkFactors, readAuthorization } from '../stages/receive.ts'
import { authenticateWithin } from '../stages/code.ts'
import { composeEndpoint, describeCode } from './compose.ts'

interface SignedByUpgradeCall {
  /** The transaction that stores the outcome of the code. */
  readonly tx: Tx
  /** The activation as it is after the upgrade and after the code. */
  readonly activation: ActivationRow
}

interface SignedByUpgradeDeclaration<Parts> extends Omit<Declaration, 'response'>, Authenticated {
  /** The error code for missing and malformed headers. */
  readonly refusal: ErrorCode
  /** Called for a right code. Returns the error of a refusal, which is answered after the commit, or undefined for success. */
  readonly handle: (call: SignedByUpgradeCall, parts: Parts) => Promise<ErrorCode | undefined>
}

/** Declares an endpoint for phones with the keys of a pending upgrade. The answer is `{ "status": "OK" }`. */
export function signedByUpgradeEndpoint<Parts extends ChannelParts>(
  declared: SignedByUpgradeDeclaration<Parts>,
): Endpoint<Parts> {
  const { authenticate: code, refusal: headers } = declared
  const endpoint = { ...declared, response: Ok }
  return composeEndpoint(endpoint, {
    refusals: { headers, code: 'AUTHENTICATION_CODE_INVALID' },
    headers: ['Authorization'],
    checks: [describeCode(code, 'the body as sent')],
    body: { kind: 'bytes' },
    covered: { by: 'code' },
    async serve(received, { parts, refusals, handle, serialize }) {
      const header = readAuthorization(received, refusals.headers)
      checkFactors(header, code.factors, refusals.code)
      const bodies = received.protocol.coveredBodies(received.request)
      const attempt = { header, resourceId: code.resourceId, bodies, audited: 'AS_SENT', goodFor: 'UPGRADING' } as const
      const { verdict, result: refusal } = await authenticateWithin(parts, received, attempt, async (tx, stored) =>
        stored.verdict.isRight ? handle({ tx, activation: stored.verdict.activation }) : undefined,
      )
      if (!verdict.isRight) throw new PawlError(refusals.code, { detail: verdict.reason })
      if (refusal !== undefined) throw new PawlError(refusal, { detail: 'the code was right, what it asks for was refused' })
      return serialize({ status: 'OK' })
    },
  })
}
