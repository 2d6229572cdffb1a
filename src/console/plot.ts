// Small plots of what happened over time: stacked bars as an SVG, drawn by the server.
import { sayDistance } from './elements.ts'
import { html, type Markup } from './markup.ts'

const KINDS = ['good', 'bad', 'rest'] as const
/** How high each part of a bar is, in the unit of the plot. */
export type Bar = Readonly<Partial<Record<(typeof KINDS)[number], number>>>

export interface Mark {
  /** Milliseconds since 1970-01-01 UTC, as the ends of a plot. */
  readonly time: number
  readonly kind: (typeof KINDS)[number]
}

export interface PlotOptions {
  readonly from: number
  readonly to: number
  /** What it shows, for those who do not see it. */
  readonly label: string
}

const BARS = 48
const TICKS = [0, 0.25, 0.5, 0.75, 1]
const [WIDTH, HEIGHT] = [640, 100]

/** The marks between two times, counted in 48 bars. */
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
    ${drawBars(bars, top, label, BARS)}
    <p class="plot-ends">${TICKS.map((part) => html`<span>${part === 1 ? 'now' : sayDistance((part - 1) * (to - from))}</span>`)}</p></figure>`
}

export interface SmallPlot {
  readonly name: string
  readonly value: string
  readonly note: string
  /** One for each of equal stretches of the time that is shown; a bar is empty where nothing is known. */
  readonly bars: readonly Bar[]
  /** The height of the plot where no bar is higher. */
  readonly least: number
  /** What the height of the plot stands for, in words. */
  readonly sayTop: (top: number) => string
}

/** A figure, and a plot of its values before. */
export function smallPlot({ name, value, note, bars, least, sayTop }: SmallPlot): Markup {
  const top = Math.max(least, ...bars.map(heightOf))
  return html`<figure class="small-plot"><figcaption><span class="figure-name">${name}</span><span class="small-plot-value">${value}</span></figcaption>
    ${drawBars(bars, top, `${name}: ${value}, ${note}`, bars.length)}<p class="plot-ends"><span>${note}</span><span>0 to ${sayTop(top)}</span></p></figure>`
}

const heightOf = ({ good = 0, bad = 0, rest = 0 }: Bar): number => good + bad + rest

const drawBars = (bars: readonly Bar[], top: number, label: string, places: number): Markup =>
  html`<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}">${bars.map((bar, i) => drawBar(bar, i, WIDTH / Math.max(1, places), top))}</svg>`

function drawBar(bar: Bar, place: number, step: number, top: number): readonly Markup[] {
  let y = HEIGHT
  const gap = Math.min(2, step / 6)
  return KINDS.filter((kind) => (bar[kind] ?? 0) > 0).map((kind) => {
    const height = Math.max(2, ((bar[kind] ?? 0) / top) * HEIGHT)
    y -= height
    return html`<rect class="${kind}" x="${(place * step + gap).toFixed(1)}" y="${y.toFixed(1)}" width="${(step - 2 * gap).toFixed(1)}" height="${height.toFixed(1)}"></rect>`
  })
}
