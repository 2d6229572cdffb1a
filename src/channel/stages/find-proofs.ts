// What the envelope and the token of a request name, as it is stored: one read for all of it, and one where the request names less or
// nothing that exists.
import type { Envelope, EnvelopeContext, TokenHeader } from '../../protocol/protocol.ts'
import type { RequestParties } from '../../storage/activation/parties.ts'
import type { FoundToken, Proofs } from '../../storage/activation/proofs.ts'
import { findUpgradedParties } from '../../storage/activation/upgrade.ts'
import type { ChannelParts } from '../parts.ts'
import { envelopeValue, tokenValue } from '../replay.ts'
import type { EnvelopeToOpen } from './envelope-keys.ts'

type LookUpParts = Pick<ChannelParts, 'db' | 'authenticationStore' | 'platform' | 'settings'>

/**
 * Version and activation of an envelope, its key, and whether it was used before. `isUpgradeSeen`: the activation as a pending upgrade makes
 * it (v4 §10.3).
 */
export async function findEnvelope(
  parts: LookUpParts,
  context: EnvelopeContext,
  envelope: Envelope,
  { isUpgradeSeen }: { readonly isUpgradeSeen: boolean } = { isUpgradeSeen: false },
): Promise<EnvelopeToOpen> {
  if (!isUpgradeSeen) return toRequest({ context, envelope }, await lookUp(parts, { context, envelope }, { parties: context }))
  const { applicationKey, activationId = '' } = context
  const parties = await findUpgradedParties(parts.db, { applicationKey, activationId, at: new Date(parts.platform.now()) })
  return findEnvelopeOf(parts, context, envelope, parties)
}

/** The same where version and activation were read before. */
export async function findEnvelopeOf(
  parts: LookUpParts,
  context: EnvelopeContext,
  envelope: Envelope,
  parties: RequestParties,
): Promise<EnvelopeToOpen> {
  return { ...toRequest({ context, envelope }, await lookUp(parts, { context, envelope }, {})), parties }
}

/** The same together with the token of a header; undefined where the request has none that can be read. */
export async function findEnvelopeAndToken(
  parts: LookUpParts,
  context: EnvelopeContext,
  envelope: Envelope,
  token: TokenHeader | undefined,
): Promise<{ readonly request: EnvelopeToOpen; readonly found: FoundToken }> {
  const found = await lookUp(parts, { context, envelope }, { parties: context, token })
  return { request: toRequest({ context, envelope }, found), found }
}

/** The token of a header alone. */
export const findToken = (parts: LookUpParts, token: TokenHeader): Promise<FoundToken> => lookUp(parts, undefined, { token })

type Sealed = Pick<EnvelopeToOpen, 'context' | 'envelope'>

const toRequest = (sealed: Sealed, { parties, temporaryKey, isEnvelopeUsed }: Proofs): EnvelopeToOpen => ({
  ...sealed,
  parties,
  temporaryKey,
  isUsed: isEnvelopeUsed,
})

function lookUp(
  { authenticationStore, platform, settings: { requestWindowSeconds } }: LookUpParts,
  sealed: Sealed | undefined,
  { parties, token }: { readonly parties?: EnvelopeContext; readonly token?: TokenHeader | undefined },
): Promise<Proofs> {
  const envelopeUse = sealed && envelopeValue(sealed.context, sealed.envelope, requestWindowSeconds)
  return authenticationStore.findProofs({
    applicationKey: parties?.applicationKey ?? '',
    activationId: parties?.activationId ?? '',
    at: new Date(platform.now()),
    temporaryKeyId: sealed?.envelope.temporaryKeyId ?? '',
    envelopeValue: envelopeUse?.valueHash ?? null,
    tokenId: token?.tokenId ?? '',
    tokenValue: token === undefined ? null : tokenValue(token, requestWindowSeconds).valueHash,
  })
}
