// The last hour of the process that answers, as small plots.
import type { Sample } from '../metrics/history.ts'
import type { Look } from '../metrics/look.ts'
import { html, type Markup } from './markup.ts'
import { type Bar, smallPlot } from './plot.ts'

/**
 * Plots of the hour before `at` (milliseconds), a bar a minute, empty before the start: requests, codes, webhooks, event loop, memory, and the
 * connections where the database is a PostgreSQL.
 */
export function processPlots({ history, pool }: Look, at: number): Markup {
  const groups = groupByMinute(history, Math.max(at, history.at(-1)?.at ?? at))
  const last = history.slice(-RATE_SAMPLES)
  const sum = (samples: readonly Sample[], ...names: readonly Counted[]): number =>
    samples.reduce((total, sample) => total + names.reduce((own, name) => own + sample[name], 0), 0)
  const rate = (samples: readonly Sample[], ...names: readonly Counted[]): number =>
    sum(samples, ...names) / Math.max(1, sum(samples, 'seconds'))
  const bars = (barOf: (samples: readonly Sample[]) => Bar): readonly Bar[] => groups.map(barOf)
  const worst = (samples: readonly Sample[], name: Level): number => Math.max(0, ...samples.map((sample) => sample[name]))
  const now = history.at(-1)
  const failures = sum(history, 'failures')
  const codes = sum(history, 'codesAccepted', 'codesRefused')
  const refused = sum(history, 'codesRefused')
  const undelivered = sum(history, 'messagesFailed')
  return html`<div class="small-plots">
    ${smallPlot({ name: 'Requests', value: `${sayRate(rate(last, 'requests'))}/s`, note: failures === 0 ? 'none failed' : `${failures} failed`, least: 1, sayTop: (top) => `${sayRate(top)}/s`, bars: bars((some) => ({ good: rate(some, 'requests') - rate(some, 'failures'), bad: rate(some, 'failures') })) })}
    ${smallPlot({ name: 'Codes of phones', value: codes === 0 ? '–' : `${Math.round(((codes - refused) / codes) * 100)} % right`, note: codes === 0 ? 'none in the hour' : `${codes} checked, ${refused} refused`, least: 1, sayTop: (top) => `${top} a minute`, bars: bars((some) => ({ good: sum(some, 'codesAccepted'), bad: sum(some, 'codesRefused') })) })}
    ${smallPlot({ name: 'Webhook messages', value: `${sayRate(rate(last, 'messagesDelivered', 'messagesFailed') * 60)}/min`, note: undelivered === 0 ? 'no attempt failed' : `${undelivered} attempts failed`, least: 1, sayTop: (top) => `${top} a minute`, bars: bars((some) => ({ good: sum(some, 'messagesDelivered'), bad: sum(some, 'messagesFailed') })) })}
    ${
      pool !== undefined &&
      smallPlot({
        name: 'Database connections',
        value: `${pool.busy} busy`,
        note: `of ${pool.max}, ${pool.waiting} requests wait`,
        least: pool.max,
        sayTop: String,
        bars: bars((some) => ({ good: worst(some, 'connections') })),
      })
    }
    ${smallPlot({ name: 'Timers are late by', value: `${Math.round((now?.loopDelaySeconds ?? 0) * 1000)} ms`, note: `at the worst ${Math.round(worst(history, 'loopDelaySeconds') * 1000)} ms`, least: 50, sayTop: (top) => `${Math.round(top)} ms`, bars: bars((some) => barOfDelay(worst(some, 'loopDelaySeconds') * 1000)) })}
    ${smallPlot({ name: 'Memory', value: `${Math.round((now?.memoryBytes ?? 0) / 2 ** 20)} MiB`, note: 'of the whole process', least: 2 ** 28, sayTop: (top) => `${Math.round(top / 2 ** 20)} MiB`, bars: bars((some) => ({ rest: worst(some, 'memoryBytes') })) })}
  </div>`
}

type Level = 'connections' | 'loopDelaySeconds' | 'memoryBytes'
type Counted = Exclude<keyof Sample, 'at' | Level>

/** A delay that phones feel stands out. */
const barOfDelay = (ms: number): Bar => (ms > DELAY_FELT_MS ? { bad: ms } : { good: ms })

const sayRate = (rate: number): string => (rate >= 10 ? String(Math.round(rate)) : rate.toFixed(1))

/** The samples of each minute of the hour before `end`; a minute before the start of the process has none. */
const groupByMinute = (history: readonly Sample[], end: number): readonly (readonly Sample[])[] =>
  Array.from({ length: MINUTES }, (_, i) => {
    const from = end - (MINUTES - i) * MINUTE_MS
    return history.filter((sample) => sample.at > from && sample.at <= from + MINUTE_MS)
  })

const MINUTES = 60
const MINUTE_MS = 60_000
/** Three samples of ten seconds, and the one that has begun. */
const RATE_SAMPLES = 4
const DELAY_FELT_MS = 250
