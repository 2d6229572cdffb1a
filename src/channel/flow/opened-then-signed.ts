// Opened, then signed (v3 §5.4, order "E, S"): the code covers the plaintext.
import type { Static, TSchema } from '@sinclair/typebox'
import { compileParser } from '../../http/validation.ts'
import { inStage } from '../../lib/trace.ts'
import type { Factors } from '../../protocol/protocol.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { Declaration, Endpoint } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { sealAnswer } from '../stages/answer.ts'
import { checkFactors, readAuthorization } from '../stages/authorization.ts'
import { useOf } from '../stages/attempt.ts'
import { authenticate } from '../stages/code.ts'
import { findContext, readEnvelope } from '../stages/envelope.ts'
import { findEnvelope } from '../stages/find-proofs.ts'
import { openOfActivation } from '../stages/open.ts'
import { parsePlaintext, unlessRefused } from '../stages/parse.ts'
import { receive } from '../stages/receive.ts'
import { describeCode, describeEncryption } from './facts.ts'

export interface OpenedSignedCall<Request> {
  /** The plaintext, parsed and validated. */
  readonly request: Request
  /** The activation as the code left it. */
  readonly activation: ActivationRow
}

interface OpenedSignedDeclaration<Q extends TSchema, R extends TSchema, Parts> extends Declaration<R> {
  readonly authenticate: { readonly resourceId: string; readonly factors: readonly Factors[] }
  readonly encrypt: {
    readonly sharedInfo1: string
    /** Envelopes of activations and versions that are not in use open too: the code is refused instead (v4 §9.7). */
    readonly isStateLeftToCode: boolean
  }
  /** Schema of the plaintext. */
  readonly request: Q
  readonly handle: (call: OpenedSignedCall<Static<Q>>, parts: Parts) => Promise<Static<R>>
}

/** Declares an endpoint for phones with a right code over the plaintext of an envelope in activation scope. */
export function openedSignedEndpoint<Q extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: OpenedSignedDeclaration<Q, R, Parts>,
): Endpoint<Parts> {
  const { authenticate: code, encrypt } = declared
  const { resourceId, factors } = code
  const isChecked = !encrypt.isStateLeftToCode
  const openTerms = { isStateChecked: isChecked, isVersionChecked: isChecked }
  const place = { scope: 'ACTIVATION_SCOPE', sharedInfo1: encrypt.sharedInfo1 } as const
  return {
    ...declared,
    flow: {
      refuses: ['AUTHENTICATION_CODE_INVALID', 'ENCRYPTION_FAILED', 'REQUEST_INVALID'],
      headers: ['Authorization'],
      checks: [describeCode(code, 'the decrypted body'), describeEncryption(place)],
      body: { kind: 'envelope', plaintext: declared.request, isOfLast: false },
    },
    prepare(parts, protocols) {
      const parse = compileParser(declared.request)
      return async (request, serialize) => {
        const received = receive(protocols, request, RECEIVE)
        const { protocol } = received
        const header = readAuthorization(received, CODES)
        checkFactors(header, factors, 'AUTHENTICATION_CODE_INVALID')
        const context = findContext(header, place, 'ENCRYPTION_FAILED')
        const envelope = readEnvelope(protocol, context, request.body, 'ENCRYPTION_FAILED')
        const toOpen = await findEnvelope(parts, context, envelope)
        const opened = await openOfActivation(parts, protocol, toOpen, openTerms, 'ENCRYPTION_FAILED')
        const read = () => parsePlaintext(parse, opened.plaintext, { plaintext: 'ENCRYPTION_FAILED', request: 'REQUEST_INVALID' })
        // Refused after the code, but known before: a request that is refused for its content uses up no more than its code.
        const input = unlessRefused(read)
        const use = input === undefined ? undefined : useOf(opened, 'ENCRYPTION_FAILED')
        const covered = { bodies: [opened.plaintext], audited: 'LENGTH', use } as const
        const { activation } = await authenticate(parts, received, { header, resourceId, ...covered }, toOpen.parties)
        return sealAnswer(
          parts,
          opened,
          serialize(await inStage('handle', () => declared.handle({ request: input ?? read(), activation }, parts))),
        )
      }
    },
  }
}

const CODES = { headerMissing: 'AUTHENTICATION_CODE_INVALID', headerMalformed: 'AUTHENTICATION_CODE_INVALID' } as const
const RECEIVE = { isJson: true, contradiction: 'AUTHENTICATION_CODE_INVALID' } as const
