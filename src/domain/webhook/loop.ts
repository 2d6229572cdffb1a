// Runs the delivery of webhooks in the background of every process (cloud §9).
import type { Clocked } from '../../lib/clock.ts'
import { deliverBatch, listDue } from './delivery.ts'
import { startPatience } from './patience.ts'
import type { DeliveryParts } from './webhook.ts'

/**
 * Looks for due deliveries every second, and at once after work. Each webhook that is being served has its own lane. A receiver that does not
 * answer in time (patience.ts) is slow: its lane no longer counts as a quick one, and its next lane is one of the few for slow receivers, until it
 * answers a batch in time. The returned function stops everything, and gives running attempts a moment to end.
 */
export function startWebhookDelivery(parts: DeliveryParts & Clocked): () => Promise<void> {
  const lanes = new Map<string, { readonly serving: Promise<void>; pace: Pace }>()
  /** Webhooks whose last batch was slow. */
  const slow = new Set<string>()
  /** The last started webhook of each pace. */
  const last: Record<Pace, string> = { quick: '', slow: '' }
  let looking: Promise<unknown> | undefined
  let resting = 0
  let isStopped = false

  const look = async (): Promise<void> => {
    const due = await listDue(parts)
    const waiting = due.filter((webhookId) => !lanes.has(webhookId))
    for (const pace of ['quick', 'slow'] as const) start(pace, waiting)
  }

  /** Starts lanes for waiting webhooks. It begins behind the last started one, so that each gets its turn when there are more webhooks than lanes. */
  const start = (pace: Pace, all: readonly string[]): void => {
    const waiting = all.filter((webhookId) => slow.has(webhookId) === (pace === 'slow'))
    let free = LANES_MAX[pace] - [...lanes.values()].filter((lane) => lane.pace === pace).length
    for (const webhookId of listBehind(last[pace], waiting)) {
      if (isStopped || free <= 0 || lanes.size >= ALL_LANES_MAX) return
      last[pace] = webhookId
      free -= 1
      lanes.set(webhookId, { serving: serve(webhookId, pace), pace })
    }
  }

  const serve = async (webhookId: string, pace: Pace): Promise<void> => {
    let tried = 0
    for (let batch = 0; batch < BATCHES_IN_A_TURN[pace]; batch += 1) {
      const count = await deliverWatched(webhookId)
      tried += count
      if (count === 0 || slow.has(webhookId) || isStopped) break
    }
    lanes.delete(webhookId)
    if (tried > 0) lookOnce()
  }

  /** Delivers a batch. A webhook becomes slow as soon as its receiver is late, and quick again after a batch without delay. */
  const deliverWatched = async (webhookId: string): Promise<number> => {
    const patience = startPatience(() => {
      slow.add(webhookId)
      const lane = lanes.get(webhookId)
      if (lane) lane.pace = 'slow'
      lookOnce()
    })
    const count = await deliverBatch(parts, webhookId, patience.wait).catch(fail)
    if (count > 0 && !patience.isLate()) slow.delete(webhookId)
    return count
  }

  const lookOnce = (): void => {
    if (isStopped || looking !== undefined || !parts.clock.isAgreed()) return
    looking = look()
      .catch(fail)
      .finally(() => {
        looking = undefined
      })
  }

  const fail = (err: unknown): number => {
    // At a stop, attempts may fail because the database is closed. Another process takes them up.
    if (!isStopped) parts.events.webhookRoundFailed({ err })
    resting = REST_TICKS
    return 0
  }

  const timer = setInterval(() => {
    if (resting > 0) resting -= 1
    else lookOnce()
  }, INTERVAL_MS)
  timer.unref()
  return async () => {
    isStopped = true
    clearInterval(timer)
    await looking
    const waiting = new Promise<void>((resolve) => setTimeout(resolve, STOP_MS).unref())
    await Promise.race([Promise.all(Array.from(lanes.values(), ({ serving }) => serving)), waiting])
  }
}

type Pace = 'quick' | 'slow'

/** All ids, those after `before` first. */
const listBehind = (before: string, webhookIds: readonly string[]): readonly string[] => [
  ...webhookIds.filter((webhookId) => webhookId > before),
  ...webhookIds.filter((webhookId) => webhookId <= before),
]

const INTERVAL_MS = 1_000
// After a failure, mostly of the database, the loop pauses for so many intervals.
const REST_TICKS = 4
// A lane that became slow counts among the slow lanes. It may keep another slow one from starting, but its place among the quick ones is free.
const LANES_MAX: Readonly<Record<Pace, number>> = { quick: 32, slow: 8 }
// This bounds the number of sockets, however many receivers stop answering at once.
const ALL_LANES_MAX = 96
// A slow receiver gives its lane to the next one after each batch.
const BATCHES_IN_A_TURN: Readonly<Record<Pace, number>> = { quick: 16, slow: 1 }
const STOP_MS = 2_000
