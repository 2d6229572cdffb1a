// Serves the console: pages for administrators at /console/, on the listener of the bank's API (docs/CONSOLE.md), and the pages that show an error.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Application } from '../api/cloud/admin/applications.ts'
import type { Session } from '../domain/credential/session.ts'
import { CALLERS_BYTES_MAX } from '../http/body-bounds.ts'
import { refuseForeignPage } from '../http/basic-credentials.ts'
import { type ErrorRenderer, renderErrorsWith, renderUnknownPathsWith } from '../http/errors.ts'
import { type ErrorCode, PawlError, type Violation } from '../lib/errors.ts'
import { type Api, createApi, Refusal, withQuery } from './api.ts'
import { type Assets, serveAssets } from './assets.ts'
import { HTML, renderPage, sendBare } from './layout.ts'
import {
  CHANGED,
  type ConsoleParts,
  type Form,
  link,
  NO_FORM,
  type Outcome,
  type Page,
  type PageCall,
  rootOf,
  type Section,
  type View,
} from './page.ts'
import { pages } from './pages/index.ts'
import { demandSession, serveSignIn } from './sign-in.ts'
import { empty, pageHead } from './elements.ts'
import { html } from './markup.ts'

/** The plugin of the console. Register it at /console, on a server that also has the cloud API. */
export const consolePages = (parts: ConsoleParts) => async (app: FastifyInstance) => {
  app.removeAllContentTypeParsers()
  // Forms stay bytes until a page reads them.
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.addHook('onSend', async (_request, reply) => {
    void reply.headers(SECURITY_HEADERS)
  })
  const assets = await serveAssets(app)
  const renderError = createErrorPage(assets)
  renderErrorsWith(app, parts.events, renderError)
  renderUnknownPathsWith(app, renderError)
  // A browser adds the cookie of the session by itself. Therefore a request that changes something must come from a page of the console.
  app.addHook('onRequest', async (request) => {
    if (!READS.has(request.method)) refuseForeignPage(request, parts.settings.publicUrl)
  })
  serveSignIn(app, parts, assets)

  const { onRequest, read } = demandSession(parts, isUse, sendToSignIn)

  const serve = async (page: Page, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { session, form } = read(request)
    let call: PageCall | undefined
    try {
      call = await openCall(app, parts, session, request, form)
      return await answer(page, call, reply)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      // The application does not exist, or the API has no answer: there is no menu to show.
      if (call === undefined) return sendFailure(assets, reply, { status: error.status, ...describeRefusal(error) })
      return sendView(reply.code(error.status), page, call, refusalView(error, call))
    }
  }

  const answer = async (page: Page, call: PageCall, reply: FastifyReply): Promise<FastifyReply> => {
    if (call.application === '' && !WITHOUT_APPLICATION.has(page.section))
      return sendView(reply, page, call, noApplicationView(call))
    if (call.form.isEmpty) return sendView(reply, page, call, await page.render(call))
    const { actions = {} } = page
    const name = call.form.text('action')
    const act = Object.hasOwn(actions, name) ? actions[name] : undefined
    if (act === undefined) throw new PawlError('REQUEST_INVALID', { detail: 'the page has no such action' })
    try {
      return sendOutcome(reply, page, call, await act(call))
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal
      const refused = { ...call, refusal }
      // What was typed on a page that is out of date gives way to what is stored now. The notice above keeps it.
      const shown = refusal.status === CHANGED ? { ...refused, form: NO_FORM } : refused
      return sendView(reply.code(refusal.status), page, refused, await page.render(shown))
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
    app.get(page.path, { onRequest }, handler)
    if (page.actions !== undefined) app.post(page.path, { onRequest, bodyLimit: CALLERS_BYTES_MAX }, handler)
  }
}

/**
 * Whether a person did something. Requests that a page sends by itself are no use of the session, and neither is HEAD. A POST is, because a preview is
 * posted when somebody types into a form.
 */
const isUse = ({ method, headers }: FastifyRequest): boolean =>
  method === 'POST' || (headers['hx-request'] === undefined && method !== 'HEAD')

/** Composes the call of a page from its request. Throws Refusal for an application that does not exist. */
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
    applications: readonly Application[]
  }>('/admin/applications')
  const wanted = query['app'] || undefined
  const found = applications.find(({ id, isDefault }) => (wanted === undefined ? isDefault : id === wanted))
  if (wanted !== undefined && found === undefined) throw new Refusal(404, `There is no application ${wanted}`, [])
  const application = (found ?? applications[0])?.id ?? ''
  const isAdmin = caller.role === 'admin'
  // An administrator may act for each application like its back ends, if the settings let administrators act at all.
  const acting = isAdmin && application !== '' ? { ...caller, applicationId: application } : caller
  const api: Api = createApi(app, parts.tickets, acting, request)
  return {
    parts,
    session,
    api,
    params: { id: '', name: '', deliveryId: '', ...readTexts(request.params) },
    query,
    form,
    applications,
    application,
    now: parts.platform.now(),
    refusal: undefined,
    isAdmin,
    isActing: isAdmin && application !== '' && parts.settings.adminActsOnDefaultApplication,
    root: rootOf(request),
    here: `${rootOf(request)}${request.url.replace(/^\/console\/?/, '')}`,
  }
}

