// Finds tasks for administrators: problems of the server, failing webhooks, ending pins, waiting phones. Most thresholds are those of the alerts
// (deploy/prometheus/pawl.rules.yml), over the last hour or the last half minute of this process.
import type { PinnedDomain } from '../api/cloud/admin/apps.ts'
import type { PushProvider } from '../api/cloud/admin/push.ts'
import type { ListedRegistration } from '../api/cloud/admin/registrations.ts'
import type { Webhook } from '../api/cloud/admin/webhooks.ts'
import { at, type Query } from './api.ts'
import { badge, sayAge, sayDistance, type Tone } from './elements.ts'
import { html, type Markup } from './markup.ts'
import { sayCount } from './words.ts'
import type { Look } from '../metrics/metrics.ts'

export interface Task {
  readonly tone: Tone
  readonly name: string
  readonly text: Markup
}

export interface Attention {
  readonly problems: readonly Problem[]
  readonly pending: readonly ListedRegistration[]
  /** Whether more registrations wait for their commit than `pending` has. */
  readonly isPendingCut: boolean
  readonly webhooks: readonly Webhook[]
  readonly providers: readonly PushProvider[]
  readonly domains: readonly PinnedDomain[]
}

/** Finds the tasks, the worst first. `linkTo`: the address of a page by its path and query. `now`: milliseconds. */
export function findTasks(found: Attention, linkTo: LinkTo, now: number): readonly Task[] {
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
    ...(found.isPendingCut ? [moreCommits(linkTo)] : []),
  ]
  return tasks.toSorted((a, b) => ORDER.indexOf(a.tone) - ORDER.indexOf(b.tone))
}

type LinkTo = (path: string, query?: Query) => string

const moreCommits = (linkTo: LinkTo): Task => ({
  tone: 'wait',
  name: 'Commit',
  text: html`<a href="${linkTo('/registrations', { state: 'PENDING_COMMIT' })}">More phones</a> wait for their commit.`,
})

const ORDER: readonly Tone[] = ['bad', 'wait', 'info', 'off', 'good']

function ofWebhook(webhook: Webhook, linkTo: LinkTo): readonly Task[] {
  const place = html`<a href="${linkTo(at`/webhooks/${webhook.id}`)}">${webhook.name}</a>`
  if (!webhook.isEnabled) return [{ tone: 'wait', name: 'Switched off', text: html`Webhook ${place} is told nothing.` }]
  const late = ofQueue(webhook, html`Webhook ${place}`, {
    fails: 'Webhook fails',
    late: 'Webhook is late',
    tries: 'attempts',
    one: 'message waits',
    several: 'messages wait',
    advice: 'Send it a test message: the answer says why.',
  })
  if (webhook.dead === 0) return late
  const text = html`${sayCount(webhook.dead, 'message')} of ${place} can be sent again.`
  return [...late, { tone: 'bad', name: 'Given up', text }]
}

/**
 * The tasks of a push provider. Only settings switch a provider off, so that is no task. Abandoned pushes cannot be sent again, so they are none
 * either.
 */
function ofProvider(provider: PushProvider, linkTo: LinkTo): readonly Task[] {
  if (!provider.isEnabled) return []
  return ofQueue(provider, html`<a href="${linkTo('/webhooks')}">${PUSH_PROVIDERS[provider.provider]}</a>`, {
    fails: 'Pushes fail',
    late: 'Pushes are late',
    tries: 'pushes',
    one: 'push waits',
    several: 'pushes wait',
    advice: provider.lastError ?? '',
  })
}

/** What a webhook and a push provider say of their messages. */
export type Queue = Pick<Webhook & PushProvider, keyof Webhook & keyof PushProvider>

