// What became of an operation, one thing after the other: what the audit log has of it, and what webhooks were told.
import type { ListedOperation } from './answers.ts'
import { at, unlessRefused } from './api.ts'
import { readDeliverySteps } from './deliveries.ts'
import { type DeviceEvent, readDeviceEvents } from './device-events.ts'
import { reason, type Step, timeline, type Tone } from './elements.ts'
import { html, type Markup } from './markup.ts'
import { link, type PageCall } from './page.ts'
import { sayState } from './words.ts'

/** Oldest first. */
export async function operationTimeline(call: PageCall, operation: ListedOperation): Promise<Markup> {
  const [events, deliveries] = await Promise.all([
    readEvents(call, operation),
    readDeliverySteps(call, 'OPERATION', operation.operationId),
  ])
  const created: Step = { title: 'Created', at: operation.timestampCreated, tone: 'info' }
  const expired: Step | undefined =
    operation.status === 'EXPIRED' ? { title: 'Expired', at: operation.timestampExpires, tone: 'off' } : undefined
  const steps = [created, ...events, ...deliveries, ...(expired === undefined ? [] : [expired])]
  return timeline(
    call.now,
    steps.toSorted((a, b) => (a.at ?? Number.POSITIVE_INFINITY) - (b.at ?? Number.POSITIVE_INFINITY)),
  )
}

/** What phone and bank did with it, by the audit log of its user. */
async function readEvents(call: PageCall, operation: ListedOperation): Promise<readonly Step[]> {
  const { operationId, userId, timestampCreated: timestampFrom, timestampExpires } = operation
  // Nothing happens to an operation after its time. What its user did later is not asked for, because it would push the rest out of the answer.
  const timestampTo = Math.min(call.now, timestampExpires)
  const found = await unlessRefused(readDeviceEvents(call, userId, { timestampFrom, timestampTo, limit: EVENTS_MAX }))
  return (found?.items ?? [])
    .filter(({ eventType, eventData }) => isAbout(operationId, eventType, eventData))
    .map((item) => toStep(call, item))
}

/** An event of the operation after its creation, or an offline one-time password for it, right or wrong. */
const isAbout = (operationId: string, eventType: string, eventData: string): boolean =>
  eventData.includes(operationId) &&
  ((eventType.startsWith('operation_') && eventType !== 'operation_created') || eventType.startsWith('offline_otp_'))

function toStep(call: PageCall, { activationId, eventType, eventData, timestamp }: DeviceEvent): Step {
  const what = eventType.replace('operation_', '')
  const why = readReason(eventData)
  const by =
    what === 'canceled' ? 'by the bank' : html`by <a href="${link(call, at`/registrations/${activationId}`)}">the phone</a>`
  return {
    title: sayState(what),
    at: timestamp,
    tone: TONES[what] ?? 'bad',
    note: html`${by}${why !== undefined && html` · ${reason(why)}`}`,
  }
}

const TONES: Readonly<Record<string, Tone>> = { approved: 'good', offline_otp_ok: 'good', canceled: 'off' }

/** The member `reason` of the data of an event; undefined where there is none. */
function readReason(eventData: string): string | undefined {
  try {
    const { reason: why } = JSON.parse(eventData) as { reason?: unknown }
    return typeof why === 'string' ? why : undefined
  } catch {
    return undefined
  }
}

const EVENTS_MAX = 200
