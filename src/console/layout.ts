// The frame of every page: head, navigation, the application it is about, and what was just done or refused.
import type { Assets } from './assets.ts'
import { icon } from './icons.ts'
import { html, type Markup, nothing, toText } from './markup.ts'
import { DONE, link, type Page, type PageCall, type Section, type View } from './page.ts'

const GROUPS: readonly (readonly [string, readonly (readonly [Section, string, string])[]])[] = [
  ['', [['overview', '/', 'Overview']]],
  [
    'Customers',
    [
      ['registrations', '/registrations', 'Registrations'],
      ['operations', '/operations', 'Operations'],
      ['inbox', '/inbox', 'Inbox'],
    ],
  ],
  [
    'Set-up',
    [
      ['applications', '/applications', 'Applications'],
      ['templates', '/templates', 'Templates'],
      ['webhooks', '/webhooks', 'Webhooks'],
      ['certificates', '/certificates', 'Certificates'],
      ['config', '/config', 'Configuration'],
      ['oidc', '/oidc', 'OpenID'],
    ],
  ],
  [
    'Oversight',
    [
      ['audit', '/audit', 'Audit'],
      ['credentials', '/credentials', 'Credentials'],
    ],
  ],
]

/** A page for somebody who is signed in. */
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
            ([name, entries]) =>
              html`${name !== '' && html`<p class="nav-group">${name}</p>`}<ul>${entries.map(
                ([id, path, label]) =>
                  html`<li><a href="${link(call, path)}"${id === section && html` aria-current="page"`}>${icon(id)}${label}</a></li>`,
              )}</ul>`,
          )}</nav>
          ${renderSignOut(call)}
        </div>
      </div>
      <main id="main">${renderNotices(call)}${body}</main>
    </div>`,
  )

/** A page without navigation: the sign-in, and failures before it. */
export const renderBare = (assets: Assets, root: string, title: string, body: Markup): string =>
  renderDocument(
    assets,
    root,
    title,
    html`<main class="bare" id="main"><p class="brand">pawl<span>console</span></p>${body}</main>`,
  )

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
  <script src="${root}${assets.copy}" defer></script>
</head>
<body>${body}</body>
</html>`)}\n`

// Nothing of it needs a style or a script of its own, which the policy of the pages would refuse.
const HTMX = '{"includeIndicatorCSS":false,"history":false}'

function renderApplications(call: PageCall): Markup {
  const { application, applications } = call
  if (application === undefined) return nothing
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

function renderNotices({ query, refusal }: PageCall): Markup {
  const name = query['done'] ?? ''
  const said = Object.hasOwn(DONE, name) ? DONE[name as keyof typeof DONE] : undefined
  return html`${said !== undefined && refusal === undefined && html`<p class="notice is-good" role="status">${said}</p>`}${
    refusal !== undefined &&
    html`<div class="notice is-bad" role="alert"><p>${refusal.message}.</p>${
      refusal.violations.length > 0 &&
      html`<ul>${refusal.violations.map(({ fieldName, hint }) => html`<li><code>${fieldName}</code> ${hint}</li>`)}</ul>`
    }</div>`
  }`
}
