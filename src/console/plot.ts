// Draws small plots over time on the server: stacked bars as an SVG. Includes those of the last hour of this process.
import type { Sample } from '../metrics/history.ts'
import type { Look } from '../metrics/metrics.ts'
import { sayDistance } from './elements.ts'
import { html, type Markup } from './markup.ts'

const KINDS = ['good', 'bad', 'rest'] as const
/** The height of each part of a bar, in the unit of the plot. */
type Bar = Readonly<Partial<Record<(typeof KINDS)[number], number>>>

export interface Mark {
  /** Milliseconds since 1970-01-01 UTC, like the ends of a plot. */
  readonly time: number
  readonly kind: (typeof KINDS)[number]
}

interface PlotOptions {
  readonly from: number
  readonly to: number
  /** The content of the plot, for screen readers. */
  readonly label: string
}

const BARS = 48
const TICKS = [0, 0.25, 0.5, 0.75, 1]
const [WIDTH, HEIGHT] = [640, 100]

/** Draws the marks between two times, counted in 48 bars. */
export function plot(marks: readonly Mark[], { from, to, label }: PlotOptions): Markup {
  const width = (to - from) / BARS
  const bars = Array.from({ length: BARS }, () => ({ good: 0, bad: 0, rest: 0 }))
  for (const { time, kind } of marks) {
    const bar = bars[Math.min(BARS - 1, Math.max(0, Math.floor((time - from) / width)))]
    if (bar !== undefined) bar[kind] += 1
  }
  const top = Math.max(1, ...bars.map(heightOf))
  const barMinutes = width / 60_000
  return html`<figure class="plot"><p class="plot-ends"><span>${top} in ${barMinutes >= 2 ? `${Math.round(barMinutes)} minutes` : `${Math.round(width / 1000)} seconds`}</span></p>
    ${drawBars(bars, top, label)}
    <p class="plot-ends">${TICKS.map((part) => html`<span>${part === 1 ? 'now' : sayDistance((part - 1) * (to - from))}</span>`)}</p></figure>`
}

interface SmallPlot {
  readonly name: string
  readonly value: string
  readonly note: string
  /** One bar for each of equal parts of the shown time. A bar without a known value is empty. */
  readonly bars: readonly Bar[]
  /** The minimum height of the plot. */
  readonly least: number
  /** The height of the plot in words. */
  readonly sayTop: (top: number) => string
}

/** A figure, with a plot of its earlier values. */
export function smallPlot({ name, value, note, bars, least, sayTop }: SmallPlot): Markup {
  const top = Math.max(least, ...bars.map(heightOf))
  return html`<figure class="small-plot"><figcaption><span class="figure-name">${name}</span><span class="small-plot-value">${value}</span></figcaption>
    ${drawBars(bars, top, `${name}: ${value}, ${note}`)}<p class="plot-ends"><span>${note}</span><span>0 to ${sayTop(top)}</span></p></figure>`
}

const heightOf = ({ good = 0, bad = 0, rest = 0 }: Bar): number => good + bad + rest

const drawBars = (bars: readonly Bar[], top: number, label: string): Markup =>
  html`<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}">${bars.map((bar, i) => drawBar(bar, i, WIDTH / bars.length, top))}</svg>`

function drawBar(bar: Bar, place: number, step: number, top: number): readonly Markup[] {
  let y = HEIGHT
  const gap = Math.min(2, step / 6)
  return KINDS.filter((kind) => (bar[kind] ?? 0) > 0).map((kind) => {
    const height = Math.max(2, ((bar[kind] ?? 0) / top) * HEIGHT)
    y -= height
    return html`<rect class="${kind}" x="${(place * step + gap).toFixed(1)}" y="${y.toFixed(1)}" width="${(step - 2 * gap).toFixed(1)}" height="${height.toFixed(1)}"></rect>`
  })
}

/**
 * Plots of the hour before `at` (milliseconds), one bar a minute, empty before the start: requests, codes, webhooks, event loop, memory. If the
 * database is a PostgreSQL, also its connections.
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

/** A delay that phones feel is drawn in the colour of failures. */
const barOfDelay = (ms: number): Bar => (ms > DELAY_FELT_MS ? { bad: ms } : { good: ms })

const sayRate = (rate: number): string => (rate >= 10 ? String(Math.round(rate)) : rate.toFixed(1))

/** Groups the samples by the minutes of the hour before `end`. A minute before the start of the process has none. */
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
