// Signed by one generation of the protocol, then opened by the next (upgrade/start: v4 §10.2): a code of 3.x covers an envelope of 4.0 in
// application scope, which has a header of its own.
import type { Static, TSchema } from '@sinclair/typebox'
import { compileParser } from '../../http/validation.ts'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import { inStage } from '../../lib/trace.ts'
import type { Factors, Protocol } from '../../protocol/protocol.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { Declaration, Endpoint } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { sealAnswer, useUp } from '../stages/answer.ts'
import { checkFactors, readAuthorization } from '../stages/authorization.ts'
import { coveredBodies } from '../stages/attempt.ts'
import { authenticate } from '../stages/code.ts'
import { findContext, readEncryption, readSignedEnvelope } from '../stages/envelope.ts'
import { findEnvelopeOf } from '../stages/find-proofs.ts'
import { openOfApplication } from '../stages/open.ts'
import { parsePlaintext } from '../stages/parse.ts'
import { receive } from '../stages/receive.ts'
import { describeCode, describeEncryption } from './facts.ts'

export interface SignedOpenedByNextCall<Request> {
  /** The plaintext, parsed and validated. */
  readonly request: Request
  /** The activation as the code left it. */
  readonly activation: ActivationRow
}

interface SignedOpenedByNextDeclaration<Q extends TSchema, R extends TSchema, Parts> extends Declaration<R> {
  readonly authenticate: { readonly resourceId: string; readonly factors: readonly Factors[] }
  readonly encrypt: { readonly sharedInfo1: string }
  /** How missing and malformed headers are refused, and an envelope that is malformed or does not open. */
  readonly refusal: ErrorCode
  /** Schema of the plaintext. */
  readonly request: Q
  readonly handle: (call: SignedOpenedByNextCall<Static<Q>>, parts: Parts) => Promise<Static<R>>
}

/** Declares an endpoint that two generations serve together: the first reads the code, the second the envelope. */
export function signedOpenedByNextEndpoint<Q extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: SignedOpenedByNextDeclaration<Q, R, Parts>,
): Endpoint<Parts> {
  const { authenticate: code, encrypt, refusal } = declared
  const { resourceId, factors } = code
  const place = { scope: 'APPLICATION_SCOPE', sharedInfo1: encrypt.sharedInfo1 } as const
  return {
    ...declared,
    flow: {
      refuses: ['AUTHENTICATION_CODE_INVALID', refusal, 'REQUEST_INVALID'],
      headers: ['Authorization', 'Encryption'],
      checks: [describeCode(code, 'the body as sent'), describeEncryption(place)],
      body: { kind: 'envelope', plaintext: declared.request, isOfLast: true },
    },
    prepare(parts, protocols) {
      const parse = compileParser(declared.request)
      const [signing, opening] = pairOf(protocols)
      const terms = { isJson: true, contradiction: refusal }
      return async (request, serialize) => {
        const received = receive([signing], request, terms)
        const header = readAuthorization(received, { headerMissing: refusal, headerMalformed: refusal })
        checkFactors(header, factors, 'AUTHENTICATION_CODE_INVALID')
        const context = findContext(readEncryption(received, opening), place, refusal)
        if (context.applicationKey !== header.applicationKey)
          throw new PawlError(refusal, { detail: 'the headers name different application keys' })
        const envelope = readSignedEnvelope(opening, context, request.body, refusal)
        const covered = { bodies: coveredBodies(received), audited: 'LENGTH' } as const
        const parties = await authenticate(parts, received, { header, resourceId, ...covered })
        if (envelope instanceof PawlError) throw envelope
        const toOpen = await findEnvelopeOf(parts, context, envelope, parties)
        const opened = await openOfApplication(parts, opening, toOpen, refusal)
        const input = parsePlaintext(parse, opened.plaintext, { plaintext: refusal, request: 'REQUEST_INVALID' })
        await useUp(parts, opened.uniqueValues, refusal)
        const { activation } = parties
        return sealAnswer(
          parts,
          opened,
          serialize(await inStage('handle', () => declared.handle({ request: input, activation }, parts))),
        )
      }
    },
  }
}

function pairOf([signing, opening]: readonly Protocol[]): readonly [Protocol, Protocol] {
  if (signing === undefined || opening === undefined) throw new TypeError('an endpoint of two generations needs both')
  return [signing, opening]
}
