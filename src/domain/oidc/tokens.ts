// Redeems a code at the token endpoint of a provider (RFC 6749 §4.1.3), verifies the ID token in the answer (OpenID Connect Core 1.0, 3.1.3.7), and
// reads the user id from it (cloud §10.1).
import type { JWTPayload, JWTVerifyGetKey } from 'jose'
import * as errors from 'jose/errors'
import { jwtVerify } from 'jose/jwt/verify'
import type * as oauth4webapi from 'oauth4webapi'
import { readSigningKey } from '../../crypto/signing-key.ts'
import { describeStatus, OutboundError, sendOutbound, type TargetRules } from '../../lib/outbound.ts'
import type { OidcSettings } from './provider.ts'
import { sha2 } from '../../crypto/hash.ts'
import { equalConstantTime, utf8 } from '../../lib/bytes.ts'
import { isIdentifier } from '../../lib/identifier.ts'
import { findMemberTwice } from '../../lib/json.ts'

interface TokenRequest {
  readonly settings: OidcSettings
  readonly tokenEndpoint: string
  /** The client secret, or the private key in PEM; empty where the client has none. */
  readonly credentials: string
  readonly code: string
  readonly codeVerifier: string
  readonly timeoutMs: number
  readonly rules: TargetRules
  /** Milliseconds by which the clock of the database is ahead of the system's. */
  readonly clockDifferenceMs: number
}

interface Tokens {
  readonly idToken: string
  readonly accessToken: string
}

/**
 * Redeems a code. Throws OutboundError, without secrets in it, for every answer without tokens. Client and authentication are made for each call,
 * so no secret of one client is sent for another.
 */
export async function requestTokens(request: TokenRequest): Promise<Tokens> {
  const { settings, tokenEndpoint, code, codeVerifier } = request
  // The module is loaded for the first code. It uses Node's fetch, which takes memory.
  const oauth = await import('oauth4webapi')
  const server = {
    issuer: settings.issuer,
    token_endpoint: tokenEndpoint,
    // The accepted algorithms come from the configuration, never from the provider.
    id_token_signing_alg_values_supported: [...settings.algorithms],
  }
  const client: oauth4webapi.Client = {
    client_id: settings.clientId,
    [oauth.clockSkew]: Math.round(request.clockDifferenceMs / 1000),
    [oauth.clockTolerance]: 60,
  }
  const parameters = {
    code,
    redirect_uri: settings.redirectUri,
    client_id: settings.clientId,
    code_verifier: codeVerifier,
  }
  try {
    const response = await oauth.genericTokenEndpointRequest(
      server,
      client,
      authenticationOf(oauth, request),
      'authorization_code',
      parameters,
      {
        [oauth.customFetch]: (url: string, options: oauth4webapi.CustomFetchOptions<'POST', URLSearchParams>) =>
          send(url, options, request),
        [oauth.allowInsecureRequests]: tokenEndpoint.startsWith('http:'),
      },
    )
    const { id_token: idToken, access_token: accessToken } = await oauth.processGenericTokenEndpointResponse(
      server,
      client,
      response,
    )
    if (idToken === undefined) throw new OutboundError('it answered without an ID token: look at the scope openid')
    return { idToken, accessToken }
  } catch (error) {
    if (error instanceof OutboundError) throw error
    // The new error does not have this one as its cause: it holds the answer, which may contain tokens.
    if (error instanceof oauth.ResponseBodyError)
      throw new OutboundError(
        `it refused the code: ${/^[\w-]{1,64}$/.test(error.error) ? error.error : 'an error without a name'}`,
      )
    throw new OutboundError(`its answer is not to be used: ${error instanceof Error ? error.message : 'no error'}`)
  }
}

type OAuth = typeof oauth4webapi

function authenticationOf(oauth: OAuth, { settings, credentials }: TokenRequest): oauth4webapi.ClientAuth {
  const { clientAuthentication, keyId } = settings
  if (clientAuthentication === 'none') return oauth.None()
  if (clientAuthentication === 'client_secret_post') return oauth.ClientSecretPost(credentials)
  if (clientAuthentication === 'client_secret_basic') return oauth.ClientSecretBasic(credentials)
  const key = readSigningKey(credentials)
  if (key === undefined) throw new OutboundError('the private key of the client is none')
  return oauth.PrivateKeyJwt(keyId === null ? key : { key, kid: keyId })
}

async function send(
  url: string,
  { headers, body }: oauth4webapi.CustomFetchOptions<'POST', URLSearchParams>,
  { timeoutMs, rules }: TokenRequest,
): Promise<Response> {
  const answer = await sendOutbound({
    url,
    method: 'POST',
    headers,
    body: body.toString(),
    timeoutMs,
    answerBytesMax: ANSWER_BYTES_MAX + 1,
    rules,
  })
  if (answer.body.length > ANSWER_BYTES_MAX) throw new OutboundError(`it answered with more than ${ANSWER_BYTES_MAX} bytes`)
  // With 400 and 401 the body has an error code (RFC 6749 §5.2).
  if (![200, 400, 401].includes(answer.status))
    throw new OutboundError(`it ${describeStatus(answer.status, 'clientAuthentication')}`)
  const contentType = answer.headers['content-type']
  return new Response(new Uint8Array(answer.body), {
    status: answer.status,
    headers: typeof contentType === 'string' ? { 'content-type': contentType } : {},
  })
}

/** The values that an ID token must match. */
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

/** The error for a refused token. Its message has the reason, and nothing from the token. */
export class IdTokenRefused extends Error {}

/** Reads the user id of a genuine token. Throws IdTokenRefused for other tokens, and KeysMissing when `keys` has no keys. */
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
    // The message repeats a name from the header of the token.
    if (error instanceof errors.JOSENotSupported) throw new IdTokenRefused(error.code)
    if (error instanceof errors.JOSEError) throw new IdTokenRefused(error.message)
    // The provider publishes an unusable key: it is too short, not a point of its curve, or lacks a member.
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

/** Checks `at_hash`: the left half of the hash of the access token, by the hash function of the signature (OpenID Connect Core 1.0, 3.1.3.6). */
function requireAccessTokenHash(given: unknown, algorithm: string, accessToken: string): void {
  if (given === undefined) return
  const hash = sha2(BITS[algorithm.slice(-3)] ?? 512, utf8(accessToken))
  const expected = Buffer.from(hash.subarray(0, hash.length / 2)).toString('base64url')
  if (typeof given !== 'string' || !equalConstantTime(utf8(given), utf8(expected)))
    throw new IdTokenRefused('"at_hash" is of another access token')
}

const ANSWER_BYTES_MAX = 64 * 1024
/** The bits of the hash, by the end of the algorithm's name; EdDSA has 512. */
const BITS: Readonly<Record<string, 256 | 384 | 512>> = { '256': 256, '384': 384, '512': 512 }
/** The clocks of pawl and of the provider may differ by so much. */
const TOLERANCE_SECONDS = 60
