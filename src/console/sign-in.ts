// Signing in and out. The password goes through the same gate as one of HTTP Basic: its waits, its lanes, its log lines.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { beginSession, endSession, isFormTokenOf, readSession } from '../domain/credential/session.ts'
import { toPawlError } from '../http/errors.ts'
import { type ErrorCode, PawlError } from '../lib/errors.ts'
import type { Assets } from './assets.ts'
import { renderBare } from './layout.ts'
import { html } from './markup.ts'
import { type Form, readForm } from './page.ts'
import type { ConsoleParts } from './parts.ts'

const COOKIE = 'pawl_console'

/** The token of a request's session, if it has the form of one. */
export const readToken = ({ headers }: FastifyRequest): string | undefined =>
  /(?:^|;\s*)pawl_console=([\w-]{43})(?:;|$)/.exec(headers.cookie ?? '')?.[1]

/** Mounts the form, and what it and the button to sign out are sent to. */
export function serveSignIn(app: FastifyInstance, parts: ConsoleParts, assets: Assets): void {
  const show = (reply: FastifyReply, next: string, problem?: string, username = ''): FastifyReply =>
    reply.type('text/html; charset=utf-8').send(renderBare(assets, 'Sign in', renderForm(next, problem, username)))

  app.get<{ Querystring: { next?: unknown } }>('/sign-in', async ({ query }, reply) => show(reply, readNext(query.next)))

  app.post('/sign-in', async (request, reply) => {
    const form = (request.body as Form | undefined) ?? readForm('')
    const [username, next] = [form.text('username'), readNext(form.text('next'))]
    const onGone = (callback: () => void) => {
      reply.raw.once('close', callback)
      return () => reply.raw.off('close', callback)
    }
    try {
      const token = await beginSession(parts, { username, source: request.ip, onGone }, form.all('password')[0] ?? '')
      return reply.header('set-cookie', cookieOf(request, token)).redirect(next, 303)
    } catch (thrown) {
      const { code, retryAfterSeconds } = toPawlError(thrown)
      const refusal = REFUSALS[code]
      if (refusal === undefined) throw thrown
      if (retryAfterSeconds !== undefined) void reply.header('retry-after', retryAfterSeconds)
      return show(reply.code(refusal.status), next, refusal.text, username)
    }
  })

  app.post('/sign-out', async (request, reply) => {
    const token = readToken(request)
    const session = token === undefined ? undefined : await readSession(parts, { token, source: request.ip, isUse: false })
    if (session !== undefined) {
      const form = (request.body as Form | undefined) ?? readForm('')
      if (!isFormTokenOf(session, form.text('csrf')))
        throw new PawlError('REQUEST_INVALID', { detail: 'a form without the token of its session' })
      await endSession(parts, session.sessionId, session.caller.username)
    }
    return reply.header('set-cookie', `${cookieOf(request, '')}; Max-Age=0`).redirect('/console/sign-in', 303)
  })
}

/** It ends with the browser. TLS ends before pawl; where the request came by it, the cookie never leaves it. */
const cookieOf = ({ protocol }: FastifyRequest, token: string): string =>
  `${COOKIE}=${token}; Path=/console; HttpOnly; SameSite=Strict${protocol === 'https' ? '; Secure' : ''}`

/** Only a page of the console: an address in a link must not lead elsewhere. */
const readNext = (next: unknown): string =>
  typeof next === 'string' && /^\/console\/(?!sign-)[\w\-./?&=%+~]*$/.test(next) && !next.includes('//') ? next : '/console/'

const renderForm = (next: string, problem: string | undefined, username: string) =>
  html`<h1>Sign in</h1>
    ${problem !== undefined && html`<p class="notice is-bad" role="alert">${problem}</p>`}
    <form method="post" action="/console/sign-in" class="form">
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
    <p class="hint">With a credential of an administrator, or one that may read everything. The first start printed the first one.</p>`

const REFUSALS: Readonly<Partial<Record<ErrorCode, { readonly status: number; readonly text: string }>>> = {
  CREDENTIALS_INVALID: { status: 401, text: 'User name or password is wrong, or the credential has ended.' },
  ROLE_FORBIDDEN: {
    status: 403,
    text: 'This credential is one of a back end. The console is for administrators, and for readers of everything.',
  },
  TOO_MANY_REQUESTS: { status: 429, text: 'Too many wrong passwords. Wait a minute, then try again.' },
}
