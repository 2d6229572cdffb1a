// The background work that delivers webhooks, in every process beside the others (cloud §9).
import { listDueWebhooks } from '../storage/webhook-deliveries.ts'
import { deliverTo, type DeliveryParts } from './webhook-delivery.ts'

/**
 * Looks for due deliveries every second, and again at once where there was work. Each webhook has a lane of its own, so that a slow
 * receiver holds up nobody else. The returned function stops it and gives running attempts a moment to end.
 */
export function startWebhookDelivery(parts: DeliveryParts): () => Promise<void> {
  const lanes = new Map<string, Promise<void>>()
  let last = ''
  let looking: Promise<unknown> | undefined
  let resting = 0
  let isStopped = false

  const look = async (): Promise<void> => {
    const due = await listDueWebhooks(parts.db, new Date(parts.platform.now()))
    // Starts behind the one that was started last: with more webhooks than lanes each gets its turn.
    const inTurn = [...due.filter((webhookId) => webhookId > last), ...due.filter((webhookId) => webhookId <= last)]
    for (const webhookId of inTurn) {
      if (isStopped || lanes.size >= LANES_MAX) return
      if (lanes.has(webhookId)) continue
      last = webhookId
      lanes.set(webhookId, serve(webhookId))
    }
  }

  const serve = async (webhookId: string): Promise<void> => {
    const tried = await deliverTo(parts, webhookId, () => isStopped).catch(fail)
    lanes.delete(webhookId)
    if (tried > 0) lookOnce()
  }

  const lookOnce = (): void => {
    if (isStopped || looking !== undefined) return
    looking = look()
      .catch(fail)
      .finally(() => {
        looking = undefined
      })
  }

  const fail = (err: unknown): number => {
    // What runs into the closed database at a stop is taken up by another process.
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
    await Promise.race([Promise.all(lanes.values()), waiting])
  }
}

const INTERVAL_MS = 1_000
// After a failure, which is as a rule a lost database.
const REST_TICKS = 4
const LANES_MAX = 32
const STOP_MS = 2_000
