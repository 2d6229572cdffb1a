// Shows one registration: its phone, the QR code for the user, the fingerprint to compare, possible actions, and its history.
import type { ListedRegistration, RegistrationDetail as Detail } from '../../api/cloud/admin/registrations.ts'
import { at, Refusal, unlessRefused } from '../api.ts'
import {
  actionForm,
  ago,
  backTo,
  badge,
  card,
  code,
  empty,
  exactTime,
  facts,
  field,
  guardedForm,
  listCard,
  live,
  pageHead,
  pager,
  qr,
  reason,
  stateBadge,
  type Step,
  timeline,
  type Tone,
} from '../elements.ts'
import { sayState } from '../words.ts'
import { readDeliverySteps } from '../deliveries.ts'
import { readDeviceEvents, readVerifications, renderEvents, renderVerifications, verificationsCard } from '../device-events.ts'
import { html, type Markup } from '../markup.ts'
import { type Done, done, link, type Page, type PageCall, requireUnchanged } from '../page.ts'

const read = ({ api, application, params: { id }, query: { before } }: PageCall): Promise<Detail> =>
  api.get<Detail>(at`/admin/applications/${application}/registrations/${id}`, { before })

/** Reads the registration of an action. Throws Refusal if it was removed since the page was loaded. */
async function readLive(call: PageCall): Promise<Detail> {
  const detail = await read(call)
  if (detail.state === 'REMOVED') throw new Refusal(409, 'The registration is removed already', [])
  return detail
}

const change = (what: 'BLOCK' | 'UNBLOCK' | 'REMOVE', said: Done) => async (call: PageCall) => {
  const { activationId } = await readLive(call)
  const blockReason = call.form.optional('blockReason')
  const externalUserId = call.session.caller.username
  await call.api.send('PUT', at`/v2/registrations/${activationId}`, {
    change: what,
    externalUserId,
    ...(blockReason !== undefined && { blockReason }),
  })
  return done(call, at`/registrations/${activationId}`, said)
}

export const registration: Page = {
  path: '/registrations/:id',
  section: 'registrations',
  async render(call) {
    const detail = await read(call)
    const { userId, state } = detail
    const isAwaited = state === 'CREATED'
    const [events, told, verified] = await Promise.all([
      unlessRefused(readDeviceEvents(call, userId, { limit: EVENTS_SHOWN })),
      call.query['before'] === undefined ? readDeliverySteps(call, 'ACTIVATION', detail.activationId) : [],
      readVerifications(call, detail, VERIFICATIONS_SHOWN),
    ])
    // Right after the phone was blocked, the page begins with a button that undoes this.
    const undo =
      call.query['done'] === 'blocked' &&
      state === 'BLOCKED' &&
      call.isActing &&
      actionForm(call, 'unblock', 'Undo', { tone: 'plain' })
    return {
      title: `Registration of ${userId}`,
      body: html`${undo}${pageHead(userId, { lead: html`${stateBadge(state)} registration in ${call.application}`, back: backTo(link(call, '/registrations'), 'Registrations'), actions: renderLinks(call, userId) })}
        ${live(
          'registration',
          call.here,
          isAwaited ? 3 : undefined,
          html`<div class="columns"><div>
          ${state === 'CREATED' && (await renderScan(call, detail))}
          ${state === 'PENDING_COMMIT' && renderCommit(call, detail)}
          ${renderPhone(call, detail)}</div>
          <div>${renderHistory(call, detail, told)}</div></div>`,
        )}
        ${call.isActing && state !== 'REMOVED' && renderActions(call, detail)}
        ${verificationsCard(call, detail.activationId, verified)}
        ${events !== undefined && events.items.length > 0 && card('Latest events of this user', renderEvents(call, events.items), html`<a href="${link(call, '/audit/devices', { userId })}">All</a>`)}`,
    }
  },
  actions: {
    commit: async (call) => {
      const { userId, activationId } = await readLive(call)
      const otp = call.form.optional('otp')
      await call.api.send('POST', at`/admin/applications/${call.application}/registrations/commit`, {
        userId,
        registrationId: activationId,
        externalUserId: call.session.caller.username,
        ...(otp !== undefined && { otp }),
      })
      return done(call, at`/registrations/${activationId}`, 'committed')
    },
    block: change('BLOCK', 'blocked'),
    unblock: change('UNBLOCK', 'unblocked'),
    remove: change('REMOVE', 'removed'),
    flags: async (call) => {
      const { activationId, flags } = await readLive(call)
      requireUnchanged(call, flags)
      await call.api.send('PUT', at`/admin/activations/${activationId}/flags`, { flags: call.form.words('flags') })
      return done(call, at`/registrations/${activationId}`, 'saved')
    },
  },
}

