// vault/unlock of protocol 4.0 (v4 §9.10): the envelope is opened, the factors must be allowed for the key that the plaintext names, and only
// then is the code checked, which covers the envelope as it came.
import type { Static, TSchema } from '@sinclair/typebox'
import { compileParser } from '../../http/validation.ts'
import { utf8 } from '../../lib/bytes.ts'
import { inStage } from '../../lib/trace.ts'
import type { AuthorizationHeader, Factors } from '../../protocol/protocol.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { Declaration, Endpoint } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { sealAnswer } from '../stages/answer.ts'
import { checkFactors, readAuthorization } from '../stages/authorization.ts'
import { coveredBodies, useOf } from '../stages/attempt.ts'
import { authenticate } from '../stages/code.ts'
import { findContext, readEnvelope } from '../stages/envelope.ts'
import { findEnvelope } from '../stages/find-proofs.ts'
import { openOfActivation } from '../stages/open.ts'
import { parsePlaintext } from '../stages/parse.ts'
import { receive } from '../stages/receive.ts'
import { describeCode, describeEncryption } from './facts.ts'

export interface UnlockCallV4<Request> {
  /** The plaintext, parsed and validated. */
  readonly request: Request
  /** The activation as the code left it. */
  readonly activation: ActivationRow
}

interface UnlockDeclarationV4<Q extends TSchema, R extends TSchema, Parts> extends Declaration<R> {
  readonly authenticate: {
    readonly resourceId: string
    readonly factors: (request: Static<Q>, header: AuthorizationHeader, parts: Parts) => Promise<readonly Factors[]>
    /** What the audit log shows in place of the envelope. */
    readonly auditAs: (request: Static<Q>) => unknown
  }
  readonly encrypt: { readonly sharedInfo1: string }
  /** Schema of the plaintext. */
  readonly request: Q
  readonly handle: (call: UnlockCallV4<Static<Q>>, parts: Parts) => Promise<Static<R>>
}

/** Declares vault/unlock of protocol 4.0. */
export function unlockEndpointV4<Q extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: UnlockDeclarationV4<Q, R, Parts>,
): Endpoint<Parts> {
  const { authenticate: code, encrypt } = declared
  const { resourceId } = code
  const place = { scope: 'ACTIVATION_SCOPE', sharedInfo1: encrypt.sharedInfo1 } as const
  return {
    ...declared,
    flow: {
      refuses: ['AUTHENTICATION_CODE_INVALID', 'VAULT_FAILED', 'REQUEST_INVALID'],
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
        const context = findContext(header, place, 'VAULT_FAILED')
        const envelope = readEnvelope(protocol, context, request.body, 'VAULT_FAILED')
        const toOpen = await findEnvelope(parts, context, envelope)
        const opened = await openOfActivation(parts, protocol, toOpen, ACTIVE_ONLY, 'VAULT_FAILED')
        const input = parsePlaintext(parse, opened.plaintext, { plaintext: 'VAULT_FAILED', request: 'VAULT_FAILED' })
        checkFactors(header, await code.factors(input, header, parts), 'VAULT_FAILED')
        const audited = utf8(JSON.stringify(code.auditAs(input)))
        const covered = { bodies: coveredBodies(received), audited, use: useOf(opened, 'VAULT_FAILED') }
        const { activation } = await authenticate(parts, received, { header, resourceId, ...covered }, toOpen.parties)
        return sealAnswer(
          parts,
          opened,
          serialize(await inStage('handle', () => declared.handle({ request: input, activation }, parts))),
        )
      }
    },
  }
}

const HEADER_CODES = { headerMissing: 'AUTHENTICATION_CODE_INVALID', headerMalformed: 'AUTHENTICATION_CODE_INVALID' } as const
const ACTIVE_ONLY = { isStateChecked: true, isVersionChecked: true }
const RECEIVE = { isJson: true, contradiction: 'AUTHENTICATION_CODE_INVALID' } as const
