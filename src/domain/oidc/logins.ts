// Makes logins at an OpenID provider that bind a phone (cloud §10.1): finds the address of the login for the app, and the user id for a code.
import { createFairQueue, type FairQueue } from '../../lib/fair-queue.ts'
import { JsonFault, parseForeignObject } from '../../lib/json.ts'
import { type KeptAnswer, keepAnswer } from '../../lib/kept-answer.ts'
import { createMemory } from '../../lib/memory.ts'
import { describeStatus, findTargetProblem, OutboundError, sendOutbound, type TargetRules } from '../../lib/outbound.ts'
import { type Platform, systemPlatform } from '../../lib/platform.ts'
import { fetchKeySet, findKeys, type FoundKeys, KeysMissing } from '../credential/key-set.ts'
import type { OidcProvider } from './provider.ts'
import { IdTokenRefused, readIdToken, requestTokens } from './tokens.ts'

/** The values that an app brings from its login in the browser. */
export interface LoginProof {
  readonly code: string
  readonly nonce: string
  readonly codeVerifier: string
}

export interface OidcLogins {
  /** The address to which the app sends its user. Throws OutboundError when discovery is needed and fails. */
  readonly findAuthorizationEndpoint: (provider: OidcProvider) => Promise<string>
  /**
   * Redeems a code, and returns the user id of the ID token, within five seconds. Throws OutboundError for every answer without a user id. Throws
   * UNAVAILABLE when too many logins wait. The code may be used up even if it throws.
   */
  readonly redeem: (provider: OidcProvider, proof: LoginProof) => Promise<string>
}

interface Endpoints {
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly jwksUri: string
}

/** The remembered values of a provider, for its present settings. */
interface Acquaintance {
  readonly endpoints: KeptAnswer<Endpoints>
  /** The key set, with its address. */
  keys: { readonly jwksUri: string; readonly found: FoundKeys } | undefined
  /** The queue of this provider. A provider that hangs takes neither all sockets of the process nor the places of other providers. */
  readonly queue: FairQueue
}

/**
 * Creates the logins. Discovered endpoints and keys are remembered for ten minutes. After a change of a provider's settings every process reads
 * them anew.
 */
export function createOidcLogins(parts: { readonly platform: Platform; readonly settings: TargetRules }): OidcLogins {
  const acquaintances = createMemory<Acquaintance>({ max: PROVIDERS_MAX })

  const acquaintanceOf = (provider: OidcProvider): Acquaintance => {
    const { applicationId, providerId, settings } = provider
    const name = JSON.stringify([applicationId, providerId, settings])
    const known = acquaintances.get(name)
    if (known !== undefined) return known
    const endpoints = keepAnswer(() => findEndpoints(parts, provider), parts.platform.monotonic, FAILURE_MS)
    const queue = createFairQueue({ atOnce: LOGINS_AT_ONCE, waitingMax: LOGINS_WAITING_MAX })
    const acquaintance: Acquaintance = { endpoints, keys: undefined, queue }
    acquaintances.set(name, acquaintance)
    return acquaintance
  }

  const keysOf = (acquaintance: Acquaintance, jwksUri: string): FoundKeys => {
    if (acquaintance.keys?.jwksUri === jwksUri) return acquaintance.keys.found
    const address = { name: 'jwksUri', url: jwksUri, rules: parts.settings }
    const found = findKeys(() => fetchKeySet(address), address, parts.platform.monotonic)
    acquaintance.keys = { jwksUri, found }
    return found
  }

  const redeem = async (provider: OidcProvider, { code, nonce, codeVerifier }: LoginProof, endsAt: number): Promise<string> => {
    const { settings } = provider
    const acquaintance = acquaintanceOf(provider)
    const { tokenEndpoint, jwksUri } = (await acquaintance.endpoints.read(KEPT_MS)).value
    const keys = keysOf(acquaintance, jwksUri)
    // The code can be redeemed only once, and without keys that would be useless.
    await keys.ready()
    const timeoutMs = endsAt - parts.platform.monotonic()
    if (timeoutMs <= 0) throw new OutboundError(TOO_LATE)
    const now = parts.platform.now()
    const { idToken, accessToken } = await requestTokens({
      settings,
      tokenEndpoint,
      credentials: provider.credentials,
      code,
      codeVerifier,
      timeoutMs,
      rules: parts.settings,
      clockDifferenceMs: now - systemPlatform.now(),
    })
    return readIdToken(idToken, { settings, keys: keys.find, nonce, accessToken, now: parts.platform.now() })
  }

  return {
    findAuthorizationEndpoint: (provider) =>
      telling(provider, async () => (await acquaintanceOf(provider).endpoints.read(KEPT_MS)).value.authorizationEndpoint),
    redeem: (provider, proof) =>
      telling(provider, () => {
        const endsAt = parts.platform.monotonic() + LOGIN_MS
        return withinTime(acquaintanceOf(provider).queue.run(() => redeem(provider, proof, endsAt)))
      }),
  }
}

