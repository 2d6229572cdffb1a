// Serves requests with a code of 3.x over an envelope of 4.0 in application scope, which has a header of its own (upgrade/start: v4 §10.2).
import type { Static, TSchema } from '@sinclair/typebox'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import type { Protocol } from '../../protocol/protocol.ts'
import type { Answered, Authenticated, Encrypted, Endpoint, Parsed, SignedCall } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { sealAnswer, useUp } from '../stages/answer.ts'
import { checkFactors, readAuthorization } from '../stages/receive.ts'
import { authenticate } from '../stages/code.ts'
import { findContext, readEncryption, readSignedEnvelope } from '../stages/envelope.ts'
import { findEnvelopeOf } from '../stages/find-proofs.ts'
import { openOfApplication } from '../stages/open.ts'
import { parsePlaintext } from '../stages/parse.ts'
import { composeEndpoint, describeCode, describeEncryption } from './compose.ts'

interface SignedOpenedByNextDeclaration<Q extends TSchema, R extends TSchema, Parts>
  extends Answered<R, SignedCall<Static<Q>>, Parts>,
    Parsed<Q>,
    Authenticated,
    Encrypted {
  /** The error code for missing and malformed headers, and for an envelope that is malformed or does not open. */
  readonly refusal: ErrorCode
}

/** Declares an endpoint that two generations serve together: the first verifies the code, the second opens the envelope. */
export function signedOpenedByNextEndpoint<Q extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: SignedOpenedByNextDeclaration<Q, R, Parts>,
): Endpoint<Parts> {
  const { authenticate: code, encrypt, refusal } = declared
  const place = { scope: 'APPLICATION_SCOPE', sharedInfo1: encrypt.sharedInfo1 } as const
  return composeEndpoint(declared, {
    refusals: { headers: refusal, code: 'AUTHENTICATION_CODE_INVALID' },
    headers: ['Authorization', 'Encryption'],
    checks: [describeCode(code, 'the body as sent'), describeEncryption(place)],
    body: { kind: 'envelope', plaintext: declared.request, isOfLast: true },
    async serve(request, { parts, protocols, refusals, parse, handle, serialize }) {
      const [signing, opening] = pairOf(protocols)
      const received = { ...request, protocol: signing }
      const header = readAuthorization(received, refusal)
      checkFactors(header, code.factors, refusals.code)
      const context = findContext(readEncryption(received, opening), place, refusal)
      if (context.applicationKey !== header.applicationKey)
        throw new PawlError(refusal, { detail: 'the headers name different application keys' })
      const envelope = readSignedEnvelope(opening, context, received.request.body, refusal)
      const covered = { bodies: signing.coveredBodies(received.request), audited: 'LENGTH' } as const
      const parties = await authenticate(parts, received, { header, resourceId: code.resourceId, ...covered })
      if (envelope instanceof PawlError) throw envelope
      const toOpen = await findEnvelopeOf(parts, context, envelope, parties)
      const opened = await openOfApplication(parts, opening, toOpen, refusal)
      const input = parsePlaintext(parse, opened.plaintext, { plaintext: refusal })
      await useUp(parts, opened.uniqueValues, refusal)
      return sealAnswer(parts, opened, serialize(await handle({ request: input, activation: parties.activation })))
    },
  })
}

function pairOf([signing, opening]: readonly Protocol[]): readonly [Protocol, Protocol] {
  if (signing === undefined || opening === undefined) throw new TypeError('an endpoint of two generations needs both')
  return [signing, opening]
}
