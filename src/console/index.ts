// The console: pages for administrators at /console/, on the listener of the bank's API (docs/CONSOLE.md).
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isFormTokenOf, type Session } from '../domain/credential/session.ts'
import { CALLERS_BYTES_MAX } from '../http/body-bounds.ts'
import { refuseForeignPage } from '../http/basic-credentials.ts'
import { renderErrorsWith, renderUnknownPathsWith } from '../http/errors.ts'
import { PawlError } from '../lib/errors.ts'
import { type Api, createApi, Refusal } from './api.ts'
import { serveAssets } from './assets.ts'
import { createErrorPage, createRefusalPage, refusalView } from './error-page.ts'
import { renderPage } from './layout.ts'
import {
  type ApplicationSummary,
  type ConsoleParts,
  type Form,
  formOf,
  link,
  type Outcome,
  type Page,
  type PageCall,
  readForm,
  rootOf,
  type View,
} from './page.ts'
import { pages } from './pages/index.ts'
import { findSession, serveSignIn } from './sign-in.ts'

/** To be registered at /console, on a server that also has the cloud API. */
export const consolePages = (parts: ConsoleParts) => async (app: FastifyInstance) => {
  app.removeAllContentTypeParsers()
  // Forms stay bytes until their page reads them.
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.addHook('onSend', async (_request, reply) => {
    void reply.headers(SECURITY_HEADERS)
  })
  const assets = await serveAssets(app)
  const renderError = createErrorPage(assets)
  renderErrorsWith(app, parts.events, renderError)
  renderUnknownPathsWith(app, renderError)
  // The session is in a cookie, which a browser adds by itself: what changes something must come from a page of ours.
  app.addHook('onRequest', async (request) => {
    if (!READS.has(request.method)) refuseForeignPage(request, parts.settings.publicUrl)
  })
  serveSignIn(app, parts, assets)

  const renderRefusal = createRefusalPage(assets)
  const sessions = new WeakMap<FastifyRequest, Session>()

  /** Runs before the body is read, so that no form of a caller without a session is parsed. */
  const requireSession = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    // What a page asks for by itself is no use of the session, and neither is HEAD. Whoever types into a form has its preview posted.
    const isUse = request.method === 'POST' || (request.headers['hx-request'] === undefined && request.method !== 'HEAD')
    const session = await findSession(parts, request, isUse)
    if (session === undefined) return sendToSignIn(request, reply)
    sessions.set(request, session)
    return undefined
  }

  const serve = async (page: Page, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const session = sessions.get(request)
    if (session === undefined) throw new TypeError('a page was reached without a session')
    const isPost = request.method === 'POST'
    const form = isPost ? formOf(request) : NO_FORM
    if (isPost && !isFormTokenOf(session, form.text('csrf')))
      throw new PawlError('REQUEST_INVALID', { detail: 'a form without the token of its session' })
    let call: PageCall | undefined
    try {
      call = await openCall(app, parts, session, request, form)
      return await answer(page, call, reply)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      if (call === undefined) return renderRefusal(error, reply)
      return sendView(reply.code(error.status), page, call, refusalView(error, link(call, '/')))
    }
  }

  const answer = async (page: Page, call: PageCall, reply: FastifyReply): Promise<FastifyReply> => {
    const act = page.actions?.[call.form.text('action')]
    if (call.form.isEmpty || act === undefined) {
      if (!call.form.isEmpty) throw new PawlError('REQUEST_INVALID', { detail: 'the page has no such action' })
      return sendView(reply, page, call, await page.render(call))
    }
    try {
      return sendOutcome(reply, page, call, await act(call))
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal
      const refused = { ...call, refusal }
      return sendView(reply.code(refusal.status), page, refused, await page.render(refused))
    }
  }

  const sendView = (reply: FastifyReply, page: Page, call: PageCall, view: View): FastifyReply =>
    reply.type(HTML).send(renderPage(assets, page, call, view))

  const sendOutcome = (reply: FastifyReply, page: Page, call: PageCall, outcome: Outcome): FastifyReply => {
    if ('to' in outcome) return reply.redirect(outcome.to, 303)
    if ('body' in outcome) return sendView(reply, page, call, outcome)
    void reply.header('content-disposition', `attachment; filename="${outcome.fileName}"`)
    return reply.type(outcome.type).send(outcome.text)
  }

  for (const page of pages) {
    const handler = (request: FastifyRequest, reply: FastifyReply) => serve(page, request, reply)
    app.get(page.path, { onRequest: requireSession }, handler)
    if (page.actions !== undefined) app.post(page.path, { onRequest: requireSession, bodyLimit: CALLERS_BYTES_MAX }, handler)
  }
}

/** What a page knows of its request. Throws Refusal for an application that does not exist. */
async function openCall(
  app: FastifyInstance,
  parts: ConsoleParts,
  session: Session,
  request: FastifyRequest,
  form: Form,
): Promise<PageCall> {
  const { caller } = session
  const query = readTexts(request.query)
  const { applications } = await createApi(app, parts.tickets, caller, request).get<{
    applications: readonly ApplicationSummary[]
  }>('/admin/applications')
  const wanted = query['app']
  const found = applications.find(({ id, isDefault }) => (wanted === undefined ? isDefault : id === wanted))
  if (wanted !== undefined && found === undefined) throw new Refusal(404, `There is no application ${wanted}`, [])
  const application = (found ?? applications[0])?.id
  const isAdmin = caller.role === 'admin'
  // An administrator may do for each application what its back ends may, as far as administrators may at all.
  const acting = isAdmin && application !== undefined ? { ...caller, applicationId: application } : caller
  const api: Api = createApi(app, parts.tickets, acting, request)
  return {
    parts,
    session,
    api,
    params: readTexts(request.params),
    query,
    form,
    applications,
    application,
    now: parts.platform.now(),
    refusal: undefined,
    isAdmin,
    isActing: isAdmin && application !== undefined && parts.settings.adminActsOnDefaultApplication,
    root: rootOf(request),
    here: `${rootOf(request)}${request.url.replace(/^\/console\/?/, '')}`,
  }
}

/** Of a name that is given twice, the last counts. */
const readTexts = (values: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(values as Record<string, unknown>).map(([name, value]) => [name, String([value].flat().at(-1))]),
  )

/** Leads to the sign-in, and from there back to the page. htmx is told to load it as a whole page: it would put it into a part of one. */
function sendToSignIn(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const to = `${rootOf(request)}sign-in?${new URLSearchParams({ next: request.url }).toString()}`
  return request.headers['hx-request'] === undefined
    ? reply.redirect(to, 303)
    : reply.header('hx-redirect', to).type(HTML).send('')
}

const READS: ReadonlySet<string> = new Set(['GET', 'HEAD'])
const HTML = 'text/html; charset=utf-8'
const NO_FORM = readForm('')

// Nothing from elsewhere and nothing inline. Browsers leave the origin out of forms where the referrer policy is `no-referrer`.
const SECURITY_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " +
    "form-action 'self'; frame-ancestors 'none'",
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'x-frame-options': 'DENY',
}
