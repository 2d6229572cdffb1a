// Serves vault/unlock in protocol 3 (v3 §12): the envelope must be well-formed, then the factors must be allowed, then the envelope is opened. The
// code is checked last; it covers the envelope as sent.
import type { Static, TSchema } from '@sinclair/typebox'
import { utf8 } from '../../lib/bytes.ts'
import { PawlError } from '../../lib/errors.ts'
import type { AuthorizationHeader, Factors } from '../../protocol/protocol.ts'
import type { Answered, Encrypted, Endpoint, Parsed, SignedCall } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { sealAnswer } from '../stages/answer.ts'
import { useOf } from '../stages/attempt.ts'
import { checkFactors, readAuthorization } from '../stages/receive.ts'
import { authenticate } from '../stages/code.ts'
import { findContext, readSignedEnvelope } from '../stages/envelope.ts'
import { findEnvelope } from '../stages/find-proofs.ts'
import { openOfActivation } from '../stages/open.ts'
import { parsePlaintext } from '../stages/parse.ts'
import { composeEndpoint, describeCode, describeEncryption } from './compose.ts'

interface UnlockDeclarationV3<Q extends TSchema, R extends TSchema, Parts>
  extends Answered<R, SignedCall<Static<Q>>, Parts>,
    Parsed<Q>,
    Encrypted {
  readonly authenticate: {
    readonly resourceId: string
    readonly factors: (header: AuthorizationHeader, parts: Parts) => Promise<readonly Factors[]>
    /** The value that the audit log shows in place of the envelope. */
    readonly auditAs: (request: Static<Q>) => unknown
  }
}

/** Declares vault/unlock of protocol 3. */
export function unlockEndpointV3<Q extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: UnlockDeclarationV3<Q, R, Parts>,
): Endpoint<Parts> {
  const { encrypt, authenticate: code } = declared
  const place = { scope: 'ACTIVATION_SCOPE', sharedInfo1: encrypt.sharedInfo1 } as const
  return composeEndpoint(declared, {
    refusals: {
      headerMissing: 'AUTHENTICATION_HEADER_MISSING',
      headers: 'AUTHENTICATION_CODE_INVALID',
      envelope: 'AUTHENTICATION_REQUEST_INVALID',
      // The refusal of an activation or version that must not unlock. A faulty envelope has another refusal (v3 §12, step 3).
      vault: 'VAULT_FAILED',
    },
    headers: ['Authorization'],
    checks: [describeCode(code, 'the body as sent'), describeEncryption(place)],
    body: { kind: 'envelope', plaintext: declared.request },
    async serve(received, { parts, refusals, parse, handle, serialize }) {
      const { protocol } = received
      const header = readAuthorization(received, refusals.headers, refusals.headerMissing)
      const context = findContext(header, place, refusals.envelope)
      const envelope = readSignedEnvelope(protocol, context, received.request.body, refusals.envelope)
      checkFactors(header, await code.factors(header, parts), refusals.vault)
      const sent = { header, resourceId: code.resourceId, bodies: protocol.coveredBodies(received.request) }
      if (envelope instanceof PawlError) {
        await authenticate(parts, received, { ...sent, audited: 'LENGTH' })
        throw envelope
      }
      const toOpen = await findEnvelope(parts, context, envelope)
      const opened = await openOfActivation(parts, protocol, toOpen, 'ANY', refusals.vault)
      const request = parsePlaintext(parse, opened.plaintext, { plaintext: refusals.envelope, request: refusals.vault })
      const attempt = { ...sent, audited: utf8(JSON.stringify(code.auditAs(request))), use: useOf(opened, refusals.vault) }
      const { activation } = await authenticate(parts, received, attempt, toOpen.parties)
      return sealAnswer(parts, opened, serialize(await handle({ request, activation })))
    },
  })
}
