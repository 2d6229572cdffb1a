// Encrypted in activation scope (v3 §5.4, order "E"): an envelope that opens proves the activation, and there is no code.
import type { Static, TSchema } from '@sinclair/typebox'
import { compileParser } from '../../http/validation.ts'
import { inStage } from '../../lib/trace.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { VersionRow } from '../../storage/application/version.ts'
import type { Declaration, Endpoint } from '../endpoint.ts'
import type { Dialect } from '../headers.ts'
import type { ChannelParts } from '../parts.ts'
import { sealAnswer, useUp } from '../stages/answer.ts'
import { readAnyAuthorization } from '../stages/authorization.ts'
import { findContext, readEncryption, readEnvelope } from '../stages/envelope.ts'
import { findEnvelope, findStatusEnvelope } from '../stages/find-proofs.ts'
import { openOfActivation } from '../stages/open.ts'
import { parsePlaintext } from '../stages/parse.ts'
import { receive } from '../stages/receive.ts'
import { describeEncryption } from './facts.ts'

export interface OpenedCall<Request> {
  /** The plaintext, parsed and validated. */
  readonly request: Request
  /** The activation whose keys opened it. */
  readonly activation: ActivationRow
  readonly applicationKey: string
  /** Of the application key. */
  readonly version: VersionRow
  readonly dialect: Dialect
  /** JSON text, of the application; null without one, and where it is not read. */
  readonly customObjectText: string | null
}

interface OpenedDeclaration<Q extends TSchema, R extends TSchema, Parts> extends Declaration<R> {
  readonly encrypt: {
    readonly sharedInfo1: string
    /** Envelopes of activations and versions that are not in use open too: the handler refuses them (v4 §9.4). */
    readonly isStateLeftToHandler?: boolean
    /** The keys that a pending upgrade brings open it too (v4 §10.3), and the custom object of the application is read with them. */
    readonly isUpgradeSeen?: boolean
  }
  /** Schema of the plaintext. */
  readonly request: Q
  readonly handle: (call: OpenedCall<Static<Q>>, parts: Parts) => Promise<Static<R>>
}

/** Declares an endpoint whose requests and answers are encrypted under the keys of an activation. */
export function openedEndpoint<Q extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: OpenedDeclaration<Q, R, Parts>,
): Endpoint<Parts> {
  const { sharedInfo1, isStateLeftToHandler = false, isUpgradeSeen = false } = declared.encrypt
  const find = isUpgradeSeen ? findStatusEnvelope : findWithoutCustomObject
  const place = { scope: 'ACTIVATION_SCOPE', sharedInfo1 } as const
  const terms = { isStateChecked: !isStateLeftToHandler, isVersionChecked: !isStateLeftToHandler }
  return {
    ...declared,
    flow: {
      refuses: ['ENCRYPTION_FAILED', 'REQUEST_INVALID'],
      headers: ['Encryption'],
      checks: [describeEncryption(place)],
      body: { kind: 'envelope', plaintext: declared.request, isOfLast: false },
    },
    prepare(parts, protocols) {
      const parse = compileParser(declared.request)
      return async (request, serialize) => {
        const received = receive(protocols, request, RECEIVE)
        const { protocol, dialect } = received
        const header = readAnyAuthorization(received, 'ENCRYPTION_FAILED') ?? readEncryption(received, protocol)
        const context = findContext(header, place, 'ENCRYPTION_FAILED')
        const envelope = readEnvelope(protocol, context, request.body, 'ENCRYPTION_FAILED')
        const { toOpen, customObjectText } = await find(parts, context, envelope)
        const opened = await openOfActivation(parts, protocol, toOpen, terms, 'ENCRYPTION_FAILED')
        const input = parsePlaintext(parse, opened.plaintext, { plaintext: 'ENCRYPTION_FAILED', request: 'REQUEST_INVALID' })
        await useUp(parts, opened.uniqueValues, 'ENCRYPTION_FAILED')
        const { applicationKey } = context
        const { activation, version } = opened
        const call = { request: input, activation, applicationKey, version, dialect, customObjectText }
        const answer = await inStage('handle', () => declared.handle(call, parts))
        return sealAnswer(parts, opened, serialize(answer))
      }
    },
  }
}

const findWithoutCustomObject: typeof findStatusEnvelope = async (parts, context, envelope) => ({
  toOpen: await findEnvelope(parts, context, envelope),
  customObjectText: null,
})

const RECEIVE = { isJson: true, contradiction: 'ENCRYPTION_FAILED' } as const
