// Serves requests with an envelope in activation scope and a token of the same activation (activation/detail: v3 §13, v4 §9.7). The plaintext is not
// read.
import { type TSchema, Type } from '@sinclair/typebox'
import { PawlError } from '../../lib/errors.ts'
import type { Factors } from '../../protocol/protocol.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { Answered, Endpoint } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { sealAnswer, useUp } from '../stages/answer.ts'
import { readUnsignedEnvelope } from '../stages/envelope.ts'
import type { EnvelopePolicy } from '../stages/envelope-keys.ts'
import { findEnvelopeAndToken } from '../stages/find-proofs.ts'
import { openOfActivation } from '../stages/open.ts'
import { acceptToken, readToken } from '../stages/token.ts'
import { composeEndpoint, describeEncryption, describeToken } from './compose.ts'

/** The declaration. The handler gets the activation to which both envelope and token belong. */
interface OpenedTokenDeclaration<R extends TSchema, Parts> extends Answered<R, { readonly activation: ActivationRow }, Parts> {
  /** The combinations of factors with which the token must have been made. */
  readonly token: { readonly factors: readonly Factors[] }
  /** The envelope may open for activations that are not ACTIVE; the token then refuses them (v4 §9.7). */
  readonly encrypt: { readonly sharedInfo1: string; readonly opensFor: EnvelopePolicy }
}

/** Declares an endpoint for phones with a token and the keys of its activation. */
export function openedTokenEndpoint<R extends TSchema, Parts extends ChannelParts>(
  declared: OpenedTokenDeclaration<R, Parts>,
): Endpoint<Parts> {
  const { path, token, encrypt } = declared
  const { sharedInfo1, opensFor } = encrypt
  const place = { scope: 'ACTIVATION_SCOPE', sharedInfo1 } as const
  const tokenTerms = { resourceId: `/${path}`, factors: token.factors, isRepeatable: false }
  return composeEndpoint(declared, {
    refusals: { headers: 'AUTHENTICATION_CODE_INVALID', envelope: 'ENCRYPTION_FAILED' },
    headers: ['Token', 'Encryption'],
    checks: [describeToken(token.factors), describeEncryption(place)],
    body: { kind: 'envelope', plaintext: Type.Unknown() },
    async serve(received, { parts, refusals, handle, serialize }) {
      const { context, envelope } = readUnsignedEnvelope(received, place, refusals.envelope, refusals.headers)
      const { request: toOpen, found } = await findEnvelopeAndToken(parts, context, envelope, readToken(received))
      const opened = await openOfActivation(parts, received.protocol, toOpen, opensFor, refusals.envelope)
      const { bearer, uniqueValues } = await acceptToken(parts, received, tokenTerms, refusals.headers, found)
      const { activation } = opened
      if (bearer.activationId !== activation.activationId)
        throw new PawlError(refusals.headers, { detail: 'token and envelope are of different activations' })
      await useUp(parts, [...opened.uniqueValues, ...uniqueValues], refusals.headers)
      return sealAnswer(parts, opened, serialize(await handle({ activation })))
    },
  })
}
