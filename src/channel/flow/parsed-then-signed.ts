// Read, then signed (mobile-token §4.5, v4 §9.6): the code covers the JSON body as it came, and what the endpoint decides is stored in one
// transaction with the counter, the failed attempts and the audit row of the code.
import type { Static, TSchema } from '@sinclair/typebox'
import { compileParser } from '../../http/validation.ts'
import { Ok } from '../../http/types.ts'
import { utf8 } from '../../lib/bytes.ts'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import { staged } from '../../lib/trace.ts'
import type { Factors } from '../../protocol/protocol.ts'
import type { Tx } from '../../storage/database.ts'
import type { LockedOperation } from '../../storage/operations.ts'
import type { Declaration, Endpoint } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { checkFactors, readAuthorization } from '../stages/authorization.ts'
import { coveredBodies } from '../stages/attempt.ts'
import { authenticateWithin } from '../stages/code.ts'
import type { CodeVerdict } from '../stages/decision.ts'
import { parseBody } from '../stages/parse.ts'
import { type Client, limitSigned, PARSED_BYTES_MAX, receive } from '../stages/receive.ts'
import { describeCode } from './facts.ts'

export interface ParsedSignedCall<Request> {
  /** The transaction of the code's check: what is written in it is durable together with the counter. */
  readonly tx: Tx
  /** A wrong code is told to the handler too: what it counts must stay. */
  readonly verdict: CodeVerdict
  /** What the request decides, locked in the application of the activation; undefined where it has no such operation. */
  readonly operation: LockedOperation | undefined
  /** The body, parsed and validated. */
  readonly request: Request
  readonly factors: Factors
  readonly client: Client
}

interface ParsedSignedDeclaration<Q extends TSchema, Parts> extends Omit<Declaration, 'response'> {
  readonly authenticate: {
    readonly resourceId: string
    readonly factors: readonly Factors[]
    /** An activation that waits for commit and confirmation may do this too (v4 §9.6). */
    readonly isPendingAccepted?: boolean
  }
  /** Schema of the JSON body. */
  readonly request: Q
  /** How JSON that does not match the schema is refused. */
  readonly requestInvalid: ErrorCode
  /** Id of the operation that the request decides. */
  readonly decides?: (request: Static<Q>) => string
  /** What the audit log shows in place of a body that holds a secret; undefined where nothing takes its place. */
  readonly auditAs?: (request: Static<Q>) => unknown
  /** The longest body, in bytes; 16 KiB when absent. */
  readonly bytesMax?: number
  /**
   * Returns how the request is refused, which is told after the commit; undefined when a right code did what it asks for, and when a wrong
   * code is refused as a wrong code.
   */
  readonly handle: (call: ParsedSignedCall<Static<Q>>, parts: Parts) => Promise<ErrorCode | undefined>
}

/** Declares an endpoint that decides in the transaction of its code. The answer is `{ "status": "OK" }`. */
export function parsedSignedEndpoint<Q extends TSchema, Parts extends ChannelParts>(
  declared: ParsedSignedDeclaration<Q, Parts>,
): Endpoint<Parts> {
  const handle = staged('handle', declared.handle)
  const { requestInvalid, decides, auditAs, bytesMax = PARSED_BYTES_MAX, authenticate: code } = declared
  const { resourceId, factors, isPendingAccepted = false } = code
  return {
    ...declared,
    response: Ok,
    flow: {
      refuses: ['AUTHENTICATION_CODE_INVALID', requestInvalid, 'REQUEST_INVALID'],
      headers: ['Authorization'],
      checks: [describeCode(code, 'the body as sent')],
      body: { kind: 'json', schema: declared.request },
    },
    prepare(parts, protocols) {
      const parse = compileParser(declared.request)
      const form = { isJson: true, bytesMax, contradiction: 'AUTHENTICATION_CODE_INVALID' } as const
      return async (request, serialize) => {
        const received = receive(protocols, request, limitSigned(parts, form))
        const header = readAuthorization(received, CODES)
        const input = parseBody(parse, request.body, requestInvalid)
        checkFactors(header, factors, 'AUTHENTICATION_CODE_INVALID')
        const shown = auditAs?.(input)
        const audited = shown === undefined ? 'AS_SENT' : utf8(JSON.stringify(shown))
        const bodies = coveredBodies(received)
        const terms = { isPendingAccepted, isUpgradeSeen: false } as const
        const attempt = { header, resourceId, bodies, audited, decides: decides?.(input), ...terms } as const
        const { client } = received
        const { verdict, result: refusal } = await authenticateWithin(parts, received, attempt, (tx, stored) =>
          handle({ tx, ...stored, request: input, factors: header.factors, client }, parts),
        )
        if (!verdict.isRight) throw new PawlError(refusal ?? 'AUTHENTICATION_CODE_INVALID', { detail: verdict.reason })
        if (refusal !== undefined) throw new PawlError(refusal, { detail: 'the code was right, what it asks for was refused' })
        return serialize({ status: 'OK' })
      }
    },
  }
}

const CODES = { headerMissing: 'AUTHENTICATION_CODE_INVALID', headerMalformed: 'AUTHENTICATION_CODE_INVALID' } as const
