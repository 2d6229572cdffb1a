// Verifies access tokens of the bank's own authorization server, which a caller sends instead of a password (cloud §2.1): JWTs of OAuth 2 client
// credentials (RFC 9068). pawl stores nothing about their users. Role and application of a token hold only for its request.
import type { JWTPayload } from 'jose'
import * as errors from 'jose/errors'
import { jwtVerify } from 'jose/jwt/verify'
import { PawlError } from '../../lib/errors.ts'
import { isIdentifier } from '../../lib/identifier.ts'
import { findMemberTwice } from '../../lib/json.ts'
import type { Role } from '../../storage/database/schema.ts'
import type { Caller } from './credential.ts'
import { fetchKeySet, findKeys, KeysMissing } from './key-set.ts'
import { OF_OPERATOR } from '../../lib/outbound.ts'
import type { Platform } from '../../lib/platform.ts'
import type { Events } from '../../log/events.ts'

interface AccessTokenSettings {
  readonly jwtIssuer?: string
  readonly jwtAudience?: string
  readonly jwtJwksUrl?: string
  readonly jwtAlgorithms: readonly string[]
  readonly jwtTypes: readonly string[]
  readonly jwtClockToleranceSeconds: number
  readonly jwtRoleClaim: string
  readonly jwtApplicationClaim: string
}

/**
 * Returns the caller whom a token names. Throws CREDENTIALS_INVALID for every fault of the token, and UNAVAILABLE while the keys of the
 * authorization server cannot be fetched.
 */
export type VerifyAccessToken = (token: string, source: string) => Promise<Caller>

/** Creates the verification of tokens; undefined when the settings name no authorization server. */
export function createAccessTokens({
  settings,
  platform,
  events,
}: {
  readonly settings: AccessTokenSettings
  readonly platform: Pick<Platform, 'now' | 'monotonic'>
  readonly events: Pick<Events, 'callerRefused'>
}): VerifyAccessToken | undefined {
  const {
    jwtIssuer: issuer,
    jwtAudience: audience,
    jwtJwksUrl,
    jwtAlgorithms,
    jwtClockToleranceSeconds: clockTolerance,
  } = settings
  if (issuer === undefined || audience === undefined || jwtJwksUrl === undefined) return undefined
  const ask = { name: 'PAWL_JWT_JWKS_URL', url: jwtJwksUrl, rules: OF_OPERATOR }
  const { find: keys } = findKeys(() => fetchKeySet(ask), ask, platform.monotonic)
  return async (token, source) => {
    try {
      // jose checks the signature before any claim. So only a sender with a genuine token can learn from the time of the answer which claim is
      // refused.
      const { payload, protectedHeader } = await jwtVerify(token, keys, {
        issuer,
        audience,
        algorithms: [...jwtAlgorithms],
        clockTolerance,
        currentDate: new Date(platform.now()),
        requiredClaims: ['exp', 'sub'],
      })
      requireSingleMembers(token)
      requireType(protectedHeader.typ, settings.jwtTypes)
      requireTimes(payload, platform.now(), clockTolerance)
      requireTexts(payload)
      return toCaller(payload, settings)
    } catch (error) {
      if (error instanceof KeysMissing)
        throw new PawlError('UNAVAILABLE', {
          detail: 'the keys of the authorization server cannot be had',
          retryAfterSeconds: 1,
          cause: error,
        })
      events.callerRefused({ username: undefined, source, reason: `access token: ${reasonOf(error)}` })
      throw new PawlError('CREDENTIALS_INVALID')
    }
  }
}

function reasonOf(error: unknown): string {
  // The message repeats a name from the header of the token, and the log must not have texts of strangers.
  if (error instanceof errors.JOSENotSupported) return error.code
  return error instanceof errors.JOSEError || error instanceof ClaimRefused ? error.message : 'malformed'
}

/** The error for a genuine token whose claims pawl cannot use. */
class ClaimRefused extends Error {}

