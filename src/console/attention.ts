// What somebody should do something about: what is wrong with the server, webhooks that fail, pins that end, phones that wait.
import { at } from './api.ts'
import type { ListedRegistration, PinnedDomain, PushProvider, Webhook } from './answers.ts'
import { badge, sayDistance, type Tone } from './elements.ts'
import type { Problem } from './health.ts'
import { html, type Markup } from './markup.ts'
import { sayCount } from './words.ts'

export interface Task {
  readonly tone: Tone
  readonly name: string
  readonly text: Markup
}

export interface Attention {
  readonly problems: readonly Problem[]
  readonly pending: readonly ListedRegistration[]
  readonly webhooks: readonly Webhook[]
  readonly providers: readonly PushProvider[]
  readonly domains: readonly PinnedDomain[]
}

/** The worst first. `linkTo`: the address of a page by its path. `now`: milliseconds. */
export function findTasks(found: Attention, linkTo: (path: string) => string, now: number): readonly Task[] {
  const tasks = [
    ...found.problems.map(({ tone, name, text, todo }) => ({
      tone,
      name,
      text: html`${text} <span class="soft">${todo}</span>`,
    })),
    ...found.webhooks.flatMap((webhook) => ofWebhook(webhook, linkTo)),
    ...found.providers.flatMap((provider) => ofProvider(provider, linkTo)),
    ...found.domains.flatMap((domain) => ofDomain(domain, linkTo, now)),
    ...found.pending.map(({ userId, activationId }): Task => {
      const href = linkTo(at`/registrations/${activationId}`)
      return { tone: 'wait', name: 'Commit', text: html`<a href="${href}">${userId}</a> waits for the commit of a phone.` }
    }),
  ]
  return tasks.toSorted((a, b) => ORDER.indexOf(a.tone) - ORDER.indexOf(b.tone))
}

const ORDER: readonly Tone[] = ['bad', 'wait', 'info', 'off', 'good']

function ofWebhook(
  { id, name, isEnabled, failuresInRow, dead, waiting, lagSeconds }: Webhook,
  linkTo: (path: string) => string,
): readonly Task[] {
  const place = html`<a href="${linkTo(at`/webhooks/${id}`)}">${name}</a>`
  const waits = waiting > 0 && html` ${waiting} ${waiting === 1 ? 'message waits' : 'messages wait'}.`
  if (!isEnabled) return [{ tone: 'wait', name: 'Switched off', text: html`Webhook ${place} is told nothing.` }]
  const tasks: Task[] = []
  if (failuresInRow > 0) {
    const text = html`Webhook ${place} took none of the last ${failuresInRow} attempts.${waits} <span class="soft">Send it a test message: the answer says why.</span>`
    tasks.push({ tone: 'bad', name: 'Webhook fails', text })
  } else if (lagSeconds > LAG_MAX_SECONDS) {
    const text = html`Webhook ${place} is ${sayDistance(-lagSeconds * 1000).replace(' ago', '')} behind.${waits}`
    tasks.push({ tone: 'wait', name: 'Webhook is late', text })
  }
  if (dead > 0)
    tasks.push({ tone: 'bad', name: 'Given up', text: html`${sayCount(dead, 'message')} of ${place} can be sent again.` })
  return tasks
}

/** A provider is switched off by the settings alone, so that is no task. Pushes that were given up cannot be sent again, so they are none either. */
function ofProvider(
  { provider, isEnabled, failuresInRow, lagSeconds, waiting, lastError }: PushProvider,
  linkTo: (path: string) => string,
): readonly Task[] {
  if (!isEnabled) return []
  const place = html`<a href="${linkTo('/webhooks')}">${PUSH_PROVIDERS[provider]}</a>`
  const waits = waiting > 0 && html` ${waiting} ${waiting === 1 ? 'push waits' : 'pushes wait'}.`
  if (failuresInRow > 0) {
    const text = html`${place} took none of the last ${failuresInRow} pushes.${waits} <span class="soft">${lastError ?? ''}</span>`
    return [{ tone: 'bad', name: 'Pushes fail', text }]
  }
  if (lagSeconds <= LAG_MAX_SECONDS) return []
  return [
    {
      tone: 'wait',
      name: 'Pushes are late',
      text: html`${place} is ${sayDistance(-lagSeconds * 1000).replace(' ago', '')} behind.${waits}`,
    },
  ]
}

/** As people call them. */
export const PUSH_PROVIDERS: Readonly<Record<PushProvider['provider'], string>> = { apns: 'Apple (APNs)', fcm: 'Google (FCM)' }

function ofDomain({ name, certificates, live }: PinnedDomain, linkTo: (path: string) => string, now: number): readonly Task[] {
  const place = html`<a href="${linkTo('/certificates')}">${name}</a>`
  if (live !== undefined && !live.isPinned)
    return [{ tone: 'bad', name: 'Not pinned', text: html`${place} shows a certificate that is not pinned: apps refuse it.` }]
  const last = Math.max(0, ...certificates.filter(({ isExpired }) => !isExpired).map(({ expires }) => expires * 1000))
  if (certificates.length === 0 || last >= now + PIN_SOON_DAYS * DAY_MS) return []
  if (last === 0) return [{ tone: 'bad', name: 'No pin', text: html`All pins of ${place} have ended: apps refuse it.` }]
  return [{ tone: pinTone(last, now), name: 'Pin ends', text: html`The last pin of ${place} ends ${sayDistance(last - now)}.` }]
}

/** How bad it is that the last pin ends then (both ms). */
export const pinTone = (end: number, now: number): Tone =>
  end < now + PIN_URGENT_DAYS * DAY_MS ? 'bad' : end < now + PIN_SOON_DAYS * DAY_MS ? 'wait' : 'good'

/** The list, or a sentence that nothing needs attention. */
export function renderTasks(tasks: readonly Task[]): Markup {
  if (tasks.length === 0)
    return html`<section class="health is-good" aria-label="Needs attention"><p><strong>Nothing needs attention.</strong> The database takes writes, requests are answered in time, webhooks get through, and no pin ends soon.</p></section>`
  const isBad = tasks.some(({ tone }) => tone === 'bad')
  return html`<section class="health is-${isBad ? 'bad' : 'wait'}" aria-labelledby="attention"><h2 id="attention">Needs attention</h2>
    <ul>${tasks.map(({ tone, name, text }) => html`<li>${badge(tone, name)} ${text}</li>`)}</ul></section>`
}

const DAY_MS = 86_400_000
const PIN_SOON_DAYS = 30
/** An app learns of a new pin when it is started: one that is not started within this time learns of it too late. */
const PIN_URGENT_DAYS = 7
const LAG_MAX_SECONDS = 300
