// Verifies ID tokens (OpenID Connect Core 1.0, 3.1.3.7), and reads the user id from them (cloud §10.1).
import type { JWTPayload, JWTVerifyGetKey } from 'jose'
import * as errors from 'jose/errors'
import { jwtVerify } from 'jose/jwt/verify'
import { sha2 } from '../../crypto/hash.ts'
import { equalConstantTime, utf8 } from '../../lib/bytes.ts'
import { isIdentifier } from '../../lib/identifier.ts'
import { findMemberTwice } from '../../lib/json.ts'
import type { OidcSettings } from './provider.ts'

/** What a token is checked against. */
interface IdTokenTerms {
  readonly settings: Pick<OidcSettings, 'issuer' | 'clientId' | 'algorithms' | 'userIdClaim'>
  readonly keys: JWTVerifyGetKey
  /** The nonce of the app's request. */
  readonly nonce: string
  /** The access token that came with the ID token. */
  readonly accessToken: string
  /** Milliseconds since 1970. */
  readonly now: number
}

/** The error for a refused token. The message has the reason, and nothing from the token. */
export class IdTokenRefused extends Error {}

/** The user id in a genuine token. Throws IdTokenRefused, and the error of `keys` when there are none. */
export async function readIdToken(idToken: string, terms: IdTokenTerms): Promise<string> {
  const { settings, keys, nonce, accessToken, now } = terms
  const { payload, protectedHeader } = await jwtVerify(idToken, keys, {
    issuer: settings.issuer,
    audience: settings.clientId,
    algorithms: [...settings.algorithms],
    clockTolerance: TOLERANCE_SECONDS,
    currentDate: new Date(now),
    requiredClaims: ['exp', 'iat', 'sub'],
  }).catch((error: unknown) => {
    // Its message repeats a name from the header.
    if (error instanceof errors.JOSENotSupported) throw new IdTokenRefused(error.code)
    if (error instanceof errors.JOSEError) throw new IdTokenRefused(error.message)
    // The provider publishes a key that is too short, no point of its curve, or short of a member.
    const isOfKey = error instanceof TypeError || error instanceof DOMException
    throw isOfKey ? new IdTokenRefused('its key cannot be used', { cause: error }) : error
  })
  for (const part of idToken.split('.', 2))
    if (findMemberTwice(Buffer.from(part, 'base64url').toString()) !== undefined)
      throw new IdTokenRefused('a member stands twice')
  requireParty(payload, settings.clientId)
  requireIssued(payload, now)
  if (typeof payload['nonce'] !== 'string' || !equalConstantTime(utf8(payload['nonce']), utf8(nonce)))
    throw new IdTokenRefused('the nonce is not that of the request')
  requireAccessTokenHash(payload['at_hash'], protectedHeader.alg, accessToken)
  const userId = Object.hasOwn(payload, settings.userIdClaim) ? payload[settings.userIdClaim] : undefined
  if (typeof userId === 'string' && isIdentifier(userId) && userId.isWellFormed()) return userId
  throw new IdTokenRefused(`the claim ${settings.userIdClaim} is no user id`)
}

/** Refuses a token for several audiences without `azp`, and one whose `azp` is not pawl's client. */
function requireParty({ aud, azp }: JWTPayload, clientId: string): void {
  const isForSeveral = Array.isArray(aud) && aud.length > 1
  if ((isForSeveral || azp !== undefined) && azp !== clientId) throw new IdTokenRefused('it was issued to another client')
}

/** Checks `iat`, because jose checks only `exp`. */
function requireIssued({ iat = 0 }: JWTPayload, now: number): void {
  if (iat > now / 1000 + TOLERANCE_SECONDS) throw new IdTokenRefused('"iat" is in the future')
}

/** OpenID Connect Core 1.0, 3.1.3.6: the left half of the hash, by the hash function of the signature. */
function requireAccessTokenHash(given: unknown, algorithm: string, accessToken: string): void {
  if (given === undefined) return
  const hash = sha2(BITS[algorithm.slice(-3)] ?? 512, utf8(accessToken))
  const expected = Buffer.from(hash.subarray(0, hash.length / 2)).toString('base64url')
  if (typeof given !== 'string' || !equalConstantTime(utf8(given), utf8(expected)))
    throw new IdTokenRefused('"at_hash" is of another access token')
}

/** The bits of the hash, by the end of the algorithm's name; EdDSA has 512. */
const BITS: Readonly<Record<string, 256 | 384 | 512>> = { '256': 256, '384': 384, '512': 512 }
/** How far the clocks of pawl and the provider may differ. */
const TOLERANCE_SECONDS = 60
