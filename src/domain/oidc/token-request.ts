// Redeems a code at the token endpoint of a provider (RFC 6749 §4.1.3). Client and authentication are made anew for each call, so nothing of
// one client can be sent for another.
import type * as oauth4webapi from 'oauth4webapi'
import { readSigningKey } from '../../crypto/signing-key.ts'
import { describeStatus, OutboundError, sendOutbound, type TargetRules } from '../../lib/outbound.ts'
import type { OidcSettings } from './provider.ts'

interface TokenRequest {
  readonly settings: OidcSettings
  readonly tokenEndpoint: string
  /** The client secret, or the private key in PEM; empty where the client has none. */
  readonly credentials: string
  readonly code: string
  readonly codeVerifier: string
  readonly timeoutMs: number
  readonly rules: TargetRules
  /** By how many milliseconds the database's clock is ahead of the system's. */
  readonly clockDifferenceMs: number
}

interface Tokens {
  readonly idToken: string
  readonly accessToken: string
}

/** Redeems a code. Throws OutboundError, without secrets in it, for every answer without tokens. */
export async function requestTokens(request: TokenRequest): Promise<Tokens> {
  const { settings, tokenEndpoint, code, codeVerifier } = request
  // Loaded when a code comes for the first time: it touches Node's fetch, which takes memory.
  const oauth = await import('oauth4webapi')
  const server = {
    issuer: settings.issuer,
    token_endpoint: tokenEndpoint,
    // What may be signed with is configured, never what the provider says of itself.
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
    // The error is no cause of the new one: it holds the answer, and the answer may hold tokens.
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
  // RFC 6749 §5.2 has an error in the body of these.
  if (![200, 400, 401].includes(answer.status))
    throw new OutboundError(`it ${describeStatus(answer.status, 'clientAuthentication')}`)
  const contentType = answer.headers['content-type']
  return new Response(new Uint8Array(answer.body), {
    status: answer.status,
    headers: typeof contentType === 'string' ? { 'content-type': contentType } : {},
  })
}

const ANSWER_BYTES_MAX = 64 * 1024
