// Encrypted in activation scope, and a token of the same activation (activation/detail: v3 §13, v4 §9.7). The plaintext is not read.
import type { Static, TSchema } from '@sinclair/typebox'
import { Type } from '@sinclair/typebox'
import { PawlError } from '../../lib/errors.ts'
import { inStage } from '../../lib/trace.ts'
import type { Factors } from '../../protocol/protocol.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { Declaration, Endpoint } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { sealAnswer, useUp } from '../stages/answer.ts'
import { readAnyAuthorization } from '../stages/authorization.ts'
import { findContext, readEncryption, readEnvelope } from '../stages/envelope.ts'
import { findEnvelopeAndToken } from '../stages/find-proofs.ts'
import { openOfActivation } from '../stages/open.ts'
import { receive } from '../stages/receive.ts'
import { acceptToken, readToken } from '../stages/token.ts'
import { describeEncryption, describeToken } from './facts.ts'

export interface OpenedTokenCall {
  /** The activation of the envelope and of the token. */
  readonly activation: ActivationRow
}

interface OpenedTokenDeclaration<R extends TSchema, Parts> extends Declaration<R> {
  /** Factor combinations a token must have been made with. */
  readonly token: { readonly factors: readonly Factors[] }
  readonly encrypt: {
    readonly sharedInfo1: string
    /** Envelopes of activations that are not ACTIVE open too: the token is refused instead (v4 §9.7). */
    readonly isStateLeftToToken: boolean
  }
  readonly handle: (call: OpenedTokenCall, parts: Parts) => Promise<Static<R>>
}

/** Declares an endpoint for phones with a token and the keys of its activation. */
export function openedTokenEndpoint<R extends TSchema, Parts extends ChannelParts>(
  declared: OpenedTokenDeclaration<R, Parts>,
): Endpoint<Parts> {
  const { encrypt, path, token } = declared
  const place = { scope: 'ACTIVATION_SCOPE', sharedInfo1: encrypt.sharedInfo1 } as const
  const openTerms = { isStateChecked: !encrypt.isStateLeftToToken, isVersionChecked: true }
  const tokenTerms = { resourceId: `/${path}`, factors: token.factors, isRepeatable: false }
  return {
    ...declared,
    flow: {
      refuses: ['AUTHENTICATION_CODE_INVALID', 'ENCRYPTION_FAILED', 'REQUEST_INVALID'],
      headers: ['Token', 'Encryption'],
      checks: [describeToken(token.factors), describeEncryption(place)],
      body: { kind: 'envelope', plaintext: Type.Unknown(), isOfLast: false },
    },
    prepare: (parts, protocols) => async (request, serialize) => {
      const received = receive(protocols, request, RECEIVE)
      const { protocol } = received
      const header = readAnyAuthorization(received, 'AUTHENTICATION_CODE_INVALID') ?? readEncryption(received, protocol)
      const context = findContext(header, place, 'ENCRYPTION_FAILED')
      const envelope = readEnvelope(protocol, context, request.body, 'ENCRYPTION_FAILED')
      const { request: toOpen, found } = await findEnvelopeAndToken(parts, context, envelope, readToken(received))
      const opened = await openOfActivation(parts, protocol, toOpen, openTerms, 'ENCRYPTION_FAILED')
      const accepted = await acceptToken(parts, received, tokenTerms, REFUSAL, found)
      const { activation } = opened
      if (accepted.bearer.activationId !== activation.activationId)
        throw new PawlError('AUTHENTICATION_CODE_INVALID', { detail: 'token and envelope are of different activations' })
      await useUp(parts, [...opened.uniqueValues, ...accepted.uniqueValues], 'AUTHENTICATION_CODE_INVALID')
      return sealAnswer(parts, opened, serialize(await inStage('handle', () => declared.handle({ activation }, parts))))
    },
  }
}

const REFUSAL = 'AUTHENTICATION_CODE_INVALID' as const
const RECEIVE = { isJson: true, contradiction: 'AUTHENTICATION_CODE_INVALID' } as const
