// Shortens what webhooks wait for after a clock was set back: no longer than they could wait by the clock as it is now
// (docs/decisions/0027-time.md).
import type { Db } from '../../storage/database/database.ts'
import { bringBackDeliveries } from '../../storage/webhook/deliveries.ts'
import { bringBackWebhooks } from '../../storage/webhook/webhooks.ts'
import { probeMilliseconds, RETRY_AFTER_MS_MAX, retryMillisecondsMax } from './schedule.ts'

/** Makes due what waits for longer than anything is put off; `now`: milliseconds since 1970. Up to `limit` deliveries; returns how many. */
export async function bringBack(db: Db, now: number, retryBaseSeconds: number, limit: number): Promise<number> {
  const probeMs = probeMilliseconds(retryBaseSeconds)
  const within = (ms: number): Date => new Date(now + ms + SLACK_MS)
  await bringBackWebhooks(db, {
    at: new Date(now),
    probeLatest: within(probeMs),
    pauseLatest: within(RETRY_AFTER_MS_MAX),
    failingLatest: within(0),
    failingSince: new Date(now - probeMs),
  })
  return bringBackDeliveries(db, new Date(now), within(retryMillisecondsMax(retryBaseSeconds)), limit)
}

/** Clocks of processes that follow one database differ by much less. */
const SLACK_MS = 60_000