/** Links to all other pages about the user. */
const renderLinks = (call: PageCall, userId: string): Markup =>
  html`<a class="button is-plain" href="${link(call, '/registrations', { userId })}">Phones</a><a class="button is-plain" href="${link(call, '/operations', { userId })}">Operations</a><a class="button is-plain" href="${link(call, '/inbox', { userId })}">Inbox</a>`

/** Renders the code to scan, only for callers who may bind phones. */
async function renderScan(call: PageCall, { userId, activationId, timestampExpires }: Detail): Promise<Markup> {
  const ends = timestampExpires !== undefined && html`<small>ends ${ago(call.now, timestampExpires)}</small>`
  const answer = call.isActing
    ? await unlessRefused(call.api.get<{ activationQrCodeData?: string }>(at`/v2/registrations/${activationId}`))
    : undefined
  const text = answer?.activationQrCodeData
  if (text === undefined)
    return card('Waits for its phone', html`<p class="soft">The user has not scanned the code yet.</p>`, ends)
  return card(
    'Scan with the app',
    html`<div class="phones">${qr(text, `QR code for the phone of ${userId}`)}
      <div class="fields"><p>The user opens the app and scans this code, or types it:</p><p>${code(text.split('#')[0] ?? '')}</p>
      <p class="hint">Whoever scans it binds a phone to ${userId}. The page goes on by itself when the phone has answered.</p></div></div>`,
    ends,
  )
}

const renderCommit = (call: PageCall, { activationFingerprint = '', isOtpDemanded, isUpgradePending }: Detail): Markup =>
  card(
    'Compare and commit',
    html`<p>The phone has exchanged its keys. It shows these digits; if the user reads others, somebody sits between.</p>
      <p class="fingerprint">${activationFingerprint}</p>
      ${isUpgradePending === true && html`<p class="hint">The phone is moving to protocol 4.</p>`}
      ${
        call.isActing
          ? actionForm(call, 'commit', 'The digits are the same: commit', {
              fields: (own) =>
                isOtpDemanded && field(own, 'otp', 'One-time password that the user was sent', { isRequired: true }),
            })
          : html`<p class="hint">An administrator commits it.</p>`
      }`,
  )

function renderPhone(call: PageCall, detail: Detail): Markup {
  const { name, platform, deviceInfo, protocolVersion, algorithm, failedAttempts, maxFailedAttempts, blockReason, flags } = detail
  const until = detail.timestampBlockExpire
  return card(
    'Phone',
    facts([
      ['Name', name ?? html`<span class="soft">no phone yet</span>`],
      platform !== undefined && ['Device', html`${platform}${deviceInfo !== undefined && html` · ${deviceInfo}`}`],
      protocolVersion !== undefined && [
        'Protocol',
        html`${detail.highestProtocolVersion ?? protocolVersion} ${algorithm !== undefined && html`<small>${algorithm}</small>`}`,
      ],
      detail.activationFingerprint !== undefined && ['Fingerprint', html`<code>${detail.activationFingerprint}</code>`],
      blockReason !== undefined && [
        'Blocked because',
        html`${reason(blockReason)}${until !== undefined && html` <small>until ${exactTime(until)}</small>`}`,
      ],
      [
        'Wrong codes in a row',
        html`${failedAttempts} of ${maxFailedAttempts}${failedAttempts > 0 && html` ${badge('wait', `${maxFailedAttempts - failedAttempts} left`)}`}`,
      ],
      detail.isBiometryEnabled !== undefined && ['Biometry', detail.isBiometryEnabled ? 'set up' : 'not set up'],
      detail.isConfirmationPending === true && ['Confirmation', 'the phone has not confirmed yet'],
      detail.isUpgradePending === true && ['Upgrade', 'to protocol 4 has begun'],
      flags.length > 0 && ['Flags', flags.join(', ')],
      detail.extras !== undefined && detail.extras !== '' && ['Extras', detail.extras],
      detail.externalId !== undefined && ['External id', detail.externalId],
      ['Created', exactTime(detail.timestampCreated)],
      detail.timestampLastUsed !== undefined && ['Last used', ago(call.now, detail.timestampLastUsed)],
      ['Activation', code(detail.activationId, 'the id of the activation')],
      detail.parentActivationId !== undefined && [
        'Bound by',
        html`${code(detail.parentActivationId, 'the id of its parent')} <small>an app on the same phone</small>`,
      ],
    ]),
  )
}

