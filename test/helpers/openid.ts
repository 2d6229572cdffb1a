// Starts an OpenID provider on 127.0.0.1, by the package `oidc-provider`, and makes codes without a browser.
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'
import { challengeOf } from '../../phone/oidc.ts'

/** The values of a login that the app has. */
export interface TestLogin {
  readonly code: string
  readonly nonce: string
  readonly codeVerifier: string
}

export interface OpenIdServer {
  readonly issuer: string
  /** Paths of all requests so far. */
  readonly paths: readonly string[]
  /** Logs a user in at a client. The code can be used once. */
  readonly logIn: (userId: string, clientId?: string) => Promise<TestLogin>
  readonly close: () => void
}

/**
 * Logs a user in as a browser does, at the address that an app has made, and agrees to every question. Returns the address at which it ends: the
 * redirect URI with the values for the app.
 */
export async function browse(address: string, userId: string): Promise<string> {
  const cookies = new Map<string, string>()
  let next = new URL(address)
  let form: string | undefined
  for (let steps = 0; steps < STEPS_MAX; steps += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { cookie, ...(form !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }) }
    const reply = await fetch(next, {
      redirect: 'manual',
      method: form === undefined ? 'GET' : 'POST',
      headers,
      ...(form !== undefined && { body: form }),
    })
    for (const set of reply.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    const text = await reply.text()
    const to = reply.headers.get('location')
    if (to?.startsWith(REDIRECT_URI)) return to
    if (to !== null) {
      next = new URL(to, next)
      form = undefined
    } else {
      const prompt = /name="prompt" value="(\w+)"/.exec(text)?.[1]
      if (prompt === undefined) throw new Error(`the provider answered ${reply.status}: ${text}`)
      form = new URLSearchParams({ prompt, login: userId, password: 'any' }).toString()
    }
  }
  throw new Error('the login has no end')
}

const STEPS_MAX = 12

export const REDIRECT_URI = 'https://app.bank.example/oidc'
export const CLIENT_SECRET = 'a secret: with signs + and %'

const random = (): string => randomBytes(32).toString('base64url')

/** Clients: `app` sends its secret by HTTP Basic, `posting` in the body; `keyed` signs with the key `jwk`; `open` has no secret. */
export async function startOpenIdServer(jwk: object): Promise<OpenIdServer> {
  const paths: string[] = []
  let serve: ReturnType<Provider['callback']> | undefined
  const server = createServer((request, response) => {
    paths.push(request.url ?? '')
    serve?.(request, response)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = { redirect_uris: [REDIRECT_URI], client_secret: CLIENT_SECRET, grant_types: ['authorization_code'] }
  const provider = new Provider(issuer, {
    clients: [
      { ...client, client_id: 'app', token_endpoint_auth_method: 'client_secret_basic' },
      { ...client, client_id: 'posting', token_endpoint_auth_method: 'client_secret_post' },
      { ...client, client_id: 'keyed', token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [jwk] } },
      { ...client, client_id: 'open', token_endpoint_auth_method: 'none' },
    ].map(({ client_secret, ...rest }) =>
      rest.token_endpoint_auth_method.startsWith('client_secret') ? { ...rest, client_secret } : rest,
    ),
    cookies: { keys: ['of a test'] },
    findAccount: (_context: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
  })
  serve = provider.callback()
  return {
    issuer,
    paths,
    logIn: async (accountId, clientId = 'app') => {
      const [nonce, codeVerifier] = [random(), random()]
      const grant = new provider.Grant({ accountId, clientId })
      grant.addOIDCScope('openid')
      const code = new provider.AuthorizationCode({
        accountId,
        client: await provider.Client.find(clientId),
        grantId: await grant.save(),
        redirectUri: REDIRECT_URI,
        scope: 'openid',
        nonce,
        codeChallenge: challengeOf(codeVerifier),
        codeChallengeMethod: 'S256',
      })
      return { code: await code.save(), nonce, codeVerifier }
    },
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
