// Shows events of the audit log of phones to people: the event in words, and its data name by name. Also shows verifications for back ends
// (docs/DOORS.md), whose rows name the credential that asked.
import type { DeviceEvent, DeviceEvents } from '../api/cloud/admin/audit.ts'
import { at, type Query } from './api.ts'
import { ago, badge, card, type Column, exactTime, reason, table, type Tone } from './elements.ts'
import { html, type Markup } from './markup.ts'
import { link, type PageCall } from './page.ts'
import { sayEvent, sayReason } from './words.ts'

/**
 * Reads events of the phones of a user, newest first; those of the last 30 days if `search` names no times. Throws Refusal for a user who never had a
 * registration in the application.
 */
export const readDeviceEvents = (
  { api, application, now }: PageCall,
  userId: string | undefined,
  search: Query,
): Promise<DeviceEvents> =>
  api.get<DeviceEvents>(at`/admin/applications/${application}/audit`, { timestampFrom: now - RANGE_MS, userId, ...search })

/** Renders events of the phones of a user as a list. `none` stands in place of an empty one. */
export const renderEvents = (call: PageCall, items: readonly DeviceEvent[], none?: Markup): Markup =>
  table(
    'Events',
    ['Event', ['Data', 'wide'], 'Phone', 'When'],
    items.map(({ eventType, eventData, activationId, timestamp, verifiedBy }) => [
      eventBadge(eventType, verifiedBy),
      renderData(call, eventData),
      html`<a class="nowrap" href="${link(call, at`/registrations/${activationId}`)}">${activationId.slice(0, ID_SHOWN)}</a>`,
      ago(call.now, timestamp),
    ]),
    none,
  )

/** The event as a badge. Colour and words have the same meaning. */
const eventBadge = (eventType: string, verifiedBy?: string): Markup =>
  html`${badge(toneOf(eventType), sayEvent(eventType))}${verifiedBy !== undefined && html` <small>asked by ${verifiedBy}</small>`}`

const toneOf = (eventType: string): Tone => TONES.find(([pattern]) => pattern.test(eventType))?.[1] ?? 'off'

const TONES: readonly (readonly [RegExp, Tone])[] = [
  [/fail|mismatch|not_match|too_low|wrong|block|reject|invalid/i, 'bad'],
  [/approved|committed|_ok$|unblock/i, 'good'],
  [/created|exchanged/i, 'info'],
]

/**
 * Renders the data of an event. For a JSON object these are its members. For a code it is the purpose of the code, with the rest behind a click. Any
 * other text is shown unchanged.
 */
function renderData(call: PageCall, text: string): Markup {
  const members = readMembers(text)
  if (members === undefined) return renderLines(text)
  return html`<dl class="members">${members.map(
    ([name, value]) =>
      html`<div><dt>${MEMBERS.get(name) ?? name}</dt><dd>${
        // Callers who only read have no page of an operation.
        name === 'operationId' && call.isActing
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

/** Renders `POST`, `/operation/authorize` and the body, each on a line (cloud §7). */
function renderLines(text: string): Markup {
  const [method = '', resource, ...rest] = text.split('\n')
  if (resource === undefined) return html`<code>${text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text}</code>`
  const body = rest.join('\n')
  return html`<code>${method} ${resource}</code>${body !== '' && html` <details class="more is-small"><summary>What was signed</summary><pre>${body.length > BODY_MAX ? `${body.slice(0, BODY_MAX)}…` : body}</pre></details>`}`
}

/** The members of the data of an event; undefined if it is no JSON object. */
export function readMembers(text: string): readonly (readonly [string, string])[] | undefined {
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

/** Reads the verifications of one registration, newest first. `before`: the `next` of another page. */
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

/** Parses a row of the audit log (cloud §7, §12.5). */
export function readVerdict({ eventType, eventData }: Pick<DeviceEvent, 'eventType' | 'eventData'>): Verdict {
  const [first = '', second = '', , refusal, text] = eventData.split('\n')
  if (eventType === 'envelope_opened') return { door: 'Envelope', resource: first, tone: 'good', says: 'Opened' }
  if (eventType === 'envelope_keys_derived') return { door: 'Envelope', resource: first, tone: 'good', says: 'Keys given' }
  if (eventType.startsWith('device_signature_')) {
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

/** Renders the rows as a list. `isExact`: shows the exact time in place of the distance to it. */
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

/** The newest verifications on the page of a registration; nothing if no back end asked for one. */
export const verificationsCard = (call: PageCall, activationId: string, { items, next }: DeviceEvents): Markup | false =>
  items.length > 0 &&
  card(
    'Verified for the bank',
    renderVerifications(call, items),
    next !== undefined && html`<a href="${link(call, at`/registrations/${activationId}/verifications`)}">All</a>`,
  )
