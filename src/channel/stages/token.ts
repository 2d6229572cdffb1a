// Checking a token header (v3 §11.3): window, digest, then whether its nonce was used before. Nothing is used up here.
import { places } from '../../domain/secrets/secrets.ts'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import type { Factors, Protocol, TokenHeader } from '../../protocol/protocol.ts'
import { findToken } from '../../storage/tokens.ts'
import { anyUniqueValueUsed, type UniqueValue } from '../../storage/unique-values.ts'
import type { ChannelParts } from '../parts.ts'
import { isInWindow, tokenValue } from '../replay.ts'
import type { Received } from './receive.ts'

/** The activation that a token names, with its owner. */
export interface TokenBearer {
  readonly activationId: string
  readonly applicationId: string
  readonly userId: string
}

export interface AcceptedToken {
  readonly bearer: TokenBearer
  /** Used up once the request is found genuine as a whole; nothing where the header may come again. */
  readonly uniqueValues: readonly UniqueValue[]
}

export interface TokenTerms {
  readonly resourceId: string
  /** Factor combinations a token must have been made with. */
  readonly factors: readonly Factors[]
  /** The header may come again within its window, nothing is written. */
  readonly isRepeatable: boolean
}

/** Checks the token header. Refuses a request without one (`headerMissing`), and everything that is wrong with it (`token`). */
export async function acceptToken(
  parts: ChannelParts,
  { headers, protocol }: Received,
  terms: TokenTerms,
  codes: { readonly headerMissing: ErrorCode; readonly token: ErrorCode },
): Promise<AcceptedToken> {
  if (headers.token === undefined) throw new PawlError(codes.headerMissing, { detail: 'no token header' })
  const header = protocol.parseTokenHeader(headers.token, headers.schemes)
  const accepted = header && (await checkToken(parts, protocol, header, terms))
  if (accepted === undefined) throw new PawlError(codes.token, { detail: 'the token header is not accepted' })
  return accepted
}

/** Undefined for everything that is wrong with it. The log knows which. */
async function checkToken(
  parts: ChannelParts,
  protocol: Protocol,
  header: TokenHeader,
  { resourceId, factors, isRepeatable }: TokenTerms,
): Promise<AcceptedToken | undefined> {
  const note = (result: string): void =>
    parts.events.authenticationChecked({ version: header.version, type: 'token', result: result.replaceAll(' ', '_') })
  const refuse = (reason: string, activationId = ''): undefined => {
    note(reason)
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
  const uniqueValues = isRepeatable ? [] : [tokenValue(header, windowSeconds)]
  const isUsed = await anyUniqueValueUsed(parts.db, uniqueValues)
  if (token === undefined) return refuse('token unknown')
  const { activationId, applicationId, userId } = token
  if (!isRight) return refuse('token digest wrong', activationId)
  if (!isInWindow(platform.now(), header.timestamp, windowSeconds))
    return refuse('token timestamp outside the window', activationId)
  if (token.state !== 'ACTIVE') return refuse('activation_invalid_state', activationId)
  if (isUsed) return refuse('token header used before', activationId)
  if (!factors.some((allowed) => allowed === token.factors)) return refuse('token of other factors', activationId)
  note('accepted')
  return { bearer: { activationId, applicationId, userId }, uniqueValues }
}
