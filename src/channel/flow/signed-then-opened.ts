// Serves requests with a code over an envelope as sent. The envelope is opened after the code was checked (v3 §5.4, order "S, E").
import type { Static, TSchema } from '@sinclair/typebox'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import type { AuthorizationHeader, Protocol } from '../../protocol/protocol.ts'
import type { UniqueValue } from '../../storage/activation/unique-values.ts'
import type { Answered, Authenticated, Encrypted, Endpoint, Parsed, SignedCall } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { sealAnswer, usingUp } from '../stages/answer.ts'
import { checkFactors, readAuthorization } from '../stages/receive.ts'
import { authenticate } from '../stages/code.ts'
import { findContext, readSignedEnvelope } from '../stages/envelope.ts'
import { findEnvelopeOf } from '../stages/find-proofs.ts'
import { openOfActivation } from '../stages/open.ts'
import { parsePlaintext } from '../stages/parse.ts'
import { composeEndpoint, describeCode, describeEncryption } from './compose.ts'

interface SignedOpenedCall<Request> extends SignedCall<Request> {
  readonly authorization: AuthorizationHeader
  readonly protocol: Protocol
  /** The nonce of the envelope, if it has one. The handler stores it as used in the statement of its change. */
  readonly use: UniqueValue | undefined
}

interface SignedOpenedDeclaration<Q extends TSchema, R extends TSchema, Parts>
  extends Answered<R, SignedOpenedCall<Static<Q>>, Parts>,
    Parsed<Q>,
    Authenticated,
    Encrypted {
  /** The error code, after a right code, for an envelope that does not open or whose plaintext does not match the schema. */
  readonly refusal: ErrorCode
}

/** Declares an endpoint for phones with a right code over an envelope in activation scope. */
export function signedOpenedEndpoint<Q extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: SignedOpenedDeclaration<Q, R, Parts>,
): Endpoint<Parts> {
  const { authenticate: code, encrypt, refusal } = declared
  const place = { scope: 'ACTIVATION_SCOPE', sharedInfo1: encrypt.sharedInfo1 } as const
  return composeEndpoint(declared, {
    refusals: { headers: 'AUTHENTICATION_CODE_INVALID', envelope: 'AUTHENTICATION_REQUEST_INVALID', refusal },
    headers: ['Authorization'],
    checks: [describeCode(code, 'the body as sent'), describeEncryption(place)],
    body: { kind: 'envelope', plaintext: declared.request },
    async serve(received, { parts, refusals, parse, handle, serialize }) {
      const { protocol } = received
      const authorization = readAuthorization(received, refusals.headers)
      checkFactors(authorization, code.factors, refusals.headers)
      const context = findContext(authorization, place, refusals.envelope)
      const envelope = readSignedEnvelope(protocol, context, received.request.body, refusals.envelope)
      const covered = { bodies: protocol.coveredBodies(received.request), audited: 'LENGTH' } as const
      const parties = await authenticate(parts, received, { header: authorization, resourceId: code.resourceId, ...covered })
      if (envelope instanceof PawlError) throw envelope
      const toOpen = await findEnvelopeOf(parts, context, envelope, parties)
      const opened = await openOfActivation(parts, protocol, toOpen, 'ACTIVE', refusal)
      const request = parsePlaintext(parse, opened.plaintext, { plaintext: refusal, request: refusal })
      const { activation } = parties
      const [use] = opened.uniqueValues
      const { applicationKey } = context
      const answer = await usingUp(parts, { values: opened.uniqueValues, applicationKey, code: refusal }, () =>
        handle({ request, activation, authorization, protocol, use }),
      )
      return sealAnswer(parts, opened, serialize(answer))
    },
  })
}
