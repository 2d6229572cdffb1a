// Renders the frame of every page: head, navigation, the chosen application, and the result of the last action.
import type { FastifyReply } from 'fastify'
import type { Assets } from './assets.ts'
import { facts, faults, more } from './elements.ts'
import { html, type Markup, nothing, toText } from './markup.ts'
import { sayState } from './words.ts'
import { CHANGED, DONE, type Form, link, type Page, type PageCall, rootOf, type Section, type View } from './page.ts'

const GROUPS: readonly (readonly [name: string, sections: readonly Section[]])[] = [
  ['', ['overview']],
  ['Customers', ['registrations', 'operations', 'inbox']],
  ['Set-up', ['applications', 'templates', 'webhooks', 'certificates', 'config', 'oidc']],
  ['Oversight', ['audit', 'credentials']],
]
/** The names of sections in the menu, where they are not those of their paths. */
const NAMES: Readonly<Partial<Record<Section, string>>> = { config: 'Configuration', oidc: 'OpenID' }

/** A page for a user who is signed in. */
export const renderPage = (assets: Assets, { section }: Pick<Page, 'section'>, call: PageCall, { title, body }: View): string =>
  renderDocument(
    assets,
    call.root,
    title,
    html`<a class="skip" href="#main">Skip to the content</a>
    <div class="shell">
      <div class="side">
        <a class="brand" href="${link(call, '/')}">pawl<span>console</span></a>
        <button class="button is-plain menu-button" popovertarget="menu">Menu</button>
        <div class="menu" id="menu" popover>
          ${renderApplications(call)}
          <nav aria-label="Pages">${GROUPS.map(
            ([name, sections]) =>
              html`${name !== '' && html`<p class="nav-group">${name}</p>`}<ul>${sections.map(
                (id) =>
                  html`<li><a href="${link(call, id === 'overview' ? '/' : `/${id}`)}"${id === section && html` aria-current="page"`}>${icon(id)}${NAMES[id] ?? sayState(id)}</a></li>`,
              )}</ul>`,
          )}</nav>
          ${renderSignOut(call)}
        </div>
      </div>
      <main id="main">${renderNotices(call)}${body}</main>
    </div>`,
  )

export const HTML = 'text/html; charset=utf-8'

/** Answers with a page without navigation, for the sign-in and for failures before it. */
export function sendBare(assets: Assets, reply: FastifyReply, title: string, body: Markup): FastifyReply {
  const main = html`<main class="bare" id="main"><p class="brand">pawl<span>console</span></p>${body}</main>`
  return reply.type(HTML).send(renderDocument(assets, rootOf(reply.request), title, main))
}

const renderDocument = (assets: Assets, root: string, title: string, body: Markup): string =>
  `<!doctype html>\n${toText(html`<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <meta name="htmx-config" content="${HTMX}">
  <title>${title} · pawl</title>
  <link rel="icon" type="image/svg+xml" href="${root}${assets.icon}">
  <link rel="stylesheet" href="${root}${assets.style}">
  <script src="${root}${assets.htmx}" defer></script>
  <script src="${root}${assets.browser}" defer></script>
</head>
<body>${body}</body>
</html>`)}\n`

// Two features are off, because they need inline styles or scripts, which the policy of the pages would refuse. A page that says why a request
// failed does not have the part that was asked for, so the part stays as it is.
const HTMX = '{"includeIndicatorCSS":false,"history":false,"noSwap":[204,304,"4xx","5xx"]}'

function renderApplications(call: PageCall): Markup {
  const { application, applications } = call
  if (applications.length === 0) return nothing
  return html`<details class="switch"><summary><span class="switch-label">Application</span><strong>${application}</strong></summary>
    <ul>${applications.map(
      ({ id, isDefault }) =>
        html`<li><a href="${link({ ...call, application: id }, '/')}"${id === application && html` aria-current="true"`}>${id}${
          isDefault && html` <small>default</small>`
        }</a></li>`,
    )}</ul></details>`
}

const renderSignOut = ({ root, session: { caller, formToken } }: PageCall): Markup =>
  html`<form class="account" method="post" action="${root}sign-out">
    <input type="hidden" name="csrf" value="${formToken}">
    <p><strong>${caller.username}</strong><br><small>${caller.role === 'admin' ? 'administrator' : 'may only read'}</small></p>
    <button class="button is-plain is-small">Sign out</button>
  </form>`

function renderNotices({ query, refusal, form }: PageCall): Markup {
  const name = query['done'] ?? ''
  const said = Object.hasOwn(DONE, name) ? DONE[name as keyof typeof DONE] : undefined
  return html`${said !== undefined && refusal === undefined && html`<p class="notice is-good" role="status">${said}</p>`}${
    refusal !== undefined &&
    html`<div class="notice is-bad" role="alert"><p>${refusal.message}.</p>${
      refusal.violations.length > 0 && faults(refusal.violations)
    }</div>${form.optional('seen') !== undefined && refusal.status === CHANGED && renderTyped(form)}`
  }`
}

/** The values of a form that was not saved, to be copied from. Secrets are not shown. */
function renderTyped({ entries }: Form): Markup {
  const typed = entries.filter(([name, value]) => value !== '' && !UNSAID.test(name))
  return html`<section class="card">${more('Your form had', facts(typed))}</section>`
}

const UNSAID = /^(?:csrf|action|seen)$|password|secret/i

/** The icons of pages: strokes on a grid of 24, drawn in the colour of the text. */
const STROKES: Readonly<Record<Section, string>> = {
  overview: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z',
  registrations: 'M8 3h8a1 1 0 0 1 1 1v16a1 1 0 0 1-1 1H8a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM11 18h2',
  operations: 'M9 12l2 2 4-4M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6z',
  inbox: 'M4 6h16v12H4zM4 7l8 6 8-6',
  applications: 'M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM16.5 13.5v6M13.5 16.5h6',
  templates: 'M6 3h9l4 4v14H6zM14 3v5h5M9 13h7M9 17h7',
  webhooks: 'M6 15a3 3 0 1 0 3 3h6M12 6a3 3 0 1 0-2 5l-3 5M18 15a3 3 0 1 1-3 3M12 7l4 8',
  certificates: 'M12 4a5 5 0 1 0 0 10 5 5 0 0 0 0-10zM9 13l-1 8 4-2 4 2-1-8',
  config: 'M4 7h9M17 7h3M15 5v4M4 17h3M11 17h9M9 15v4M4 12h3M11 12h9',
  oidc: 'M10 5H5v14h5M14 8l4 4-4 4M18 12H9',
  audit: 'M5 4h14v16H5zM9 9h6M9 13h6M9 17h3',
  credentials: 'M14.5 4a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM10.5 13.5L4 20M6 18l2 2M16 8.5v.01',
}

/** The icon beside the name of a page. Screen readers skip it, because the name is enough. */
const icon = (section: Section): Markup =>
  html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d="${STROKES[section]}"></path></svg>`
