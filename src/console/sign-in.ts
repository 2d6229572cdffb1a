// Signs users in and out. The password passes the same checks as one of HTTP Basic, with the same waits, queues and log lines.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { beginSession, endSession, isFormTokenOf, readSession, type Session } from '../domain/credential/session.ts'
import { toPawlError } from '../http/errors.ts'
import { type ErrorCode, PawlError } from '../lib/errors.ts'
import { isStorable } from '../lib/json.ts'
import type { Assets } from './assets.ts'
import { sendBare } from './layout.ts'
import { html } from './markup.ts'
import { type ConsoleParts, type Form, formOf, rootOf } from './page.ts'
import { pages } from './pages/index.ts'

/**
 * The name of the cookie. A browser sends a cookie to every port of its host, so the name contains the port of the console. With TLS the prefix
 * prevents other hosts of the domain, and pages without TLS, from setting it.
 */
const nameOf = ({ protocol, host }: FastifyRequest): string => {
  const [, port] = /:(\d{1,5})$/.exec(host) ?? []
  return `${protocol === 'https' ? '__Host-' : ''}pawl_console${port === undefined ? '' : `_${port}`}`
}

/**
 * Demands a session for a route. `onRequest` runs before the body is read, so that no form of a caller without a session is parsed; `turnAway`
 * answers such a caller. `isUse` is that of readSession. `read` returns the session with the form in the body. It throws REQUEST_INVALID for a form
 * without the token of the session.
 */
export function demandSession(
  parts: ConsoleParts,
  isUse: (request: FastifyRequest) => boolean,
  turnAway: (request: FastifyRequest, reply: FastifyReply) => FastifyReply,
) {
  const sessions = new WeakMap<FastifyRequest, Session>()
  return {
    onRequest: async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
      const name = `${nameOf(request)}=`
      const cookies = (request.headers.cookie ?? '').split(';').map((cookie) => cookie.trim())
      const token = cookies.find((cookie) => cookie.startsWith(name))?.slice(name.length) ?? ''
      const source = request.ip
      const session = TOKEN.test(token) ? await readSession(parts, { token, source, isUse: isUse(request) }) : undefined
      if (session === undefined) return turnAway(request, reply)
      sessions.set(request, session)
      return undefined
    },
    read: (request: FastifyRequest, membersMax?: number): { readonly session: Session; readonly form: Form } => {
      const session = sessions.get(request)
      if (session === undefined) throw new TypeError('a page was reached without a session')
      const form = formOf(request, membersMax)
      if (request.method === 'POST' && !isFormTokenOf(session, form.text('csrf')))
        throw new PawlError('REQUEST_INVALID', { detail: 'a form without the token of its session' })
      return { session, form }
    },
  }
}

/** Mounts the form to sign in, and the endpoints of that form and of the button to sign out. */
export function serveSignIn(app: FastifyInstance, parts: ConsoleParts, assets: Assets): void {
  const show = (reply: FastifyReply, next: string, problem?: string, username = ''): FastifyReply =>
    sendBare(assets, reply, 'Sign in', renderForm(rootOf(reply.request), next, problem, username))

  app.get<{ Querystring: { next?: unknown; lost?: unknown } }>('/sign-in', async ({ query: { next, lost } }, reply) =>
    show(reply, readNext(next), lost === undefined ? undefined : LOST),
  )

  app.post('/sign-in', async (request, reply) => {
    const form = formOf(request, MEMBERS_MAX)
    const [username, next] = [form.text('username'), readNext(form.text('next'))]
    const onGone = (callback: () => void) => {
      reply.raw.once('close', callback)
      return () => reply.raw.off('close', callback)
    }
    try {
      // The database cannot hold U+0000, so no credential has such a name.
      if (!isStorable(username)) throw new PawlError('CREDENTIALS_INVALID', { detail: 'a user name with a zero character' })
      const token = await beginSession(parts, { username, source: request.ip, onGone }, form.all('password')[0] ?? '')
      return reply
        .header('set-cookie', cookieOf(request, token))
        .redirect(`${rootOf(request)}${next.slice('/console/'.length)}`, 303)
    } catch (thrown) {
      const { code, retryAfterSeconds } = toPawlError(thrown)
      const refusal = REFUSALS[code]
      if (refusal === undefined) throw thrown
      if (retryAfterSeconds !== undefined) void reply.header('retry-after', retryAfterSeconds)
      return show(reply.code(refusal.status), next, refusal.text, username)
    }
  })

  const leave = (request: FastifyRequest, reply: FastifyReply): FastifyReply =>
    reply.header('set-cookie', `${cookieOf(request, '')}; Max-Age=0`).redirect(`${rootOf(request)}sign-in`, 303)
  const { onRequest, read } = demandSession(parts, () => false, leave)
  app.post('/sign-out', { onRequest }, async (request, reply) => {
    const { session } = read(request, MEMBERS_MAX)
    await endSession(parts, session.sessionId, session.caller.username)
    return leave(request, reply)
  })
}

