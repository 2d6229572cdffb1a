// Events of the audit log of phones, for people: what happened in words, and its data name by name; and what back ends had verified of a phone
// (docs/DOORS.md), the rows that name who asked.
import { at, type Query } from './api.ts'
import { ago, badge, card, type Column, exactTime, reason, table, type Tone } from './elements.ts'
import { html, type Markup } from './markup.ts'
import { link, type PageCall } from './page.ts'
import { sayEvent, sayReason } from './words.ts'

export interface DeviceEvent {
  readonly activationId: string
  readonly eventType: string
  readonly eventData: string
  readonly timestamp: number
  /** User name of the credential that had it verified. */
  readonly verifiedBy?: string
}

export interface DeviceEvents {
  readonly items: readonly DeviceEvent[]
  /** Where older ones are; absent when there are none. */
  readonly next?: number
}

/**
 * What happened to the phones of a user, newest first; that of the last 30 days where `search` names no times. Throws Refusal for a user who never
 * had a registration in the application.
 */
export const readDeviceEvents = (
  { api, application = '', now }: PageCall,
  userId: string | undefined,
  search: Query,
): Promise<DeviceEvents> =>
  api.get<DeviceEvents>(at`/admin/applications/${application}/audit`, { timestampFrom: now - RANGE_MS, userId, ...search })

/** What happened; colour and words say the same. */
export const eventBadge = (eventType: string, verifiedBy?: string): Markup =>
  html`${badge(toneOf(eventType), sayEvent(eventType))}${verifiedBy !== undefined && html` <small>for ${verifiedBy}</small>`}`

const toneOf = (eventType: string): Tone => TONES.find(([pattern]) => pattern.test(eventType))?.[1] ?? 'off'

const TONES: readonly (readonly [RegExp, Tone])[] = [
  [/fail|mismatch|not_match|too_low|wrong|block|reject|invalid/i, 'bad'],
  [/approved|committed|_ok$|unblock/i, 'good'],
  [/created|exchanged/i, 'info'],
]

/**
 * The data of an event. Of an object in JSON these are its members. Of a code it is what the code was made for, with the rest behind a click. Any
 * other text stands as it is.
 */
export function eventData(call: PageCall, text: string): Markup {
  const members = readMembers(text)
  if (members === undefined) return renderLines(text)
  return html`<dl class="members">${members.map(
    ([name, value]) =>
      html`<div><dt>${MEMBERS.get(name) ?? name}</dt><dd>${
        name === 'operationId'
          ? html`<a href="${link(call, at`/operations/${value}`)}">${value.slice(0, ID_SHOWN)}</a>`
          : name === 'reason'
            ? reason(value)
            : value
      }</dd></div>`,
  )}</dl>`
}

const MEMBERS: ReadonlyMap<string, string> = new Map([
  ['operationId', 'operation'],
  ['operationType', 'type'],
])

/** `POST`, `/operation/authorize` and the body, a line each (cloud §7). */
function renderLines(text: string): Markup {
  const [method = '', resource, ...rest] = text.split('\n')
  if (resource === undefined) return html`<code>${text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text}</code>`
  const body = rest.join('\n')
  return html`<code>${method} ${resource}</code>${body !== '' && html` <details class="more is-small"><summary>What was signed</summary><pre>${body.length > BODY_MAX ? `${body.slice(0, BODY_MAX)}…` : body}</pre></details>`}`
}

function readMembers(text: string): readonly (readonly [string, string])[] | undefined {
  try {
    const json: unknown = JSON.parse(text)
    if (typeof json !== 'object' || json === null || Array.isArray(json)) return undefined
    return Object.entries(json).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)])
  } catch {
    return undefined
  }
}

const TEXT_MAX = 200
const BODY_MAX = 1_000
const ID_SHOWN = 8
const RANGE_MS = 30 * 86_400_000

/** What was verified of one registration, newest first. `before`: the `next` of another page. */
export const readVerifications = (
  call: PageCall,
  { userId, activationId }: { readonly userId: string; readonly activationId: string },
  limit: number,
  before?: string,
): Promise<DeviceEvents> =>
  readDeviceEvents(call, userId, { activationId, onlyVerified: 'true', timestampFrom: undefined, limit, before })

interface Verdict {
  readonly door: string
  readonly resource: string
  /** The bank's own text about the verification. */
  readonly text?: string | undefined
  readonly tone: Tone
  readonly says: string
}

/** Takes a row of the audit log apart (cloud §7, §12.5). */
export function readVerdict({ eventType, eventData }: Pick<DeviceEvent, 'eventType' | 'eventData'>): Verdict {
  const [first = '', second = '', , , text] = eventData.split('\n')
  if (eventType === 'envelope_opened') return { door: 'Envelope', resource: first, tone: 'good', says: 'Opened' }
  if (eventType.startsWith('device_signature_')) {
    const refusal = eventData.split('\n')[3]
    const [form = '', ...keys] = first.split(' ')
    return {
      door: form === 'PKCS10' ? 'Certificate request' : 'Device signature',
      resource: keys.join(', '),
      tone: refusal === undefined ? 'good' : 'bad',
      says: refusal === undefined ? 'Right' : sayReason(refusal),
    }
  }
  const isOffline = eventType.startsWith('offline_code_')
  const isRight = eventType === 'signature_ok' || eventType === 'offline_code_ok'
  return {
    door: isOffline ? 'Offline code' : 'Code',
    resource: `${first} ${second}`,
    text,
    tone: isRight ? 'good' : 'bad',
    says: isRight ? 'Right' : sayReason(eventType),
  }
}

const COLUMNS: readonly Column[] = ['Resource', ['Verdict', 'side'], 'Door', 'Asked by', 'When']

/** The rows as a list; `isExact`: with the time itself in place of how long ago it was. */
export const renderVerifications = (call: PageCall, items: readonly DeviceEvent[], isExact = false): Markup =>
  table(
    'Verifications',
    COLUMNS,
    items.map((one) => {
      const { door, resource, text, tone, says } = readVerdict(one)
      return [
        html`${resource === '' ? html`<span class="soft">none</span>` : html`<code>${resource}</code>`}${text !== undefined && html`<br><small>${text}</small>`}`,
        badge(tone, says),
        door,
        one.verifiedBy,
        isExact ? exactTime(one.timestamp) : ago(call.now, one.timestamp),
      ]
    }),
  )

/** The newest ones on the page of a registration, or nothing where no back end asked. */
export const verificationsCard = (call: PageCall, activationId: string, { items, next }: DeviceEvents): Markup | false =>
  items.length > 0 &&
  card(
    'Verified for the bank',
    renderVerifications(call, items),
    next !== undefined && html`<a href="${link(call, at`/registrations/${activationId}/verifications`)}">All</a>`,
  )