/** The last value counts for a name that is given twice. */
const readTexts = (values: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(values as Record<string, unknown>).map(([name, value]) => [name, String([value].flat().at(-1))]),
  )

/**
 * Redirects to the sign-in, which leads back to the page, and says that a form is lost. htmx is told to load it as a whole page, because it would
 * otherwise put it into a part of one.
 */
function sendToSignIn(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const to = withQuery(`${rootOf(request)}sign-in`, { next: request.url, lost: request.method === 'POST' ? 'form' : undefined })
  return request.headers['hx-request'] === undefined
    ? reply.redirect(to, 303)
    : reply.header('hx-redirect', to).type(HTML).send('')
}

/** Renders errors that are thrown in the console. */
const createErrorPage =
  (assets: Assets): ErrorRenderer =>
  (error, request, reply) => {
    const { status, title, text } = TEXTS[error.code] ?? FAILED
    if (error.retryAfterSeconds !== undefined) void reply.header('retry-after', error.retryAfterSeconds)
    sendFailure(assets, reply, {
      status,
      title,
      text,
      note: [...error.violations.map(toLine), `Request ${request.id}`].join(', '),
    })
  }

/**
 * The view in place of a page whose data the API refused. The menu stays. For what the address names, the API may have no code of its own, or one
 * for everything that an administrator named wrongly.
 */
function refusalView(refusal: Refusal, call: PageCall): View {
  const wrong = refusal.violations.map(({ fieldName }) => fieldName)
  const isOfAddress =
    refusal.code === 'ERROR_ADMIN' ||
    (refusal.code === 'ERROR_REQUEST' &&
      Object.entries(call.params).some(([name, value]) => value !== '' && wrong.includes(name)))
  const { title, text, note } = { ...describeRefusal(refusal), ...(isOfAddress && NO_SUCH_PAGE) }
  const back = html`<a class="button is-plain" href="${link(call, '/')}">To the overview</a>`
  return { title, body: html`${pageHead(title)}${empty(text, note, back)}` }
}

/** The view of each page about an application where there is none. */
const noApplicationView = (call: PageCall): View => ({
  title: 'Welcome',
  body: html`${pageHead('Welcome')}${empty(
    'There is no application yet',
    'An application is one mobile app of the bank: it has the keys that are compiled into the app, and everything else belongs to one.',
    call.isAdmin && html`<a class="button is-primary" href="${link(call, '/applications')}">Create the first application</a>`,
  )}`,
})

/** Sections whose pages are about no application, or about all. */
const WITHOUT_APPLICATION: ReadonlySet<Section> = new Set(['applications', 'templates', 'audit', 'credentials'])

const describeRefusal = ({ status, code, message, violations }: Refusal): Omit<Failure, 'status'> => ({
  title: code === 'ERROR_REQUEST' ? 'Not accepted' : (TITLES[status] ?? (status >= 500 ? 'Not available' : 'Not found')),
  text: `${message}.`,
  note: violations.map(toLine).join(', '),
})

const toLine = ({ fieldName, hint }: Violation): string => `${fieldName}: ${hint}`

const TITLES: Readonly<Record<number, string>> = { 403: 'Not for this credential', [CHANGED]: 'Not possible' }

interface Failure {
  readonly status: number
  readonly title: string
  readonly text: string
  readonly note: string
}

function sendFailure(assets: Assets, reply: FastifyReply, { status, title, text, note }: Failure): FastifyReply {
  const back = html`<p><a class="button is-plain" href="${rootOf(reply.request)}">To the overview</a></p>`
  const hint = note !== '' && html`<p class="hint">${note}</p>`
  return sendBare(assets, reply.code(status), title, html`<h1>${title}</h1><p>${text}</p>${hint}${back}`)
}

const READS: ReadonlySet<string> = new Set(['GET', 'HEAD'])

// Pages load nothing from other servers, and have no inline code. With the referrer policy `no-referrer`, browsers would leave the origin out of
// forms.
const SECURITY_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " +
    "form-action 'self'; frame-ancestors 'none'",
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'x-frame-options': 'DENY',
}

const NO_SUCH_PAGE = { title: 'No such page', text: 'Nothing is at this address.' }
const FAILED = { status: 500, title: 'That failed', text: 'Something went wrong here. The log names the request.' }
const TEXTS: Readonly<Partial<Record<ErrorCode, Omit<Failure, 'note'>>>> = {
  PATH_UNKNOWN: { status: 404, ...NO_SUCH_PAGE },
  REQUEST_INVALID: {
    status: 400,
    title: 'Not accepted',
    text: 'The form did not come from a page of this session, or it is too long. Go back, load the page again, and send it once more.',
  },
  UNAVAILABLE: {
    status: 503,
    title: 'Not available',
    text: 'The database does not answer, or the server has no room. Try again in a moment. If it lasts, the command pawl doctor says why.',
  },
  TOO_MANY_REQUESTS: { status: 429, title: 'Too fast', text: 'Too many requests. Try again in a minute.' },
}
