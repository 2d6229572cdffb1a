// vault/unlock of protocol 3 (v3 §12): the envelope must be well-formed, then the factors allowed; it is opened, and only then is the code
// checked, which covers the envelope as it came.
import type { Static, TSchema } from '@sinclair/typebox'
import { compileParser } from '../../http/validation.ts'
import { utf8 } from '../../lib/bytes.ts'
import { PawlError } from '../../lib/errors.ts'
import { inStage } from '../../lib/trace.ts'
import type { AuthorizationHeader, Factors } from '../../protocol/protocol.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { Declaration, Endpoint } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { sealAnswer } from '../stages/answer.ts'
import { checkFactors, readAuthorization } from '../stages/authorization.ts'
import { coveredBodies, useOf } from '../stages/attempt.ts'
import { authenticate } from '../stages/code.ts'
import { findContext, readSignedEnvelope } from '../stages/envelope.ts'
import { findEnvelope } from '../stages/find-proofs.ts'
import { openOfActivation } from '../stages/open.ts'
import { parsePlaintext } from '../stages/parse.ts'
import { receive } from '../stages/receive.ts'
import { describeCode, describeEncryption } from './facts.ts'

export interface UnlockCallV3<Request> {
  /** The plaintext, parsed and validated. */
  readonly request: Request
  /** The activation as the code left it. */
  readonly activation: ActivationRow
}

interface UnlockDeclarationV3<Q extends TSchema, R extends TSchema, Parts> extends Declaration<R> {
  readonly authenticate: {
    readonly resourceId: string
    readonly factors: (header: AuthorizationHeader, parts: Parts) => Promise<readonly Factors[]>
    /** What the audit log shows in place of the envelope. */
    readonly auditAs: (request: Static<Q>) => unknown
  }
  readonly encrypt: { readonly sharedInfo1: string }
  /** Schema of the plaintext. */
  readonly request: Q
  readonly handle: (call: UnlockCallV3<Static<Q>>, parts: Parts) => Promise<Static<R>>
}

/** Declares vault/unlock of protocol 3. */
export function unlockEndpointV3<Q extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: UnlockDeclarationV3<Q, R, Parts>,
): Endpoint<Parts> {
  const { authenticate: code, encrypt } = declared
  const { resourceId } = code
  const place = { scope: 'ACTIVATION_SCOPE', sharedInfo1: encrypt.sharedInfo1 } as const
  return {
    ...declared,
    flow: {
      refuses: [
        'AUTHENTICATION_HEADER_MISSING',
        'AUTHENTICATION_CODE_INVALID',
        'AUTHENTICATION_REQUEST_INVALID',
        'VAULT_FAILED',
        'REQUEST_INVALID',
      ],
      headers: ['Authorization'],
      checks: [describeCode({ resourceId, factors: undefined }, 'the body as sent'), describeEncryption(place)],
      body: { kind: 'envelope', plaintext: declared.request, isOfLast: false },
    },
    prepare(parts, protocols) {
      const parse = compileParser(declared.request)
      return async (request, serialize) => {
        const received = receive(protocols, request, RECEIVE)
        const { protocol } = received
        const header = readAuthorization(received, HEADER_CODES)
        const context = findContext(header, place, 'AUTHENTICATION_REQUEST_INVALID')
        const envelope = readSignedEnvelope(protocol, context, request.body, 'AUTHENTICATION_REQUEST_INVALID')
        checkFactors(header, await code.factors(header, parts), 'VAULT_FAILED')
        const bodies = coveredBodies(received)
        if (envelope instanceof PawlError) {
          await authenticate(parts, received, { header, resourceId, bodies, audited: 'LENGTH' })
          throw envelope
        }
        // The refused code says what the activation or version may not do, not the envelope (v3 §12, step 3).
        const toOpen = await findEnvelope(parts, context, envelope)
        const opened = await openOfActivation(parts, protocol, toOpen, STATE_LEFT_TO_CODE, 'VAULT_FAILED')
        const input = parsePlaintext(parse, opened.plaintext, PLAINTEXT_CODES)
        const audited = utf8(JSON.stringify(code.auditAs(input)))
        const attempt = { header, resourceId, bodies, audited, use: useOf(opened, 'VAULT_FAILED') }
        const { activation } = await authenticate(parts, received, attempt, toOpen.parties)
        return sealAnswer(
          parts,
          opened,
          serialize(await inStage('handle', () => declared.handle({ request: input, activation }, parts))),
        )
      }
    },
  }
}

const HEADER_CODES = {
  headerMissing: 'AUTHENTICATION_HEADER_MISSING',
  headerMalformed: 'AUTHENTICATION_CODE_INVALID',
} as const
const PLAINTEXT_CODES = { plaintext: 'AUTHENTICATION_REQUEST_INVALID', request: 'VAULT_FAILED' } as const
const STATE_LEFT_TO_CODE = { isStateChecked: false, isVersionChecked: false }
const RECEIVE = { isJson: true, contradiction: 'AUTHENTICATION_CODE_INVALID' } as const
