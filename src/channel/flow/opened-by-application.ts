// Serves requests with an envelope in application scope (v3 §5.4, order "E"). Every installation of the app has the keys, so the envelope proves
// nothing about its sender.
import type { Static, TSchema } from '@sinclair/typebox'
import type { VersionRow } from '../../storage/application/version.ts'
import type { Answered, Encrypted, Endpoint, Parsed } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { sealAnswer, useUp } from '../stages/answer.ts'
import { readUnsignedEnvelope } from '../stages/envelope.ts'
import { findEnvelope } from '../stages/find-proofs.ts'
import { openOfApplication } from '../stages/open.ts'
import { parsePlaintext } from '../stages/parse.ts'
import { composeEndpoint, describeEncryption } from './compose.ts'

interface OpenedByApplicationCall<Request> {
  readonly request: Request
  /** The application version whose keys opened the envelope. */
  readonly version: VersionRow
}

/** Declares an endpoint whose requests and answers are encrypted under the keys of an application. */
export function openedByApplicationEndpoint<Q extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: Answered<R, OpenedByApplicationCall<Static<Q>>, Parts> & Parsed<Q> & Encrypted,
): Endpoint<Parts> {
  const place = { scope: 'APPLICATION_SCOPE', sharedInfo1: declared.encrypt.sharedInfo1 } as const
  return composeEndpoint(declared, {
    refusals: { headers: 'ENCRYPTION_FAILED' },
    headers: ['Encryption'],
    checks: [describeEncryption(place)],
    body: { kind: 'envelope', plaintext: declared.request },
    async serve(received, { parts, refusals: { headers: refusal }, parse, handle, serialize }) {
      const { context, envelope } = readUnsignedEnvelope(received, place, refusal)
      const toOpen = await findEnvelope(parts, context, envelope)
      const opened = await openOfApplication(parts, received.protocol, toOpen, refusal)
      const request = parsePlaintext(parse, opened.plaintext, { plaintext: refusal })
      await useUp(parts, opened.uniqueValues, refusal)
      return sealAnswer(parts, opened, serialize(await handle({ request, version: opened.version })))
    },
  })
}
