// Checking a token header (v3 §11.3): window, digest, then whether its nonce was used before. Nothing is used up here.
import { places } from '../domain/secrets.ts'
import type { Protocol, TokenHeader } from '../protocol/protocol.ts'
import { findToken } from '../storage/tokens.ts'
import { anyUniqueValueUsed, type UniqueValue } from '../storage/unique-values.ts'
import type { Bearer } from './endpoint.ts'
import type { ChannelParts } from './parts.ts'
import { isInWindow, tokenValue } from './replay.ts'

export interface TokenVerdict {
  readonly bearer: Bearer
  readonly factors: string
  /** Used up once the request is found genuine as a whole; undefined where it may come again. */
  readonly uniqueValue: UniqueValue | undefined
}

/** The token's activation and factors; undefined for everything that is wrong with it. The log knows which. */
export async function authenticateByToken(
  parts: ChannelParts,
  protocol: Protocol,
  header: TokenHeader,
  { resourceId, isRepeatable }: { readonly resourceId: string; readonly isRepeatable: boolean },
): Promise<TokenVerdict | undefined> {
  const refuse = (reason: string, activationId = ''): undefined => {
    parts.events.authenticationFailed({ activationId, resourceId, reason })
  }
  const { recordKeys, settings, platform } = parts
  const token = await findToken(parts.db, header.tokenId, new Date(platform.now()))
  // An unknown token is checked against a secret that nobody knows, so that it takes the time of a known one.
  const secret = token
    ? recordKeys.open(places.tokenSecret(token.tokenId), token.tokenSecret)
    : platform.randomBytes(protocol.tokenSecretLength)
  const isRight = protocol.verifyTokenDigest(secret, header)
  const windowSeconds = protocol.hasShortTokenWindow(header.version)
    ? settings.requestWindowSeconds
    : settings.legacyTokenWindowSeconds
  const uniqueValue = isRepeatable ? undefined : tokenValue(header, windowSeconds)
  const isUsed = uniqueValue !== undefined && (await anyUniqueValueUsed(parts.db, [uniqueValue]))
  if (token === undefined) return refuse('token unknown')
  if (!isRight) return refuse('token digest wrong', token.activationId)
  if (!isInWindow(platform.now(), header.timestamp, windowSeconds))
    return refuse('token timestamp outside the window', token.activationId)
  if (token.state !== 'ACTIVE') return refuse('activation_invalid_state', token.activationId)
  if (isUsed) return refuse('token header used before', token.activationId)
  const { activationId, applicationId, userId, factors } = token
  return { bearer: { activationId, applicationId, userId }, factors, uniqueValue }
}
