// What back ends had verified of a phone (docs/DOORS.md): the rows of the audit log that name who asked, for people.
import { at } from './api.ts'
import { type DeviceEvent, type DeviceEvents, readDeviceEvents } from './device-events.ts'
import { ago, badge, card, type Column, exactTime, table, type Tone } from './elements.ts'
import { html, type Markup } from './markup.ts'
import { link, type PageCall } from './page.ts'
import { sayReason } from './words.ts'

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
