// Access tokens of the bank's own authorization server, instead of a password (cloud §2.1): JWTs of OAuth 2 client credentials, as RFC 9068
// has them. pawl keeps nothing of their users; what a token says holds for its request.
import type { JWTPayload } from 'jose'
import * as errors from 'jose/errors'
import { createRemoteJWKSet, customFetch } from 'jose/jwks/remote'
import { jwtVerify } from 'jose/jwt/verify'
import { PawlError } from '../../lib/errors.ts'
import type { Events } from '../../lib/events.ts'
import type { Platform } from '../../lib/platform.ts'
import type { Role } from '../../storage/schema.ts'
import type { Caller } from './credential.ts'

export interface AccessTokenSettings {
  readonly jwtIssuer?: string
  readonly jwtAudience?: string
  readonly jwtJwksUrl?: string
  readonly jwtAlgorithms: readonly string[]
  readonly jwtClockToleranceSeconds: number
  readonly jwtRoleClaim: string
  readonly jwtApplicationClaim: string
}

export interface AccessTokenParts {
  readonly settings: AccessTokenSettings
  readonly platform: Pick<Platform, 'now'>
  readonly events: Pick<Events, 'callerRefused'>
}

/**
 * Who shows a token. Throws CREDENTIALS_INVALID for every fault of it, one answer for all, and UNAVAILABLE while the keys of the authorization
 * server cannot be had.
 */
export type VerifyAccessToken = (token: string, source: string) => Promise<Caller>

/** Undefined where the settings name no authorization server. */
export function createAccessTokens({ settings, platform, events }: AccessTokenParts): VerifyAccessToken | undefined {
  const {
    jwtIssuer: issuer,
    jwtAudience: audience,
    jwtJwksUrl,
    jwtAlgorithms,
    jwtClockToleranceSeconds: clockTolerance,
  } = settings
  if (issuer === undefined || audience === undefined || jwtJwksUrl === undefined) return undefined
  const keys = createKeys(jwtJwksUrl)
  return async (token, source) => {
    try {
      // The signature is looked at before any claim: only who has a genuine token can tell one refused claim from another, by its time.
      const { payload } = await jwtVerify(token, keys, {
        issuer,
        audience,
        algorithms: [...jwtAlgorithms],
        clockTolerance,
        currentDate: new Date(platform.now()),
        requiredClaims: ['exp', 'sub'],
      })
      return toCaller(payload, settings)
    } catch (error) {
      if (error instanceof KeysMissing)
        throw new PawlError('UNAVAILABLE', { detail: 'the keys of the authorization server cannot be had', cause: error })
      const reason = `access token: ${error instanceof errors.JOSEError || error instanceof ClaimRefused ? error.message : 'malformed'}`
      events.callerRefused({ username: undefined, source, reason })
      throw new PawlError('CREDENTIALS_INVALID')
    }
  }
}

/** The JWKS, kept for ten minutes; asked again for an unknown key at most twice a minute, and after a failure at most every five seconds. */
function createKeys(url: string): ReturnType<typeof createRemoteJWKSet> {
  let failedAt = Number.NEGATIVE_INFINITY
  const fetchKeys = async (input: string, init: RequestInit): Promise<Response> => {
    if (performance.now() - failedAt < FAILURE_MS) throw new KeysMissing('failed a moment ago')
    try {
      const response = await fetch(input, init)
      const text = response.status === 200 ? await response.text() : ''
      if (text.length > JWKS_CHARACTERS_MAX || !isKeySet(text)) throw new KeysMissing(`status ${response.status}, or no key set`)
      return new Response(text)
    } catch (error) {
      failedAt = performance.now()
      throw error instanceof KeysMissing ? error : new KeysMissing('no answer', { cause: error })
    }
  }
  return createRemoteJWKSet(new URL(url), {
    cacheMaxAge: CACHE_MS,
    cooldownDuration: COOL_DOWN_MS,
    timeoutDuration: TIMEOUT_MS,
    [customFetch]: fetchKeys,
  })
}

function isKeySet(text: string): boolean {
  try {
    const set: unknown = JSON.parse(text)
    return typeof set === 'object' && set !== null && 'keys' in set && Array.isArray(set.keys)
  } catch {
    return false
  }
}

/** The key set could not be fetched: nothing is known of the token. */
class KeysMissing extends Error {}

/** A genuine token that says nothing that pawl can use. */
class ClaimRefused extends Error {}

function toCaller(payload: JWTPayload, { jwtRoleClaim, jwtApplicationClaim }: AccessTokenSettings): Caller {
  const { sub = '' } = payload
  if (!NAME.test(sub)) throw new ClaimRefused('sub is no name')
  const words = textsOf(claimOf(payload, jwtRoleClaim))
  const roles = ROLES.filter((role) => words.includes(`${PREFIX}${role}`))
  const [role] = roles
  if (role === undefined || roles.length > 1) throw new ClaimRefused(`${jwtRoleClaim} has ${roles.length} roles of pawl, not one`)
  const application = claimOf(payload, jwtApplicationClaim)
  if (application !== undefined && (typeof application !== 'string' || !NAME.test(application)))
    throw new ClaimRefused(`${jwtApplicationClaim} is no application`)
  // No credential has a colon in its name, so nobody is taken for a user of pawl's own.
  return { username: `oauth:${sub}`, role, applicationId: application ?? null }
}

/** A claim by its name, or by the names on the way to it with dots between them. */
function claimOf(payload: JWTPayload, name: string): unknown {
  if (Object.hasOwn(payload, name)) return payload[name]
  return name.split('.').reduce<unknown>((value, part) => {
    const isObject = typeof value === 'object' && value !== null && Object.hasOwn(value, part)
    return isObject ? (value as Readonly<Record<string, unknown>>)[part] : undefined
  }, payload)
}

/** A list of texts, or one text with spaces, as `scope` is. */
function textsOf(claim: unknown): readonly unknown[] {
  if (typeof claim === 'string') return claim.split(' ')
  return Array.isArray(claim) ? (claim as readonly unknown[]) : []
}

const PREFIX = 'pawl:'
const ROLES: readonly Role[] = ['admin', 'integration', 'internal', 'read-only']
const NAME = /^\P{Cc}{1,200}$/u
const CACHE_MS = 600_000
const COOL_DOWN_MS = 30_000
const FAILURE_MS = 5_000
const TIMEOUT_MS = 5_000
const JWKS_CHARACTERS_MAX = 262_144
