// Reads the rows that the envelope and the token of a request name, in one statement. The statement is the same if the request names fewer rows, or
// rows that do not exist.
import { inStage } from '../../lib/trace.ts'
import type { Envelope, EnvelopeContext, TokenHeader } from '../../protocol/protocol.ts'
import type { FoundToken, ProofNames, Proofs, RequestParties } from '../../storage/request/lookup.ts'
import type { ChannelParts } from '../parts.ts'
import { envelopeValue, tokenValue } from '../replay.ts'
import type { EnvelopePolicy, EnvelopeToOpen } from './envelope-keys.ts'

/**
 * Reads version and activation of an envelope, its temporary key, and whether it was used before. For an upgrade it also reads the custom object of
 * the application.
 */
export async function findEnvelope(
  parts: ChannelParts,
  context: EnvelopeContext,
  envelope: Envelope,
  opensFor: EnvelopePolicy = 'ACTIVE',
): Promise<EnvelopeToOpen> {
  const sealed = { context, envelope }
  if (opensFor !== 'UPGRADING') return toRequest(sealed, await lookUp(parts, sealed, { parties: context }))
  const names = nameAll(parts, sealed, { parties: context })
  const found = await inStage('find parties', () => parts.authenticationStore.findStatusProofs(names))
  return { ...toRequest(sealed, found), customObject: found.customObject }
}

/** Reads the rows of an envelope like findEnvelope, but keeps version and activation if they are known already. */
export async function findEnvelopeOf(
  parts: ChannelParts,
  context: EnvelopeContext,
  envelope: Envelope,
  parties: RequestParties,
): Promise<EnvelopeToOpen> {
  // In 3.0 to 3.2 the server's private key opens the envelope. The known activation may come from memory, which lacks that key.
  if (envelope.temporaryKeyId === undefined) return findEnvelope(parts, context, envelope)
  return { ...toRequest({ context, envelope }, await lookUp(parts, { context, envelope }, {})), parties }
}

/** Reads the rows of an envelope like findEnvelope, together with the token of a header, if the request has one that can be parsed. */
export async function findEnvelopeAndToken(
  parts: ChannelParts,
  context: EnvelopeContext,
  envelope: Envelope,
  token: TokenHeader | undefined,
): Promise<{ readonly request: EnvelopeToOpen; readonly found: FoundToken }> {
  const found = await lookUp(parts, { context, envelope }, { parties: context, token })
  return { request: toRequest({ context, envelope }, found), found }
}

/** Reads only the token of a header. */
export const findToken = (parts: ChannelParts, token: TokenHeader): Promise<FoundToken> => lookUp(parts, undefined, { token })

type Sealed = Pick<EnvelopeToOpen, 'context' | 'envelope'>

const toRequest = (sealed: Sealed, { parties, temporaryKey, isEnvelopeUsed }: Proofs): EnvelopeToOpen => ({
  ...sealed,
  parties,
  temporaryKey,
  isUsed: isEnvelopeUsed,
})

interface Named {
  readonly parties?: EnvelopeContext
  readonly token?: TokenHeader | undefined
}

async function lookUp(parts: ChannelParts, sealed: Sealed | undefined, named: Named): Promise<Proofs> {
  const names = nameAll(parts, sealed, named)
  return await inStage('find parties', () => parts.authenticationStore.findProofs(names))
}

function nameAll(
  { platform, settings: { requestWindowSeconds } }: ChannelParts,
  sealed: Sealed | undefined,
  { parties, token }: Named,
): ProofNames {
  const envelopeUse = sealed && envelopeValue(sealed.context, sealed.envelope, requestWindowSeconds)
  return {
    applicationKey: parties?.applicationKey ?? '',
    activationId: parties?.activationId ?? '',
    at: new Date(platform.now()),
    temporaryKeyId: sealed?.envelope.temporaryKeyId ?? '',
    envelopeValue: envelopeUse?.valueHash ?? null,
    tokenId: token?.tokenId ?? '',
    tokenValue: token === undefined ? null : tokenValue(token, requestWindowSeconds).valueHash,
  }
}
