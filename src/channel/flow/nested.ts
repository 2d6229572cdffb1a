// Serves requests with two envelopes, one within the other, both in application scope (activation/create: v3 §8.3, v4 §8.4).
import type { Static, TSchema } from '@sinclair/typebox'
import type { ExchangeRequest } from '../../domain/activation/activation.ts'
import { compileParser } from '../../http/validation.ts'
import { PawlError } from '../../lib/errors.ts'
import type { ExchangeBasis } from '../../storage/activation/keys.ts'
import type { UniqueValue } from '../../storage/activation/unique-values.ts'
import type { VersionRow } from '../../storage/application/version.ts'
import type { Answered, Encrypted, Endpoint, Parsed } from '../endpoint.ts'
import type { ChannelParts } from '../parts.ts'
import { refuseUsed, sealAnswer, sealValue, usingUp } from '../stages/answer.ts'
import { parseEnvelope, readUnsignedEnvelope } from '../stages/envelope.ts'
import { findEnvelope, findEnvelopeOf } from '../stages/find-proofs.ts'
import { openOfApplication } from '../stages/open.ts'
import { parsePlaintext } from '../stages/parse.ts'
import { composeEndpoint, describeEncryption } from './compose.ts'

/** The call of a handler. `request` is the outer plaintext, `inner` the inner one. */
interface NestedCall<Request, Inner> extends Pick<ExchangeRequest, 'values' | 'useUp' | 'findBasis'> {
  readonly request: Request
  readonly inner: Inner
  /** Seals the inner answer under the key of the inner request, and returns its envelope. */
  readonly sealInner: (value: unknown) => Record<string, string | number>
  /** The application version whose keys opened both envelopes. */
  readonly applicationVersion: VersionRow
  /** Text of the protocol version. */
  readonly version: string
  /** Address of the caller. */
  readonly ip: string
}

/** The declaration. `encrypt` and `request` are those of the outer envelope. */
interface NestedDeclaration<Q extends TSchema, N extends TSchema, R extends TSchema, Parts>
  extends Answered<R, NestedCall<Static<Q>, Static<N>>, Parts>,
    Parsed<Q>,
    Encrypted {
  readonly inner: {
    readonly sharedInfo1: string
    /** Schema of the inner plaintext. */
    readonly request: N
    /** Picks the inner envelope out of the outer plaintext. */
    readonly pick: (request: Static<Q>) => unknown
    /** Whether the inner envelope may be made for another temporary key than the outer one (v4 §8.4). */
    readonly isAnyKeyAccepted: boolean
  }
  /** The hash by which the activation code of the outer plaintext is looked up; null without a code. */
  readonly codeHashOf: (request: Static<Q>, parts: Parts) => Uint8Array | null
  /** The longest body, in bytes. */
  readonly bytesMax: number
}

/** Declares an endpoint with two layers of encryption. The inner envelope has the version and the application key of the outer one. */
export function nestedEndpoint<Q extends TSchema, N extends TSchema, R extends TSchema, Parts extends ChannelParts>(
  declared: NestedDeclaration<Q, N, R, Parts>,
): Endpoint<Parts> {
  const { inner, encrypt, bytesMax } = declared
  const place = { scope: 'APPLICATION_SCOPE', sharedInfo1: encrypt.sharedInfo1 } as const
  const parseInner = compileParser(inner.request)
  return composeEndpoint(declared, {
    refusals: { headers: 'ENCRYPTION_FAILED' },
    headers: ['Encryption'],
    checks: [describeEncryption(place)],
    body: { kind: 'nested', outer: declared.request, inner: inner.request },
    covered: { by: 'envelope', bytesMax },
    async serve(received, { parts, refusals: { headers: refusal }, parse, handle, serialize }) {
      const { protocol } = received
      const { context, envelope } = readUnsignedEnvelope(received, place, refusal)
      const toOpen = await findEnvelope(parts, context, envelope)
      const opened = await openOfApplication(parts, protocol, toOpen, refusal)
      const request = parsePlaintext(parse, opened.plaintext, { plaintext: refusal })

      const innerContext = { ...context, sharedInfo1: inner.sharedInfo1 }
      const innerEnvelope = parseEnvelope(protocol, innerContext, inner.pick(request), 'REQUEST_INVALID')
      const isKeyShared = innerEnvelope.temporaryKeyId === envelope.temporaryKeyId
      if (!inner.isAnyKeyAccepted && !isKeyShared)
        throw new PawlError(refusal, { detail: 'the envelopes are for different temporary keys' })
      // The read of the activation also finds whether the inner envelope was used before.
      const innerToOpen = isKeyShared
        ? { ...toOpen, context: innerContext, envelope: innerEnvelope, isUsed: false }
        : await findEnvelopeOf(parts, innerContext, innerEnvelope, toOpen.parties)
      const openedInner = await openOfApplication(parts, protocol, innerToOpen, refusal, opened)
      const innerInput = parsePlaintext(parseInner, openedInner.plaintext, { plaintext: refusal })

      const values = [...opened.uniqueValues, ...openedInner.uniqueValues]
      const use = { values, applicationKey: context.applicationKey, code: refusal }
      const sealInner = (value: unknown) => sealValue(parts, openedInner, JSON.stringify(value))
      const { version: applicationVersion } = opened
      const codeHash = declared.codeHashOf(request, parts)
      const findBasis = async (left: readonly UniqueValue[]) => {
        const basis = await readBasis(parts, applicationVersion.applicationId, codeHash, left)
        if (basis.isUsed) throw refuseUsed(parts, use)
        return basis
      }
      const { version } = context
      const { ip } = received.client
      const call = { request, inner: innerInput, values, findBasis, sealInner, applicationVersion, version, ip }
      const answer = await usingUp(parts, use, (useUp) => handle({ ...call, useUp }))
      return sealAnswer(parts, opened, serialize(answer))
    },
  })
}

const readBasis = (
  { readExchangeBasis, platform }: ChannelParts,
  applicationId: string,
  codeHash: Uint8Array | null,
  [value, secondValue]: readonly (UniqueValue | undefined)[],
): Promise<ExchangeBasis> =>
  readExchangeBasis({
    applicationId,
    codeHash,
    value: value?.valueHash ?? null,
    secondValue: secondValue?.valueHash ?? null,
    at: new Date(platform.now()),
  })
