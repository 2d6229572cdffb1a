// Serves requests with an envelope in activation scope and without a code (v3 §5.4, order "E"). An envelope that opens comes from the activation.
import { type TSchema, Type } from '@sinclair/typebox'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { VersionRow } from '../../storage/application/version.ts'
import type { Answered, Endpoint } from '../endpoint.ts'
import type { Dialect } from '../stages/receive.ts'
import type { ChannelParts } from '../parts.ts'
import { sealAnswer, useUp } from '../stages/answer.ts'
import { readUnsignedEnvelope } from '../stages/envelope.ts'
import type { EnvelopePolicy } from '../stages/envelope-keys.ts'
import { findEnvelope } from '../stages/find-proofs.ts'
import { openOfActivation } from '../stages/open.ts'
import { parsePlaintext } from '../stages/parse.ts'
import { composeEndpoint, describeEncryption } from './compose.ts'

/** The call of a handler. The keys of `activation` opened the envelope; `version` is the one of the application key. */
interface OpenedCall {
  readonly activation: ActivationRow
  readonly version: VersionRow
  readonly dialect: Dialect
  /** The custom object of the application; null without one, and when it was not read. */
  readonly customObject: Readonly<Record<string, unknown>> | null
}

interface OpenedDeclaration<R extends TSchema, Parts> extends Answered<R, OpenedCall, Parts> {
  /** `opensFor` is ACTIVE when absent. The handler refuses activations that are not ACTIVE (v4 §9.4). */
  readonly encrypt: { readonly sharedInfo1: string; readonly opensFor?: EnvelopePolicy }
}

/** Declares an endpoint whose requests and answers are encrypted under the keys of an activation. The members of a request are not read. */
export function openedEndpoint<R extends TSchema, Parts extends ChannelParts>(
  declared: OpenedDeclaration<R, Parts>,
): Endpoint<Parts> {
  const { sharedInfo1, opensFor = 'ACTIVE' } = declared.encrypt
  const place = { scope: 'ACTIVATION_SCOPE', sharedInfo1 } as const
  const endpoint = { ...declared, request: Type.Object({}) }
  return composeEndpoint(endpoint, {
    refusals: { headers: 'ENCRYPTION_FAILED' },
    headers: ['Encryption'],
    checks: [describeEncryption(place)],
    body: { kind: 'envelope', plaintext: endpoint.request },
    async serve(received, { parts, refusals: { headers: refusal }, parse, handle, serialize }) {
      const { context, envelope } = readUnsignedEnvelope(received, place, refusal)
      const toOpen = await findEnvelope(parts, context, envelope, opensFor)
      const opened = await openOfActivation(parts, received.protocol, toOpen, opensFor, refusal)
      parsePlaintext(parse, opened.plaintext, { plaintext: refusal })
      await useUp(parts, opened.uniqueValues, refusal)
      const { activation, version } = opened
      const { customObject = null } = toOpen
      const call = { activation, version, dialect: received.dialect, customObject }
      return sealAnswer(parts, opened, serialize(await handle(call)))
    },
  })
}
