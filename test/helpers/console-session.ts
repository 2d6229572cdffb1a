// Opens a session of the console by plain HTTP, without a browser, with its cookie and the token of its forms.
import { type HttpReply, send } from '../../phone/http.ts'

export interface ConsoleSession {
  /** The name of the cookie. */
  readonly cookie: string
  /** The value of the cookie. */
  readonly token: string
  readonly formToken: string
  readonly get: (path: string, headers?: Record<string, string>) => Promise<HttpReply>
  /** Sends a form of the page. */
  readonly post: (path: string, form: Record<string, string>, headers?: Record<string, string>) => Promise<HttpReply>
}

const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' }

/** Sends a form without a session. */
export const postForm = (
  url: string,
  path: string,
  form: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<HttpReply> =>
  send(url, {
    method: 'POST',
    path: `/console${path}`,
    headers: { ...FORM, ...headers },
    body: Buffer.from(new URLSearchParams(form).toString()),
  })

/** Sends the form of the sign-in, and returns the answer. */
export const trySignIn = (
  url: string,
  username: string,
  password: string,
  headers: Record<string, string> = {},
): Promise<HttpReply> => postForm(url, '/sign-in', { username, password }, headers)

/** Signs in; throws when the console refuses. */
export async function startSession(url: string, username: string, password: string): Promise<ConsoleSession> {
  const reply = await trySignIn(url, username, password)
  const [, cookie, token] = /^(pawl_console_\d+)=([\w-]{43});/.exec(String(reply.headers['set-cookie'])) ?? []
  if (reply.status !== 303 || cookie === undefined || token === undefined) throw new Error(`HTTP ${reply.status}: not signed in`)
  const get: ConsoleSession['get'] = (path, headers = {}) =>
    send(url, {
      method: 'GET',
      path: `/console${path}`,
      headers: { Cookie: `${cookie}=${token}`, ...headers },
      body: Buffer.alloc(0),
    })
  const formToken = /name="csrf" value="([\w-]+)"/.exec((await get('/')).text)?.[1] ?? ''
  return {
    cookie,
    token,
    formToken,
    get,
    post: (path, form, headers = {}) =>
      postForm(url, path, { csrf: formToken, ...form }, { Cookie: `${cookie}=${token}`, ...headers }),
  }
}