/** Refuses a token with a repeated member: jose takes the last one, but another reader may take the first (RFC 7519 §4). */
function requireSingleMembers(token: string): void {
  for (const part of token.split('.', 2))
    if (findMemberTwice(Buffer.from(part, 'base64url').toString()) !== undefined) throw new ClaimRefused('a member stands twice')
}

/** Throws ClaimRefused for a token of another kind: the server also signs, for example, tokens that end a session. */
function requireType(typ: unknown, types: AccessTokenSettings['jwtTypes']): void {
  // `typ` may be missing (RFC 7519 §5.1). It may be in upper or lower case, and with or without `application/` (RFC 7515 §4.1.9).
  const type = typ === undefined ? 'jwt' : typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : undefined
  if (!types.some((one) => one.toLowerCase() === type)) throw new ClaimRefused('"typ" is of no access token')
}

/** Refuses times that jose would ignore, and a lifetime that is too long: such a time is mostly in milliseconds instead of seconds. */
function requireTimes({ exp, nbf, iat }: JWTPayload, now: number, toleranceSeconds: number): void {
  const seconds = now / 1000 + toleranceSeconds
  for (const time of [exp, nbf, iat])
    if (time !== undefined && !(typeof time === 'number' && time >= 0 && time <= seconds + LIFETIME_SECONDS_MAX))
      throw new ClaimRefused('a time is none, or too far away')
  if (iat !== undefined && iat > seconds) throw new ClaimRefused('"iat" is in the future')
}

/** Refuses claims that identify somebody or something and are no texts, even if pawl does not use them. */
function requireTexts(payload: JWTPayload): void {
  for (const name of ['iss', 'sub', 'azp', 'client_id', 'jti'])
    if (payload[name] !== undefined && typeof payload[name] !== 'string') throw new ClaimRefused(`${name} is no text`)
  for (const name of ['aud', 'scope']) textsOf(payload, name)
}

function toCaller(payload: JWTPayload, { jwtRoleClaim, jwtApplicationClaim }: AccessTokenSettings): Caller {
  const { sub } = payload
  if (!isName(sub)) throw new ClaimRefused('sub is no name')
  const words = textsOf(payload, jwtRoleClaim)
  const roles = ROLES.filter((role) => words.includes(`${PREFIX}${role}`))
  const [role] = roles
  if (role === undefined || roles.length > 1) throw new ClaimRefused(`${jwtRoleClaim} has ${roles.length} roles of pawl, not one`)
  const application = claimOf(payload, jwtApplicationClaim)
  if (application !== undefined && !(isName(application) && isIdentifier(application)))
    throw new ClaimRefused(`${jwtApplicationClaim} is no application`)
  // No credential of pawl has a colon in its name, so no user of pawl has the same name.
  return { username: `oauth:${sub}`, role, applicationId: application ?? null, rights: [] }
}

/** Finds a claim by its name, or by a path of names with dots between them. */
function claimOf(payload: JWTPayload, name: string): unknown {
  if (Object.hasOwn(payload, name)) return payload[name]
  return name.split('.').reduce<unknown>((value, part) => {
    const isObject = typeof value === 'object' && value !== null && Object.hasOwn(value, part)
    return isObject ? (value as Readonly<Record<string, unknown>>)[part] : undefined
  }, payload)
}

/** Returns the texts of a claim: a list, or the words of one text, as in `scope`. */
function textsOf(payload: JWTPayload, name: string): readonly string[] {
  const claim = claimOf(payload, name) ?? []
  const texts: readonly unknown[] = typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : [claim]
  return texts.map((text) => {
    if (typeof text !== 'string') throw new ClaimRefused(`${name} is no text`)
    return text
  })
}

const PREFIX = 'pawl:'
const ROLES: readonly Role[] = ['admin', 'integration', 'internal', 'read-only', 'verification']
/** A name must be well-formed: the database stores every half of a surrogate pair as the same character. */
const isName = (value: unknown): value is string => typeof value === 'string' && NAME.test(value) && value.isWellFormed()
const NAME = /^\P{Cc}{1,200}$/u
/** Providers allow a lifetime of an access token of at most 30 days. */
const LIFETIME_SECONDS_MAX = 31 * 86_400
