// Encrypted in application scope (v3 §5.4, order "E"): every installation of the app has the keys, so an envelope proves nothing about its
// sender.
import type { Static, TSchema } from '@sinclair/typebox'
import { compileParser } from '../../http/validation.ts'
import { inStage } from '../../lib/trace.ts'
import type { Declaration, Endpoint } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { sealAnswer, useUp } from '../stages/answer.ts'
import { readAnyAuthorization } from '../stages/authorization.ts'
import { findContext, readEncryption, readEnvelope } from '../stages/envelope.ts'
import { findEnvelope } from '../stages/find-proofs.ts'
import { openOfApplication } from '../stages/open.ts'
import { parsePlaintext } from '../stages/parse.ts'
import { receive } from '../stages/receive.ts'
import { describeEncryption } from './facts.ts'

export interface OpenedByApplicationCall<Request> {
  /** The plaintext, parsed and validated. */
  readonly request: Request
  readonly applicationKey: string
}

interface OpenedByApplicationDeclaration<Q extends TSchema, R extends TSchema, Parts> extends Declaration<R> {
  readonly encrypt: { readonly sharedInfo1: string }
  /** Schema of the plaintext. */
  readonly request: Q
  readonly handle: (call: OpenedByApplicationCall<Static<Q>>, parts: Parts) => Promise<Static<R>>
}

/** Declares an endpoint whose requests and answers are encrypted under the keys of an application. */
export function openedByApplicationEndpoint<Q extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: OpenedByApplicationDeclaration<Q, R, Parts>,
): Endpoint<Parts> {
  const place = { scope: 'APPLICATION_SCOPE', sharedInfo1: declared.encrypt.sharedInfo1 } as const
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
        const { protocol } = received
        const header = readAnyAuthorization(received, 'ENCRYPTION_FAILED') ?? readEncryption(received, protocol)
        const context = findContext(header, place, 'ENCRYPTION_FAILED')
        const envelope = readEnvelope(protocol, context, request.body, 'ENCRYPTION_FAILED')
        const toOpen = await findEnvelope(parts, context, envelope)
        const opened = await openOfApplication(parts, protocol, toOpen, 'ENCRYPTION_FAILED')
        const input = parsePlaintext(parse, opened.plaintext, { plaintext: 'ENCRYPTION_FAILED', request: 'REQUEST_INVALID' })
        await useUp(parts, opened.uniqueValues, 'ENCRYPTION_FAILED')
        const answer = await inStage('handle', () =>
          declared.handle({ request: input, applicationKey: context.applicationKey }, parts),
        )
        return sealAnswer(parts, opened, serialize(answer))
      }
    },
  }
}

const RECEIVE = { isJson: true, contradiction: 'ENCRYPTION_FAILED' } as const