/**
 * The cookie ends with the browser. If the request came by TLS, the cookie is sent only by TLS, and has the path that `__Host-` demands. Otherwise it
 * has no path: the browser then uses the path of the form, which is /console behind the prefix that a proxy removes.
 */
const cookieOf = (request: FastifyRequest, token: string): string =>
  `${nameOf(request)}=${token}; HttpOnly; SameSite=Strict${request.protocol === 'https' ? '; Path=/; Secure' : ''}`

/**
 * The console page that a browser would resolve the address to. For any other address it is the first page, because a link must not lead elsewhere.
 */
function readNext(next: unknown): string {
  if (typeof next !== 'string' || !URL.canParse(next, HERE)) return '/console/'
  const { origin, pathname, search } = new URL(next, HERE)
  const isPage = origin === HERE && PAGES.some((page) => page.test(pathname)) && !ENCODED_SLASH.test(pathname)
  return isPage ? `${pathname}${search}` : '/console/'
}

const HERE = 'http://pawl.invalid'
/** The paths of all pages. A parameter is one segment of the path, with any text. */
const PAGES = pages.map(({ path }) => new RegExp(`^/console${path.replaceAll(/:\w+/g, '[^/]+')}$`))
/** An encoded slash. A proxy may decode it although a browser does not. */
const ENCODED_SLASH = /%(?:2f|5c)/i
const TOKEN = /^[\w-]{43}$/
/** More members than the forms to sign in and out have. */
const MEMBERS_MAX = 16

const renderForm = (root: string, next: string, problem: string | undefined, username: string) =>
  html`<h1>Sign in</h1>
    ${problem !== undefined && html`<p class="notice is-bad" role="alert">${problem}</p>`}
    <form method="post" action="${root}sign-in" class="form">
      <input type="hidden" name="next" value="${next}">
      <div class="field"><label for="username">User name</label>
        <input id="username" name="username" value="${username}" autocomplete="username" autocapitalize="none" required${
          username === '' && html` autofocus`
        }></div>
      <div class="field"><label for="password">Password</label>
        <input id="password" name="password" type="password" autocomplete="current-password" required${
          username !== '' && html` autofocus`
        }></div>
      <div class="buttons"><button class="button is-primary">Sign in</button></div>
    </form>
    <p class="hint">Administrators sign in here, and credentials that may read everything. The first start of the server prints the password of the administrator, unless <code>PAWL_ADMIN_PASSWORD</code> gives one.</p>`

const LOST = 'The session had ended before the form was sent, so nothing was changed. Sign in, and fill it in again.'
const REFUSALS: Readonly<Partial<Record<ErrorCode, { readonly status: number; readonly text: string }>>> = {
  CREDENTIALS_INVALID: { status: 401, text: 'User name or password is wrong, or the credential has ended.' },
  ROLE_FORBIDDEN: {
    status: 403,
    text: 'This credential belongs to a back end. The console is for administrators, and for credentials that may read everything.',
  },
  TOO_MANY_REQUESTS: { status: 429, text: 'Too many wrong passwords. Wait a minute, then try again.' },
}
