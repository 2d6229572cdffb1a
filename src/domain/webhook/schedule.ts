// Schedules the retries of failed deliveries: eight attempts in about a day (cloud §9). Brings back deliveries that a wrong clock has put off too
// far (docs/decisions/0027-time.md).
import type { Platform } from '../../lib/platform.ts'
import type { Db } from '../../storage/database/database.ts'
import { bringBackDeliveries } from '../../storage/webhook/deliveries.ts'
import { bringBackWebhooks } from '../../storage/webhook/webhooks.ts'

/** After this many attempts a delivery is dead. */
export const ATTEMPTS_MAX = 8

/** Returns the milliseconds to wait after the given number of attempts, up to a tenth more or less so that deliveries spread. */
export function retryMilliseconds(attempts: number, baseSeconds: number, { randomBytes }: Pick<Platform, 'randomBytes'>): number {
  const units = RETRY_UNITS[attempts - 1] ?? 0
  const [high = 0, low = 0] = randomBytes(2)
  const jitter = 0.9 + (0.2 * (high * 256 + low)) / 65_535
  return Math.round(units * baseSeconds * 1000 * jitter)
}

/** The longest wait that `retryMilliseconds` or the `Retry-After` of a receiver gives. */
const retryMillisecondsMax = (baseSeconds: number): number =>
  Math.max(Math.max(...RETRY_UNITS) * baseSeconds * 1000 * 1.1, RETRY_AFTER_MS_MAX)

/**
 * Returns the interval in milliseconds at which a failing webhook is probed. A webhook that failed for at least so long retries all waiting
 * deliveries at once after its first success.
 */
export const probeMilliseconds = (baseSeconds: number): number => PROBE_UNITS * baseSeconds * 1000

/** Parses a Retry-After header, in seconds or as a date, to milliseconds from now, at most an hour; undefined without a usable value. */
export function parseRetryAfter(value: string | string[] | undefined, now: number): number | undefined {
  if (typeof value !== 'string') return undefined
  const waitMs = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now
  return waitMs > 0 ? Math.min(waitMs, RETRY_AFTER_MS_MAX) : undefined
}

// The waits in units of the setting, by default 5 s: 5 s, 15 s, 1 min, 5 min, 30 min, 4 h, and the rest of 24 hours.
const RETRY_UNITS = [1, 3, 12, 60, 360, 2_880, 13_964]
const PROBE_UNITS = 12
const RETRY_AFTER_MS_MAX = 3_600_000

/**
 * Makes webhooks and deliveries due that wait for longer than any schedule allows. `now`: milliseconds since 1970. Handles up to `limit`
 * deliveries, and returns their number.
 */
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

/** The clocks of processes on one database differ by much less than this. */
const SLACK_MS = 60_000