/** The task of a queue whose attempts fail, or whose messages wait for long. */
function ofQueue(
  { failuresInRow, lagSeconds, waiting }: Queue,
  place: Markup,
  words: Readonly<Record<'fails' | 'late' | 'tries' | 'one' | 'several' | 'advice', string>>,
): readonly Task[] {
  const waits = waiting > 0 && html` ${waiting} ${waiting === 1 ? words.one : words.several}.`
  if (failuresInRow > 0) {
    const text = html`${place} took none of the last ${failuresInRow} ${words.tries}.${waits} <span class="soft">${words.advice}</span>`
    return [{ tone: 'bad', name: words.fails, text }]
  }
  if (lagSeconds <= LAG_MAX_SECONDS) return []
  return [{ tone: 'wait', name: words.late, text: html`${place} is ${sayAge(lagSeconds)} behind.${waits}` }]
}

/** The names of providers for people. */
export const PUSH_PROVIDERS: Readonly<Record<PushProvider['provider'], string>> = { apns: 'Apple (APNs)', fcm: 'Google (FCM)' }

function ofDomain({ name, certificates, live }: PinnedDomain, linkTo: LinkTo, now: number): readonly Task[] {
  const place = html`<a href="${linkTo('/certificates')}">${name}</a>`
  if (live !== undefined && !live.isPinned)
    return [{ tone: 'bad', name: 'Not pinned', text: html`${place} shows a certificate that is not pinned: apps refuse it.` }]
  const last = Math.max(0, ...certificates.filter(({ isExpired }) => !isExpired).map(({ expires }) => expires * 1000))
  if (certificates.length === 0 || last >= now + PIN_SOON_DAYS * DAY_MS) return []
  if (last === 0) return [{ tone: 'bad', name: 'No pin', text: html`All pins of ${place} have ended: apps refuse it.` }]
  return [{ tone: pinTone(last, now), name: 'Pin ends', text: html`The last pin of ${place} ends ${sayDistance(last - now)}.` }]
}

/** The urgency for a domain whose last pin ends at `end` (both ms). */
export const pinTone = (end: number, now: number): Tone =>
  end < now + PIN_URGENT_DAYS * DAY_MS ? 'bad' : end < now + PIN_SOON_DAYS * DAY_MS ? 'wait' : 'good'

/** Renders the list, or a sentence that nothing needs attention. */
export function renderTasks(tasks: readonly Task[]): Markup {
  if (tasks.length === 0)
    return html`<section class="health is-good" aria-label="Needs attention"><p><strong>Nothing needs attention.</strong> The database takes writes, requests are answered in time, webhooks get through, and no pin ends soon.</p></section>`
  const isBad = tasks.some(({ tone }) => tone === 'bad')
  return html`<section class="health is-${isBad ? 'bad' : 'wait'}" aria-labelledby="attention"><h2 id="attention">Needs attention</h2>
    <ul>${tasks.map(({ tone, name, text }) => html`<li>${badge(tone, name)} ${text}</li>`)}</ul></section>`
}

export interface Problem {
  readonly tone: Tone
  readonly name: string
  /** Describes the problem. */
  readonly text: string
  /** Says what the administrator can do. */
  readonly todo: string
}

/** Finds problems of the server, in words and with advice, the worst first. `now`: milliseconds. `isReady`: the database takes writes. */
export function findProblems(seen: Look, isReady: boolean, now: number): readonly Problem[] {
  const problems = [...ofDatabase(seen, isReady, now), ...ofTraffic(seen), ...ofBackground(seen, now)].filter(
    (one) => one !== false,
  )
  return problems.toSorted((a, b) => Number(b.tone === 'bad') - Number(a.tone === 'bad'))
}

