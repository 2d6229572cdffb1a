// Serves requests whose envelope is opened first, before a code over its plaintext is checked (v3 §5.4, order "E, S").
import type { Static, TSchema } from '@sinclair/typebox'
import { PawlError } from '../../lib/errors.ts'
import type { Answered, Authenticated, Endpoint, Parsed, SignedCall } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { sealAnswer } from '../stages/answer.ts'
import { useOf } from '../stages/attempt.ts'
import { checkFactors, readAuthorization } from '../stages/receive.ts'
import { authenticate } from '../stages/code.ts'
import { findContext, readEnvelope } from '../stages/envelope.ts'
import type { EnvelopePolicy } from '../stages/envelope-keys.ts'
import { findEnvelope } from '../stages/find-proofs.ts'
import { openOfActivation } from '../stages/open.ts'
import { parsePlaintext, refusalOr } from '../stages/parse.ts'
import { composeEndpoint, describeCode, describeEncryption } from './compose.ts'

interface OpenedSignedDeclaration<Q extends TSchema, R extends TSchema, Parts>
  extends Answered<R, SignedCall<Static<Q>>, Parts>,
    Parsed<Q>,
    Authenticated {
  /** The envelope may open for activations that are not ACTIVE; the code then refuses them (v4 §9.7). */
  readonly encrypt: { readonly sharedInfo1: string; readonly opensFor: EnvelopePolicy }
}

/** Declares an endpoint for phones with a right code over the plaintext of an envelope in activation scope. */
export function openedSignedEndpoint<Q extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: OpenedSignedDeclaration<Q, R, Parts>,
): Endpoint<Parts> {
  const { authenticate: code, encrypt } = declared
  const { sharedInfo1, opensFor } = encrypt
  const place = { scope: 'ACTIVATION_SCOPE', sharedInfo1 } as const
  return composeEndpoint(declared, {
    refusals: { headers: 'AUTHENTICATION_CODE_INVALID', envelope: 'ENCRYPTION_FAILED' },
    headers: ['Authorization'],
    checks: [describeCode(code, 'the decrypted body'), describeEncryption(place)],
    body: { kind: 'envelope', plaintext: declared.request },
    async serve(received, { parts, refusals, parse, handle, serialize }) {
      const { protocol } = received
      const header = readAuthorization(received, refusals.headers)
      checkFactors(header, code.factors, refusals.headers)
      const context = findContext(header, place, refusals.envelope)
      const envelope = readEnvelope(protocol, context, received.request.body, refusals.envelope)
      const toOpen = await findEnvelope(parts, context, envelope)
      const opened = await openOfActivation(parts, protocol, toOpen, opensFor, refusals.envelope)
      // The plaintext is parsed before the code and refused after it. So a request that is refused for its content uses up only its code, not its
      // nonce.
      const input = refusalOr(() => parsePlaintext(parse, opened.plaintext, { plaintext: refusals.envelope }))
      const use = input instanceof PawlError ? undefined : useOf(opened, refusals.envelope)
      const attempt = { header, resourceId: code.resourceId, bodies: [opened.plaintext], audited: 'LENGTH', use } as const
      const { activation } = await authenticate(parts, received, attempt, toOpen.parties)
      if (input instanceof PawlError) throw input
      return sealAnswer(parts, opened, serialize(await handle({ request: input, activation })))
    },
  })
}