const renderActions = (call: PageCall, { state, userId, flags, timestampBlockExpire }: Detail): Markup =>
  card(
    'Actions',
    html`<div class="actions">
      ${(state === 'ACTIVE' || timestampBlockExpire !== undefined) && guardedForm(call, 'block', 'Block', { question: `The phone of ${userId} can sign nothing until it is unblocked.`, fields: (own) => field(own, 'blockReason', 'Reason', { hint: 'For the history; the phone may show it.' }) })}
      ${state === 'BLOCKED' && actionForm(call, 'unblock', 'Unblock', { tone: 'plain' })}
      ${state === 'ACTIVE' && guardedForm(call, 'flags', 'Set flags', { tone: 'primary', seen: flags, question: 'Templates may demand a flag of the phone that approves.', fields: (own) => field(own, 'flags', 'Flags', { value: flags.join(' '), hint: 'Capitals, digits and _, separated by spaces.' }) })}
      ${guardedForm(call, 'remove', 'Remove', { question: `This ends the registration of ${userId} for good. Another phone needs a new one.` })}
    </div>`,
  )

const TONES: Readonly<Record<string, Tone>> = { ACTIVE: 'good', BLOCKED: 'bad', REMOVED: 'off', CREATED: 'info' }

/** Renders the history, newest first. On the first page it contains the deliveries to webhooks. */
function renderHistory(call: PageCall, { history, next, activationId }: Detail, told: readonly Step[]): Markup {
  const changes = history.map(
    ({ from, to, reason: why, externalUserId, timestamp }): Step => ({
      title: from === undefined ? sayState(to) : html`${sayState(from)} → ${sayState(to)}`,
      at: timestamp,
      tone: TONES[to] ?? 'wait',
      note:
        (why !== undefined || externalUserId !== undefined) &&
        html`${why !== undefined && reason(why)}${why !== undefined && externalUserId !== undefined && ' · '}${externalUserId !== undefined && html`by ${externalUserId}`}`,
    }),
  )
  const steps = [...told, ...changes].toSorted((a, b) => (b.at ?? 0) - (a.at ?? 0))
  return card('Timeline', html`${timeline(call.now, steps)}${pager(call, `/registrations/${activationId}`, next)}`)
}

/** All verifications of one registration for back ends. */
export const registrationVerifications: Page = {
  path: '/registrations/:id/verifications',
  section: 'registrations',
  async render(call) {
    const { api, application, params, query } = call
    const id = params.id
    const one = await api.get<ListedRegistration>(at`/admin/applications/${application}/registrations/${id}`, { limit: 1 })
    const { items, next } = await readVerifications(call, one, VERIFICATIONS_MAX, query['before'])
    const here = at`/registrations/${one.activationId}`
    return {
      title: `Verified for the bank, ${one.userId}`,
      body: html`${pageHead('Verified for the bank', { back: backTo(link(call, here), one.userId), lead: html`What back ends had verified of this phone of ${one.userId}, and what they were answered.` })}
        ${listCard('Verifications', html`${items.length === 0 ? empty('Nothing', 'No back end asked for a verification of this phone, or its rows are past their time.') : renderVerifications(call, items, true)}${pager(call, `${here}/verifications`, next)}`)}`,
    }
  },
}

const VERIFICATIONS_SHOWN = 8
const VERIFICATIONS_MAX = 50
const EVENTS_SHOWN = 10