const ofDatabase = ({ readAt, pool, statementTimeouts }: Look, isReady: boolean, now: number): readonly (Problem | false)[] => [
  !isReady && {
    tone: 'bad',
    name: 'Database',
    text: 'The database does not take writes: phones and the bank are refused.',
    todo: 'Look at the database; `pawl doctor` names what is wrong with the connection.',
  },
  isReady &&
    readAt !== undefined &&
    now / 1000 - readAt > READING_OLD_SECONDS && {
      tone: 'bad',
      name: 'Database',
      text: 'The figures below could not be read for over a minute.',
      todo: 'The database answers slowly: look for long statements and locks.',
    },
  pool !== undefined &&
    pool.waiting > 0 && {
      tone: 'wait',
      name: 'Connections',
      text: `${sayCount(pool.waiting, 'request')} waiting for one of the ${pool.max} connections.`,
      todo: 'If it lasts, raise PAWL_DATABASE_POOL_SIZE, or find out why statements take long.',
    },
  statementTimeouts > 0 && {
    tone: 'wait',
    name: 'Time-outs',
    text: `${sayCount(statementTimeouts, 'statement')} had no answer in time since the start.`,
    todo: 'Look at the load and the locks of the database.',
  },
]

function ofTraffic({ history }: Look): readonly (Problem | false)[] {
  const sum = (name: 'failures' | 'codesAccepted' | 'codesRefused'): number =>
    history.reduce((total, sample) => total + sample[name], 0)
  const [failures, refused] = [sum('failures'), sum('codesRefused')]
  const part = refused / (sum('codesAccepted') + refused)
  const late = history.slice(-LATE_SAMPLES)
  return [
    failures > 0 && {
      tone: 'bad',
      name: 'Failures',
      text: `${sayCount(failures, 'request')} of the last hour failed by a fault of the server.`,
      todo: 'The log has each with its request id and reason.',
    },
    refused >= CODES_MIN &&
      part > CODES_REFUSED_MAX && {
        tone: 'wait',
        name: 'Wrong codes',
        text: `${Math.round(part * 100)} % of the codes of phones were wrong in the last hour.`,
        todo: 'Somebody may be guessing: the audit log has the phones, and METRICS.md the reasons.',
      },
    late.length === LATE_SAMPLES &&
      late.every(({ loopDelaySeconds }) => loopDelaySeconds > LOOP_DELAY_MAX_SECONDS) && {
        tone: 'bad',
        name: 'Too busy',
        text: 'The process answers late: its event loop waits for over a quarter of a second.',
        todo: 'Start another process beside it, or give it more processor time.',
      },
  ]
}

const ofBackground = ({ sealLagSeconds, brokenChains, background }: Look, now: number): readonly (Problem | false)[] => [
  brokenChains > 0 && {
    tone: 'bad',
    name: 'Audit',
    text: 'A chain of the audit log was found altered.',
    todo: 'Verify it on the page Audit, and keep a copy of the database before anything else.',
  },
  sealLagSeconds > LAG_MAX_SECONDS && {
    tone: 'wait',
    name: 'Audit',
    text: `Rows of the audit log have waited for their seal for ${Math.round(sealLagSeconds / 60)} minutes.`,
    todo: 'One process at least has to run with its background work; the log says what fails.',
  },
  ...background.map(
    ({ work, lastSuccessAt = now / 1000 }) =>
      now / 1000 - lastSuccessAt > LAG_MAX_SECONDS && {
        tone: 'wait' as const,
        name: 'Background',
        text: `No round of ${work.replaceAll('_', ' ')} went through for ${Math.round((now / 1000 - lastSuccessAt) / 60)} minutes.`,
        todo: 'The log says what fails.',
      },
  ),
]

export const DAY_MS = 86_400_000
const PIN_SOON_DAYS = 30
/** An app learns of a new pin when it is started. An app that is not started within this time learns of it too late. */
const PIN_URGENT_DAYS = 7
const READING_OLD_SECONDS = 60
const LAG_MAX_SECONDS = 300
const LOOP_DELAY_MAX_SECONDS = 0.25
/** A sample lasts ten seconds. The newest one is up to ten seconds old. */
const LATE_SAMPLES = 3
const CODES_MIN = 20
const CODES_REFUSED_MAX = 0.2
