// Keeps samples of the counters of this process for the last hour, for people who have no Prometheus.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Instruments } from './instruments.ts'

/** Counts of a span of time, and measurements at its end. */
export interface Sample {
  /** The end of the span, in milliseconds since 1970. */
  readonly at: number
  readonly seconds: number
  readonly requests: number
  /** Requests that were answered with 5xx. */
  readonly failures: number
  readonly codesAccepted: number
  readonly codesRefused: number
  readonly messagesDelivered: number
  readonly messagesFailed: number
  /** How late timers fired, the 99th percentile. */
  readonly loopDelaySeconds: number
  /** Connections to PostgreSQL that were in use. */
  readonly connections: number
  readonly memoryBytes: number
}

export interface History {
  /** Oldest first; the last one ends now. */
  readonly read: () => Promise<readonly Sample[]>
  readonly stop: () => void
}

/**
 * Takes a sample every ten seconds until it is stopped. `now`: milliseconds since 1970. The length of a sample comes from the monotonic clock,
 * which nobody sets. `busyConnections`: undefined for a database without a pool.
 */
export function keepHistory(instruments: Instruments, now: () => number, busyConnections: () => number | undefined): History {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delays.enable()
  const samples: Sample[] = []
  let before: { readonly since: number; readonly totals: Partial<Totals> } = { since: performance.now(), totals: {} }

  const take = async (): Promise<{ readonly sample: Sample; readonly totals: Totals; readonly until: number }> => {
    const totals = await readTotals(instruments)
    const until = performance.now()
    const late = delays.count === 0 ? 0 : Math.max(0, delays.percentile(99) / 1e6 - RESOLUTION_MS) / 1000
    const since = (name: keyof Totals): number => totals[name] - (before.totals[name] ?? 0)
    const sample = {
      at: now(),
      seconds: (until - before.since) / 1000,
      requests: since('requests'),
      failures: since('failures'),
      codesAccepted: since('codesAccepted'),
      codesRefused: since('codesRefused'),
      messagesDelivered: since('messagesDelivered'),
      messagesFailed: since('messagesFailed'),
      loopDelaySeconds: late,
      connections: busyConnections() ?? 0,
      memoryBytes: process.memoryUsage.rss(),
    }
    return { sample, totals, until }
  }

  const keep = async (): Promise<void> => {
    const { sample, totals, until } = await take()
    before = { since: until, totals }
    samples.push(sample)
    if (samples.length > SAMPLES_MAX) samples.shift()
    delays.reset()
  }

  const timer = setInterval(() => void keep(), EVERY_MS)
  timer.unref()
  return {
    read: async () => [...samples, (await take()).sample],
    stop: () => {
      clearInterval(timer)
      delays.disable()
    },
  }
}

type Totals = Readonly<
  Record<'requests' | 'failures' | 'codesAccepted' | 'codesRefused' | 'messagesDelivered' | 'messagesFailed', number>
>

async function readTotals({ requests, verifications, webhookAttempts }: Instruments): Promise<Totals> {
  const [served, codes, attempts] = await Promise.all([requests.get(), verifications.get(), webhookAttempts.get()])
  const counts = served.values.filter(({ metricName }) => metricName?.endsWith('_count'))
  const accepted = sum(codes.values.filter(({ labels }) => labels.result === 'accepted'))
  const delivered = sum(attempts.values.filter(({ labels }) => labels.result === 'delivered'))
  return {
    requests: sum(counts),
    failures: sum(counts.filter(({ labels }) => String(labels.status).startsWith('5'))),
    codesAccepted: accepted,
    codesRefused: sum(codes.values) - accepted,
    messagesDelivered: delivered,
    messagesFailed: sum(attempts.values) - delivered,
  }
}

const sum = (values: readonly { readonly value: number }[]): number => values.reduce((total, { value }) => total + value, 0)

const RESOLUTION_MS = 20
const EVERY_MS = 10_000
// An hour.
const SAMPLES_MAX = 360
