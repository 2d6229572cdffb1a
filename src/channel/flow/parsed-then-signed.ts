// Serves requests with a code over a JSON body whose handler decides in the transaction of the code (mobile-token §4.5, v4 §9.6). Decision, counter,
// failed attempts and audit row are stored together. If the body decides an operation, a body without its id is refused before the code is checked.
// Every other fault of the body is answered after a right code, so that no phone takes a fault of its own for a wrong password (mobile-token §2).
import type { Static, TObject, TSchema, TString } from '@sinclair/typebox'
import { Ok } from '../../http/types.ts'
import { compileParser } from '../../http/validation.ts'
import { utf8 } from '../../lib/bytes.ts'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import type { Factors } from '../../protocol/protocol.ts'
import type { Tx } from '../../storage/database/database.ts'
import type { LockedOperation } from '../../storage/operation/operations.ts'
import type { Declaration, Endpoint, Parsed, SignedCall } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import type { CodePolicy } from '../stages/attempt.ts'
import { authenticateWithin } from '../stages/code.ts'
import type { CodeVerdict } from '../stages/decision.ts'
import { parseBody, parseDecision } from '../stages/parse.ts'
import { checkFactors, type Client, readAuthorization } from '../stages/receive.ts'
import { composeEndpoint, describeCode } from './compose.ts'

interface Decided {
  /** The transaction that stores the outcome of the code. Everything written in it is committed together with the counter. */
  readonly tx: Tx
  /** The operation that the request decides, locked. Undefined when the application of the activation has no such operation. */
  readonly operation: LockedOperation | undefined
  readonly factors: Factors
}

interface ParsedSignedCall<Request> extends Decided, SignedCall<Request> {
  readonly client: Client
}

interface WrongCodeCall extends Decided {
  readonly verdict: Extract<CodeVerdict, { readonly isRight: false }>
}

interface ParsedSignedDeclaration<Q extends TSchema, Parts> extends Omit<Declaration, 'response'>, Parsed<Q> {
  /** `goodFor` is ACTIVE when absent. */
  readonly authenticate: { readonly resourceId: string; readonly factors: readonly Factors[]; readonly goodFor?: CodePolicy }
  /**
   * The schema of the part that names the operation. JSON without it is refused like a wrong code. Other faults of JSON with it are refused
   * after a right code. Without `decides`, malformed JSON is refused at once.
   */
  readonly decides?: TObject<{ requestObject: TObject<{ id: TString }> }>
  /** The value that the audit log shows in place of a body with a secret; undefined when the log shows the body itself. */
  readonly auditAs?: (request: Static<Q>) => unknown
  /** The longest body, in bytes; 16 KiB when absent. */
  readonly bytesMax?: number
  /** Called for a right code. Returns the error of a refusal, which is answered after the commit, or undefined for success. */
  readonly handle: (call: ParsedSignedCall<Static<Q>>, parts: Parts) => Promise<ErrorCode | undefined>
  /** Called for a wrong code, whose count it stores. Returns the error of the refusal, or undefined for that of a wrong code. */
  readonly handleWrongCode?: (call: WrongCodeCall, parts: Parts) => Promise<ErrorCode | undefined>
}

/** Declares an endpoint that decides in the transaction of its code. The answer is `{ "status": "OK" }`. */
export function parsedSignedEndpoint<Q extends TSchema, Parts extends ChannelParts>(
  declared: ParsedSignedDeclaration<Q, Parts>,
): Endpoint<Parts> {
  const { handleWrongCode, decides, auditAs, bytesMax, authenticate: code } = declared
  const parseName = decides && compileParser(decides)
  const endpoint = { ...declared, response: Ok }
  return composeEndpoint(endpoint, {
    refusals: { headers: 'AUTHENTICATION_CODE_INVALID' },
    headers: ['Authorization'],
    checks: [describeCode(code, 'the body as sent')],
    body: { kind: 'json', schema: declared.request },
    ...(bytesMax !== undefined && { covered: { by: 'code', bytesMax } }),
    async serve(received, { parts, refusals, parse, handle, serialize }) {
      const { body } = received.request
      const header = readAuthorization(received, refusals.headers)
      const named = parseName && parseDecision(parseName, parse, body, refusals.headers)
      const input = named ? named.input : parseBody(parse, body)
      checkFactors(header, code.factors, refusals.headers)
      // A malformed body may have the secret in any place.
      const shown = input instanceof PawlError ? { requestObject: { id: named?.operationId } } : auditAs?.(input)
      const audited = shown === undefined ? 'AS_SENT' : utf8(JSON.stringify(shown))
      const bodies = received.protocol.coveredBodies(received.request)
      const { resourceId, goodFor } = code
      const attempt = { header, resourceId, bodies, audited, decides: named?.operationId, goodFor } as const
      const { verdict, result: refusal } = await authenticateWithin(parts, received, attempt, async (tx, stored) => {
        const decided = { tx, operation: stored.operation, factors: header.factors }
        if (!stored.verdict.isRight) return handleWrongCode?.({ ...decided, verdict: stored.verdict }, parts)
        if (input instanceof PawlError) return undefined
        return handle({ ...decided, activation: stored.verdict.activation, request: input, client: received.client })
      })
      if (!verdict.isRight) throw new PawlError(refusal ?? refusals.headers, { detail: verdict.reason })
      if (input instanceof PawlError) throw input
      if (refusal !== undefined) throw new PawlError(refusal, { detail: 'the code was right, what it asks for was refused' })
      return serialize({ status: 'OK' })
    },
  })
}
