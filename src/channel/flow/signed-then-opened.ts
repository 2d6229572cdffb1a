// Signed, then opened (v3 §5.4, order "S, E"): the code covers the envelope as it came.
import type { Static, TSchema } from '@sinclair/typebox'
import { compileParser } from '../../http/validation.ts'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import { inStage } from '../../lib/trace.ts'
import type { PendingUse } from '../../domain/activation/pending-use.ts'
import type { AuthorizationHeader, Factors, Protocol } from '../../protocol/protocol.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { Declaration, Endpoint } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { pendingUse, sealAnswer } from '../stages/answer.ts'
import { checkFactors, readAuthorization } from '../stages/authorization.ts'
import { coveredBodies } from '../stages/attempt.ts'
import { authenticate } from '../stages/code.ts'
import { findContext, readSignedEnvelope } from '../stages/envelope.ts'
import { findEnvelopeOf } from '../stages/find-proofs.ts'
import { openOfActivation } from '../stages/open.ts'
import { parsePlaintext } from '../stages/parse.ts'
import { receive } from '../stages/receive.ts'
import { describeCode, describeEncryption } from './facts.ts'

export interface SignedOpenedCall<Request> {
  /** The plaintext, parsed and validated. */
  readonly request: Request
  /** The activation as the code left it. */
  readonly activation: ActivationRow
  readonly authorization: AuthorizationHeader
  readonly protocol: Protocol
  /** What the envelope uses up; nothing is left unless `isUseLeftToHandler`. */
  readonly pending: PendingUse
}

interface SignedOpenedDeclaration<Q extends TSchema, R extends TSchema, Parts> extends Declaration<R> {
  readonly authenticate: { readonly resourceId: string; readonly factors: readonly Factors[] }
  readonly encrypt: { readonly sharedInfo1: string }
  /** How an envelope is refused that does not open after a right code, and one whose plaintext does not match the schema. */
  readonly refusal: ErrorCode
  /** Schema of the plaintext. */
  readonly request: Q
  /** The handler uses up what the envelope does, with what it stores. */
  readonly isUseLeftToHandler?: boolean
  readonly handle: (call: SignedOpenedCall<Static<Q>>, parts: Parts) => Promise<Static<R>>
}

/** Declares an endpoint for phones with a right code over an envelope in activation scope. */
export function signedOpenedEndpoint<Q extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: SignedOpenedDeclaration<Q, R, Parts>,
): Endpoint<Parts> {
  const { authenticate: code, encrypt, refusal, isUseLeftToHandler = false } = declared
  const { resourceId, factors } = code
  const place = { scope: 'ACTIVATION_SCOPE', sharedInfo1: encrypt.sharedInfo1 } as const
  return {
    ...declared,
    flow: {
      refuses: ['AUTHENTICATION_CODE_INVALID', 'AUTHENTICATION_REQUEST_INVALID', refusal, 'REQUEST_INVALID'],
      headers: ['Authorization'],
      checks: [describeCode(code, 'the body as sent'), describeEncryption(place)],
      body: { kind: 'envelope', plaintext: declared.request, isOfLast: false },
    },
    prepare(parts, protocols) {
      const parse = compileParser(declared.request)
      return async (request, serialize) => {
        const received = receive(protocols, request, RECEIVE)
        const { protocol } = received
        const header = readAuthorization(received, CODES)
        checkFactors(header, factors, 'AUTHENTICATION_CODE_INVALID')
        const context = findContext(header, place, 'AUTHENTICATION_REQUEST_INVALID')
        const envelope = readSignedEnvelope(protocol, context, request.body, 'AUTHENTICATION_REQUEST_INVALID')
        const covered = { bodies: coveredBodies(received), audited: 'LENGTH' } as const
        const parties = await authenticate(parts, received, { header, resourceId, ...covered })
        if (envelope instanceof PawlError) throw envelope
        const toOpen = await findEnvelopeOf(parts, context, envelope, parties)
        const opened = await openOfActivation(parts, protocol, toOpen, OPEN, refusal)
        const input = parsePlaintext(parse, opened.plaintext, { plaintext: refusal, request: refusal })
        const pending = pendingUse(parts, context.applicationKey, opened.uniqueValues, refusal)
        if (!isUseLeftToHandler) await pending.now()
        const { activation } = parties
        const answer = await inStage('handle', () =>
          declared.handle({ request: input, activation, authorization: header, protocol, pending }, parts),
        )
        await pending.now()
        return sealAnswer(parts, opened, serialize(answer))
      }
    },
  }
}

const CODES = { headerMissing: 'AUTHENTICATION_CODE_INVALID', headerMalformed: 'AUTHENTICATION_CODE_INVALID' } as const
const OPEN = { isStateChecked: true, isVersionChecked: true }
const RECEIVE = { isJson: true, contradiction: 'AUTHENTICATION_CODE_INVALID' } as const