/** Adds the provider's name to a failure for the log. The failure has no text from the phone. */
async function telling<T>({ providerId }: OidcProvider, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const isExpected = error instanceof OutboundError || error instanceof KeysMissing || error instanceof IdTokenRefused
    if (!isExpected) throw error
    const what = error instanceof IdTokenRefused ? 'its ID token is refused: ' : ''
    throw new OutboundError(`OpenID provider ${providerId}: ${what}${error.message}`, { cause: error })
  }
}

/** Rejects after five seconds. Requests that are under way then end by their own limits. */
async function withinTime<T>(work: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new OutboundError(TOO_LATE)), LOGIN_MS)
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

/** The endpoints of the settings, or those that the issuer publishes (OpenID Connect Discovery 1.0, 4). */
async function findEndpoints(parts: { readonly settings: TargetRules }, { settings }: OidcProvider): Promise<Endpoints> {
  const { authorizationEndpoint, tokenEndpoint, jwksUri } = settings
  if (authorizationEndpoint !== null && tokenEndpoint !== null && jwksUri !== null)
    return { authorizationEndpoint, tokenEndpoint, jwksUri }
  const published = await discover(parts, settings.issuer)
  const pick = (given: string | null, name: string): string => {
    const found = given ?? published[name]
    const problem = typeof found === 'string' ? findTargetProblem(found, parts.settings) : 'must be a URL'
    if (typeof found !== 'string' || problem !== undefined) throw new OutboundError(`${name} of its discovery ${problem}`)
    return found
  }
  return {
    authorizationEndpoint: pick(authorizationEndpoint, 'authorization_endpoint'),
    tokenEndpoint: pick(tokenEndpoint, 'token_endpoint'),
    jwksUri: pick(jwksUri, 'jwks_uri'),
  }
}

async function discover(
  { settings }: { readonly settings: TargetRules },
  issuer: string,
): Promise<Readonly<Record<string, unknown>>> {
  const { status, body } = await sendOutbound({
    url: `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
    method: 'GET',
    headers: { accept: 'application/json' },
    body: '',
    timeoutMs: LOGIN_MS,
    answerBytesMax: ANSWER_BYTES_MAX + 1,
    rules: settings,
  })
  if (status !== 200) throw new OutboundError(`its discovery ${describeStatus(status, 'issuer')}`)
  if (body.length > ANSWER_BYTES_MAX) throw new OutboundError(`its discovery answered with more than ${ANSWER_BYTES_MAX} bytes`)
  try {
    const published = parseForeignObject(body)
    if (published['issuer'] === issuer) return published
  } catch (fault) {
    if (!(fault instanceof JsonFault)) throw fault
    throw new OutboundError(`its discovery answered with ${fault.message}`)
  }
  throw new OutboundError('its discovery is of another issuer: write the issuer as the provider does')
}

const TOO_LATE = 'the login took more than 5 s: it has too much to do, or waits for somebody itself'
const LOGIN_MS = 5_000
const KEPT_MS = 600_000
const FAILURE_MS = 5_000
const ANSWER_BYTES_MAX = 256 * 1024
const PROVIDERS_MAX = 1_000
const LOGINS_AT_ONCE = 32
const LOGINS_WAITING_MAX = 128
