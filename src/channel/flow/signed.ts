// Signed (v3 §5.4, order "S"): the code covers the body as it came, whatever it is. The body is not read.
import type { Static, TSchema } from '@sinclair/typebox'
import type { ErrorCode } from '../../lib/errors.ts'
import { inStage } from '../../lib/trace.ts'
import type { Factors } from '../../protocol/protocol.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { Declaration, Endpoint } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { checkFactors, readAuthorization } from '../stages/authorization.ts'
import { coveredBodies } from '../stages/attempt.ts'
import { authenticate } from '../stages/code.ts'
import { receive } from '../stages/receive.ts'
import { describeCode } from './facts.ts'

export interface SignedCall {
  /** The activation as the code left it. */
  readonly activation: ActivationRow
}

interface SignedDeclaration<R extends TSchema, Parts> extends Declaration<R> {
  readonly authenticate: {
    readonly resourceId: string
    /** What the code may be made with; a function where a setting decides. */
    readonly factors: readonly Factors[] | ((parts: Parts) => readonly Factors[])
  }
  /** How a request without authorization header is refused; AUTHENTICATION_CODE_INVALID when absent. */
  readonly headerMissing?: ErrorCode
  readonly handle: (call: SignedCall, parts: Parts) => Promise<Static<R>>
}

/** Declares an endpoint for phones with a right code. */
export function signedEndpoint<R extends TSchema, Parts extends ChannelParts>(
  declared: SignedDeclaration<R, Parts>,
): Endpoint<Parts> {
  const { headerMissing = 'AUTHENTICATION_CODE_INVALID' } = declared
  const { resourceId, factors } = declared.authenticate
  const codes = { headerMissing, headerMalformed: 'AUTHENTICATION_CODE_INVALID' } as const
  const fixedFactors = typeof factors === 'function' ? undefined : factors
  return {
    ...declared,
    flow: {
      refuses: ['AUTHENTICATION_CODE_INVALID', headerMissing, 'REQUEST_INVALID'],
      headers: ['Authorization'],
      checks: [describeCode({ resourceId, factors: fixedFactors }, 'the body as sent')],
      body: { kind: 'bytes' },
      covered: { by: 'code' },
    },
    prepare: (parts, protocols) => async (request, serialize) => {
      const received = receive(protocols, request, RECEIVE)
      const header = readAuthorization(received, codes)
      checkFactors(header, typeof factors === 'function' ? factors(parts) : factors, 'AUTHENTICATION_CODE_INVALID')
      const covered = { bodies: coveredBodies(received), audited: 'AS_SENT' } as const
      const { activation } = await authenticate(parts, received, { header, resourceId, ...covered })
      return serialize(await inStage('handle', () => declared.handle({ activation }, parts)))
    },
  }
}

const RECEIVE = { isJson: false, contradiction: 'AUTHENTICATION_CODE_INVALID' } as const
