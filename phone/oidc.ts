// Carries out the app's side of a login at an OpenID provider of the bank: makes the address for the user's browser, and reads the code in the
// address at which the browser ends (RFC 6749 §4.1, RFC 7636).
import { createHash, randomBytes } from 'node:crypto'

/** The path for the settings of a provider (v3 §8.8). */
export const OIDC_CONFIG_PATH = '/api/config/oidc'

/** The settings of a provider, as a server answers them. */
export interface OidcConfig {
  readonly providerId: string
  readonly clientId: string
  readonly scopes: string
  readonly authorizeUri: string
  readonly redirectUri: string
}

/** The values of one login that the app keeps while its user is in the browser. */
export interface OidcSession {
  readonly providerId: string
  /** The address that the browser opens. */
  readonly url: string
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
}

/** Begins a login with values that nobody else knows. */
export function beginLogin({ providerId, clientId, scopes, authorizeUri, redirectUri }: OidcConfig): OidcSession {
  const [state, nonce, codeVerifier] = [random(), random(), random()]
  const url = new URL(authorizeUri)
  const query = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: scopes,
    state,
    nonce,
    code_challenge: challengeOf(codeVerifier),
    code_challenge_method: 'S256',
  }
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return { providerId, url: url.href, state, nonce, codeVerifier }
}

/** The S256 challenge of a verifier. */
export const challengeOf = (codeVerifier: string): string => createHash('sha256').update(codeVerifier).digest('base64url')

/** The members of an activation, made from the address at which the browser ended. Throws when it is of another login, or has no code. */
export function identityOf(session: OidcSession, redirectedTo: string): Readonly<Record<string, string>> {
  const query = new URL(redirectedTo).searchParams
  if (query.get('state') !== session.state) throw new Error('the address is not of this login')
  const code = query.get('code')
  if (code === null) throw new Error(`the login failed: ${query.get('error') ?? 'there is no code in the address'}`)
  const { providerId, nonce, codeVerifier } = session
  return { method: 'oidc', providerId, code, nonce, codeVerifier }
}

const random = (): string => randomBytes(32).toString('base64url')
