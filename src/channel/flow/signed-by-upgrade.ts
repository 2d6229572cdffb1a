// Signed with the keys that a pending upgrade brings (upgrade/confirm: v4 §10.3). Whatever the body is, the code covers it; what the endpoint
// decides is stored in one transaction with the code.
import { Ok } from '../../http/types.ts'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import { inStage } from '../../lib/trace.ts'
import type { Factors } from '../../protocol/protocol.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { Tx } from '../../storage/database/database.ts'
import type { Declaration, Endpoint } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { checkFactors, readAuthorization } from '../stages/authorization.ts'
import { coveredBodies } from '../stages/attempt.ts'
import { authenticateWithin } from '../stages/code.ts'
import { receive } from '../stages/receive.ts'
import { describeCode } from './facts.ts'

export interface SignedByUpgradeCall {
  /** The transaction of the code's check. */
  readonly tx: Tx
  /** The activation as the upgrade makes it, and as the code left it. */
  readonly activation: ActivationRow
}

interface SignedByUpgradeDeclaration<Parts> extends Omit<Declaration, 'response'> {
  readonly authenticate: { readonly resourceId: string; readonly factors: readonly Factors[] }
  /** How missing and malformed headers are refused. */
  readonly refusal: ErrorCode
  /** Called for a right code. Returns how the request is refused, which is told after the commit, or undefined. */
  readonly handle: (call: SignedByUpgradeCall, parts: Parts) => Promise<ErrorCode | undefined>
}

/** Declares an endpoint for phones with the keys of a pending upgrade. The answer is `{ "status": "OK" }`. */
export function signedByUpgradeEndpoint<Parts extends ChannelParts>(
  declared: SignedByUpgradeDeclaration<Parts>,
): Endpoint<Parts> {
  const { refusal: headerRefusal, authenticate: code } = declared
  const { resourceId, factors } = code
  const codes = { headerMissing: headerRefusal, headerMalformed: headerRefusal }
  return {
    ...declared,
    response: Ok,
    flow: {
      refuses: ['AUTHENTICATION_CODE_INVALID', headerRefusal, 'REQUEST_INVALID'],
      headers: ['Authorization'],
      checks: [describeCode(code, 'the body as sent')],
      body: { kind: 'bytes' },
      covered: { by: 'code' },
    },
    prepare: (parts, protocols) => async (request, serialize) => {
      const terms = { isJson: false, contradiction: headerRefusal }
      const received = receive(protocols, request, terms)
      const header = readAuthorization(received, codes)
      checkFactors(header, factors, 'AUTHENTICATION_CODE_INVALID')
      const bodies = coveredBodies(received)
      const attempt = { header, resourceId, bodies, audited: 'AS_SENT', isPendingAccepted: false, isUpgradeSeen: true } as const
      const { verdict, result: refusal } = await authenticateWithin(parts, received, attempt, async (tx, stored) => {
        if (!stored.verdict.isRight) return undefined
        const call = { tx, activation: stored.verdict.activation }
        return await inStage('handle', () => declared.handle(call, parts))
      })
      if (!verdict.isRight) throw new PawlError('AUTHENTICATION_CODE_INVALID', { detail: verdict.reason })
      if (refusal !== undefined) throw new PawlError(refusal, { detail: 'the code was right, what it asks for was refused' })
      return serialize({ status: 'OK' })
    },
  }
}
