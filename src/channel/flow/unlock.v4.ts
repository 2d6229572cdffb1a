// Serves vault/unlock in protocol 4.0 (v4 §9.10): the envelope is opened, then the factors must be allowed for the key that the plaintext names. The
// code is checked last; it covers the envelope as sent.
import type { Static, TSchema } from '@sinclair/typebox'
import { utf8 } from '../../lib/bytes.ts'
import type { AuthorizationHeader, Factors } from '../../protocol/protocol.ts'
import type { Answered, Encrypted, Endpoint, Parsed, SignedCall } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { sealAnswer } from '../stages/answer.ts'
import { useOf } from '../stages/attempt.ts'
import { checkFactors, readAuthorization } from '../stages/receive.ts'
import { authenticate } from '../stages/code.ts'
import { findContext, readEnvelope } from '../stages/envelope.ts'
import { findEnvelope } from '../stages/find-proofs.ts'
import { openOfActivation } from '../stages/open.ts'
import { parsePlaintext } from '../stages/parse.ts'
import { composeEndpoint, describeCode, describeEncryption } from './compose.ts'

interface UnlockDeclarationV4<Q extends TSchema, R extends TSchema, Parts>
  extends Answered<R, SignedCall<Static<Q>>, Parts>,
    Parsed<Q>,
    Encrypted {
  readonly authenticate: {
    readonly resourceId: string
    readonly factors: (request: Static<Q>, header: AuthorizationHeader, parts: Parts) => Promise<readonly Factors[]>
    /** The value that the audit log shows in place of the envelope. */
    readonly auditAs: (request: Static<Q>) => unknown
  }
}

/** Declares vault/unlock of protocol 4.0. */
export function unlockEndpointV4<Q extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: UnlockDeclarationV4<Q, R, Parts>,
): Endpoint<Parts> {
  const { encrypt, authenticate: code } = declared
  const place = { scope: 'ACTIVATION_SCOPE', sharedInfo1: encrypt.sharedInfo1 } as const
  return composeEndpoint(declared, {
    refusals: { headers: 'AUTHENTICATION_CODE_INVALID', vault: 'VAULT_FAILED' },
    headers: ['Authorization'],
    checks: [describeCode(code, 'the body as sent'), describeEncryption(place)],
    body: { kind: 'envelope', plaintext: declared.request },
    async serve(received, { parts, refusals, parse, handle, serialize }) {
      const { protocol } = received
      const header = readAuthorization(received, refusals.headers)
      const context = findContext(header, place, refusals.vault)
      const envelope = readEnvelope(protocol, context, received.request.body, refusals.vault)
      const toOpen = await findEnvelope(parts, context, envelope)
      const opened = await openOfActivation(parts, protocol, toOpen, 'ACTIVE', refusals.vault)
      const request = parsePlaintext(parse, opened.plaintext, { plaintext: refusals.vault, request: refusals.vault })
      checkFactors(header, await code.factors(request, header, parts), refusals.vault)
      const covered = { bodies: protocol.coveredBodies(received.request), audited: utf8(JSON.stringify(code.auditAs(request))) }
      const attempt = { header, resourceId: code.resourceId, ...covered, use: useOf(opened, refusals.vault) }
      const { activation } = await authenticate(parts, received, attempt, toOpen.parties)
      return sealAnswer(parts, opened, serialize(await handle({ request, activation })))
    },
  })
}
