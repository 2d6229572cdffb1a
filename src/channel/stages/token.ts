// Checks a token header (v3 §11.3): window, digest, then whether its nonce was used before. Nothing is used up here.
import type { RecordKeys } from '../../domain/secrets/record-keys.ts'
import { places, unlessAltered } from '../../domain/secrets/secrets.ts'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import type { Factors, Protocol, TokenHeader } from '../../protocol/protocol.ts'
import type { OwnedActivation } from '../../storage/activation/find.ts'
import type { FoundToken } from '../../storage/request/lookup.ts'
import type { TokenRow } from '../../storage/token/tokens.ts'
import type { UniqueValue } from '../../storage/activation/unique-values.ts'
import type { ChannelParts } from '../parts.ts'
import { isInWindow, tokenValue } from '../replay.ts'
import { findToken } from './find-proofs.ts'
import { inStage } from '../../lib/trace.ts'
import type { Received } from './receive.ts'

interface AcceptedToken {
  readonly bearer: OwnedActivation
  /** The values to use up once the whole request is found genuine. Empty if a phone may repeat the header. */
  readonly uniqueValues: readonly UniqueValue[]
}

interface TokenTerms {
  readonly resourceId: string
  /** The combinations of factors with which the token must have been made. */
  readonly factors: readonly Factors[]
  /** Whether a phone may repeat the header within its window. Nothing is then written. */
  readonly isRepeatable: boolean
}

/** The parsed token header; undefined without one, and for one that cannot be parsed. */
export const readToken = ({ headers, protocol }: Received): TokenHeader | undefined =>
  headers.token === undefined ? undefined : protocol.parseTokenHeader(headers.token, headers.schemes)

/**
 * Checks the token header. Throws `code` for a request without one, and for every fault of it. `found` has the rows that were read for it;
 * without `found` they are read here.
 */
export async function acceptToken(
  parts: ChannelParts,
  received: Received,
  terms: TokenTerms,
  code: ErrorCode,
  found?: FoundToken,
): Promise<AcceptedToken> {
  return await inStage('check token', async () => {
    if (received.headers.token === undefined) throw new PawlError(code, { detail: 'no token header' })
    const header = readToken(received)
    const judged = header && judgeToken(parts, received.protocol, header, terms, found ?? (await findToken(parts, header)))
    if (!judged?.isRight) throw new PawlError(code, { detail: 'the token header is not accepted' })
    return judged
  })
}

/** The reason why a token header is not accepted. */
type TokenRefusal = 'UNKNOWN' | 'DIGEST_WRONG' | 'TIME' | 'STATE' | 'USED' | 'FACTORS_NOT_ALLOWED'

/** The judgement of a token header. Nothing is used up yet. */
export type JudgedToken =
  | ({ readonly isRight: true } & AcceptedToken)
  | { readonly isRight: false; readonly reason: TokenRefusal }

/** The secret of a token, 16 or 32 bytes. It is cached, because phones poll with it. Undefined if it was altered in the database. */
const openTokenSecret = (recordKeys: RecordKeys, token: TokenRow): Uint8Array | undefined =>
  unlessAltered(() => recordKeys.openCached(places.tokenSecret(token), token.tokenSecret, (secret) => secret, { areBytes: true }))

/** Judges a token header by the rows that were read for it, and logs the reason of a refusal. */
export function judgeToken(
  parts: ChannelParts,
  protocol: Protocol,
  header: TokenHeader,
  { resourceId, factors, isRepeatable }: TokenTerms,
  { token, isTokenUsed }: FoundToken,
): JudgedToken {
  const note = (result: string): void =>
    parts.events.authenticationChecked({ version: header.version, type: 'token', result: result.replaceAll(' ', '_') })
  const refuse = (reason: TokenRefusal, told: string, activationId = ''): JudgedToken => {
    note(told)
    parts.events.authenticationFailed({ activationId, resourceId, reason: told })
    return { isRight: false, reason }
  }
  const { recordKeys, settings, platform } = parts
  const known = token && openTokenSecret(recordKeys, token)
  // An unknown token is checked against a secret that nobody knows, so that it takes the time of a known one.
  const secret = known ?? platform.randomBytes(protocol.tokenSecretLength)
  const isRight = protocol.verifyTokenDigest(secret, header)
  const windowSeconds = protocol.hasShortTokenWindow(header.version)
    ? settings.requestWindowSeconds
    : settings.legacyTokenWindowSeconds
  const uniqueValues = isRepeatable ? [] : [tokenValue(header, windowSeconds)]
  if (token === undefined) return refuse('UNKNOWN', 'token unknown')
  const { activationId, applicationId, userId } = token
  if (!isRight) return refuse('DIGEST_WRONG', 'token digest wrong', activationId)
  if (!isInWindow(platform.now(), header.timestamp, windowSeconds))
    return refuse('TIME', 'token timestamp outside the window', activationId)
  if (token.state !== 'ACTIVE') return refuse('STATE', 'activation_invalid_state', activationId)
  if (isTokenUsed && !isRepeatable) return refuse('USED', 'token header used before', activationId)
  if (!factors.some((allowed) => allowed === token.factors))
    return refuse('FACTORS_NOT_ALLOWED', 'token of other factors', activationId)
  note('accepted')
  return { isRight: true, bearer: { activationId, applicationId, userId }, uniqueValues }
}
