// Events of the audit log of phones, for people: what happened in words, and its data name by name.
import { badge, sayState, type Tone } from './elements.ts'
import { html, type Markup } from './markup.ts'
import { link, type PageCall } from './page.ts'

export interface DeviceEvent {
  readonly activationId: string
  readonly eventType: string
  readonly eventData: string
  readonly timestamp: number
}

/** What happened; colour and words say the same. */
export const eventBadge = (eventType: string): Markup => badge(toneOf(eventType), sayState(eventType))

const toneOf = (eventType: string): Tone => TONES.find(([pattern]) => pattern.test(eventType))?.[1] ?? 'off'

const TONES: readonly (readonly [RegExp, Tone])[] = [
  [/fail|mismatch|wrong|block|reject|invalid/i, 'bad'],
  [/approved|committed|_ok$|unblock/i, 'good'],
  [/created|exchanged/i, 'info'],
]

/** The data of an event: its members where it is an object in JSON, else as it is. */
export function eventData(call: PageCall, text: string): Markup {
  const members = readMembers(text)
  if (members === undefined) return html`<code>${text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text}</code>`
  return html`<dl class="members">${members.map(
    ([name, value]) =>
      html`<div><dt>${name}</dt><dd>${
        name === 'operationId'
          ? html`<a href="${link(call, `/operations/${encodeURIComponent(value)}`)}">${value.slice(0, ID_SHOWN)}</a>`
          : value
      }</dd></div>`,
  )}</dl>`
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
const ID_SHOWN = 8
