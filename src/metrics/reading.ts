// Reads the metrics that come from the database. It reads when somebody asks, at most every few seconds, and callers wait only briefly.
import { setTimeout as sleep } from 'node:timers/promises'
import type { VitalSigns } from '../storage/vital-signs.ts'
import type { Instruments } from './instruments.ts'

/**
 * Returns a function that updates the gauges from the database. All callers share one running statement. A caller waits for it for half a second
 * and then gets the values of the reading before. Values older than a minute are left out, because they could mislead.
 */
export function createReading(instruments: Instruments, now: () => number, read: () => Promise<VitalSigns>): () => Promise<void> {
  let last: { readonly at: number; readonly signs: VitalSigns } | undefined
  let triedAt = Number.NEGATIVE_INFINITY
  let running: Promise<void> | undefined

  const start = async (): Promise<void> => {
    triedAt = now()
    try {
      last = { signs: await read(), at: now() }
    } catch {
      // The metric with the time of the last reading shows this failure.
    } finally {
      running = undefined
    }
  }

  return async () => {
    if (Math.abs(now() - triedAt) >= EVERY_MS) running ??= start()
    if (running) await Promise.race([running, sleep(PATIENCE_MS, undefined, { ref: false })])
    show(instruments, last && Math.abs(now() - last.at) < BELIEVED_MS ? last.signs : {}, now() / 1000)
    if (last) instruments.lastReading.set(last.at / 1000)
  }
}

function show(instruments: Instruments, signs: Partial<VitalSigns>, now: number): void {
  const { isDurable, operations, webhooks, audit, certificates } = signs
  const { waitingDeliveries, webhookLag, webhookFailures, webhookEnabled, deadDeliveries } = instruments
  const ofWebhooks = [waitingDeliveries, webhookLag, webhookFailures, webhookEnabled]
  // Series of deleted webhooks and domains must not stay.
  for (const gauge of [instruments.durable, instruments.pendingOperations, instruments.oldestOperation]) gauge.remove()
  for (const gauge of [...ofWebhooks, instruments.sealLag, instruments.certificateExpiry]) gauge.reset()
  const ageOf = (since: number | null): number => (since === null ? 0 : Math.max(0, now - since))
  if (isDurable !== undefined) instruments.durable.set(isDurable ? 1 : 0)
  if (operations) {
    instruments.pendingOperations.set(operations.pending)
    instruments.oldestOperation.set(ageOf(operations.oldest))
  }
  for (const { webhookId: webhook, waiting, oldest, failuresInRow, isEnabled } of webhooks ?? []) {
    waitingDeliveries.set({ webhook }, waiting)
    webhookLag.set({ webhook }, ageOf(oldest))
    webhookFailures.set({ webhook }, failuresInRow)
    webhookEnabled.set({ webhook }, isEnabled ? 1 : 0)
    // Prometheus sees the first dead delivery as an increase only if the series began with zero.
    deadDeliveries.inc({ webhook }, 0)
  }
  for (const { log, oldest } of audit ?? []) instruments.sealLag.set({ log }, ageOf(oldest))
  for (const { applicationId: application, domain, pinned, live } of certificates ?? []) {
    const labels = { application, domain }
    // A time that somebody set to `infinity` is a text in JSON.
    if (pinned !== null) instruments.certificateExpiry.set({ ...labels, certificate: 'pinned' }, Number(pinned))
    if (live !== null) instruments.certificateExpiry.set({ ...labels, certificate: 'live' }, Number(live))
  }
}

const EVERY_MS = 5_000
// Prometheus itself gives up after ten seconds.
const PATIENCE_MS = 500
const BELIEVED_MS = 60_000
