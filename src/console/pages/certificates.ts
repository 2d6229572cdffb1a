// Shows the pinned certificates of an application: their ends, and the certificates that the domains show now.
import type { AppDetail, PinnedDomain } from '../../api/cloud/admin/apps.ts'
import type { PinnedCertificate } from '../../api/cloud/admin/certificates.ts'
import { at } from '../api.ts'
import { DAY_MS, pinTone } from '../attention.ts'
import {
  actionForm,
  ago,
  badge,
  card,
  check,
  code,
  empty,
  exactTime,
  field,
  guardedForm,
  more,
  pageHead,
  sayDistance,
} from '../elements.ts'
import { html, type Markup } from '../markup.ts'
import { done, type Form, type Page, type PageCall, readTime } from '../page.ts'

/** The bar of a pin with this time or more to its end is full. */
const YEAR_DAYS = 365
const NAME_HINT = 'exactly as in the certificate: apps look the pin up by it'
const SOURCES = { pem: 'from a file', fetch: 'as the server showed it', fingerprint: 'by fingerprint' }

const pathOf = ({ application }: PageCall): string => at`/admin/apps/${application}`

const pin = (how: string, body: (form: Form) => unknown) => async (call: PageCall) => {
  await call.api.send('POST', `${pathOf(call)}/certificates/${how}`, body(call.form))
  return done(call, '/certificates', 'created')
}

const remove = (pathAt: (call: PageCall) => string) => async (call: PageCall) => {
  const query = { domain: call.form.optional('domain'), fingerprint: call.form.optional('fingerprint') }
  await call.api.send('DELETE', pathAt(call), undefined, query)
  return done(call, '/certificates', 'removed')
}

export const certificates: Page = {
  path: '/certificates',
  section: 'certificates',
  async render(call) {
    const { domains, publicKey } = await call.api.get<AppDetail>(pathOf(call))
    const hasExpired = domains.some(({ certificates: pins }) => pins.some(({ isExpired }) => isExpired))
    const clean = call.isAdmin && hasExpired && actionForm(call, 'expired', 'Remove those that have ended', { tone: 'plain' })
    return {
      title: 'Certificates',
      body: html`${pageHead('Certificates', { lead: 'The app talks only to servers whose certificate is pinned here.', actions: clean })}
        <div class="columns"><div>${domains.length === 0 ? card('Domains', empty('Nothing is pinned', 'Pin the certificate that a server shows, or one that it is going to show.')) : domains.map((domain) => renderDomain(call, domain))}</div>
        <div>${call.isAdmin && card('Pin a certificate', renderForms(call))}${card('Key of the list', html`<p class="hint">The app checks the signed list with it.</p><p>${code(publicKey, 'the key')}</p>`)}</div></div>`,
    }
  },
  actions: {
    fetch: pin('auto', (form) => ({
      domain: form.text('domain'),
      port: Number(form.text('port') || '443'),
      force: form.isChecked('force'),
    })),
    pem: pin('pem', (form) => ({ domain: form.text('pemDomain'), pem: form.text('pem'), force: form.isChecked('force') })),
    fingerprint: pin('fingerprint', (form) => ({
      domain: form.text('printDomain'),
      fingerprint: form.text('fingerprint'),
      expires: readTime(form.text('expires'), 1000),
    })),
    unpin: remove((call) => `${pathOf(call)}/certificates`),
    domain: remove((call) => `${pathOf(call)}/domains`),
    expired: remove(() => '/admin/certificates/expired'),
  },
}

function renderDomain(call: PageCall, { name, port, certificates: pins, live }: PinnedDomain): Markup {
  const removal =
    call.isAdmin &&
    guardedForm(call, 'domain', 'Remove the domain', {
      hidden: { domain: name },
      question: `Apps that know the list stop talking to ${name}.`,
    })
  return card(
    name,
    html`${pins.length === 0 && empty('No pin', 'Apps refuse this domain.')}<div class="stack">${pins.map((pin) => renderPin(call, name, pin))}</div>
      ${
        live !== undefined &&
        html`<p>${live.isPinned ? badge('good', 'Live certificate is pinned') : badge('bad', 'Live certificate is not pinned')} <small>seen ${ago(call.now, live.checkedAt * 1000)}${live.problem !== undefined && html`, ${live.problem}`}</small></p>`
      }${removal && html`<div class="actions">${removal}</div>`}`,
    html`<small>port ${port}</small>`,
  )
}

function renderPin(
  call: PageCall,
  domain: string,
  { fingerprint, expires, isExpired, source, warning }: PinnedCertificate,
): Markup {
  const left = (expires * 1000 - call.now) / DAY_MS
  const tone = isExpired ? 'bad' : pinTone(expires * 1000, call.now)
  const width = Math.round(Math.min(1, Math.max(0.01, left / YEAR_DAYS)) * 100)
  return html`<div class="pin">
    <p>${badge(tone, isExpired ? 'Ended' : `Ends ${sayDistance(expires * 1000 - call.now)}`)} <small>${exactTime(expires * 1000)}, ${SOURCES[source]}</small></p>
    ${warning !== undefined && html`<p>${badge('wait', 'Not found by apps')} <small>${warning}</small></p>`}
    <svg class="span is-${tone}" viewBox="0 0 100 3" preserveAspectRatio="none" role="img" aria-label="${Math.max(0, Math.floor(left))} days of a year"><rect class="span-all" width="100" height="3"></rect><rect class="span-left" width="${width}" height="3"></rect></svg>
    <div class="row-head">${code(fingerprint, 'the fingerprint')}${call.isAdmin && guardedForm(call, 'unpin', 'Unpin', { hidden: { domain, fingerprint }, question: 'Apps refuse a server that shows this certificate.' })}</div>
  </div>`
}

function renderForms(call: PageCall): Markup {
  const sent = call.form.text('action')
  const pem = actionForm(call, 'pem', 'Pin', {
    fields: (own) => html`${field(own, 'pemDomain', 'Common name', { isRequired: true, apiName: 'domain', hint: NAME_HINT })}
      ${field(own, 'pem', 'Certificate', { isRequired: true, rows: 6, placeholder: '-----BEGIN CERTIFICATE-----' })}${check(own, 'force', FORCE)}`,
  })
  const fingerprint = actionForm(call, 'fingerprint', 'Pin', {
    fields: (own) => html`${field(own, 'printDomain', 'Common name', { isRequired: true, apiName: 'domain', hint: NAME_HINT })}
      ${field(own, 'fingerprint', 'Fingerprint', { isRequired: true, hint: 'Base64 of SHA-256 over the DER bytes' })}
      ${field(own, 'expires', 'Ends (UTC)', { type: 'datetime-local', isRequired: true })}`,
  })
  return html`${actionForm(call, 'fetch', 'Pin what the server shows', {
    fields: (own) => html`${field(own, 'domain', 'Domain', { isRequired: true, placeholder: 'api.bank.example' })}
      ${field(own, 'port', 'Port', { type: 'number', value: '443' })}${check(own, 'force', FORCE)}`,
  })}
  ${more('From a PEM file', pem, sent === 'pem')}
  ${more('By its fingerprint', fingerprint, sent === 'fingerprint')}`
}

const FORCE = 'even if it is for other names'
