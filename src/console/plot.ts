// Small plots of what happened over time: stacked bars as an SVG, drawn by the server.
import { html, type Markup, nothing } from './markup.ts'

const KINDS = ['good', 'bad', 'rest'] as const
/** How high each part of a bar is, in the unit of the plot. */
export type Bar = Readonly<Partial<Record<(typeof KINDS)[number], number>>>

export interface Mark {
  /** Milliseconds. */
  readonly time: number
  readonly kind: (typeof KINDS)[number]
}

export interface PlotOptions {
  readonly from: number
  readonly to: number
  /** What it shows, for those who do not see it. */
  readonly label: string
  /** Below its ends. */
  readonly ends: readonly [string, string]
}

const BARS = 48
const PLACES_MIN = 24
const [WIDTH, HEIGHT] = [640, 100]

/** Bars of marks between two times. */
export function plot(marks: readonly Mark[], { from, to, label, ends }: PlotOptions): Markup {
  const width = (to - from) / BARS
  const bars = Array.from({ length: BARS }, () => ({ good: 0, bad: 0, rest: 0 }))
  for (const { time, kind } of marks) {
    const bar = bars[Math.min(BARS - 1, Math.max(0, Math.floor((time - from) / width)))]
    if (bar !== undefined) bar[kind] += 1
  }
  const top = Math.max(1, ...bars.map(heightOf))
  return html`<figure class="plot"><p class="plot-ends"><span>${top} at the most</span></p>
    ${drawBars(bars, top, label)}
    <p class="plot-ends"><span>${ends[0]}</span><span>${ends[1]}</span></p></figure>`
}

export interface SmallPlot {
  readonly name: string
  readonly value: string
  readonly note: string
  readonly bars: readonly Bar[]
  /** The scale when nothing is higher. */
  readonly least: number
}

/** A figure with the plot of what it was before. */
export const smallPlot = ({ name, value, note, bars, least }: SmallPlot): Markup =>
  html`<figure class="small-plot"><figcaption><span class="figure-name">${name}</span><span class="small-plot-value">${value}</span></figcaption>
    ${drawBars(bars, Math.max(least, ...bars.map(heightOf)), `${name}: ${value}, ${note}`)}<small>${note}</small></figure>`

const heightOf = ({ good = 0, bad = 0, rest = 0 }: Bar): number => good + bad + rest

const drawBars = (bars: readonly Bar[], top: number, label: string): Markup =>
  html`<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}">${
    bars.length === 0 ? nothing : drawFromRight(bars, top)
  }</svg>`

/** The last bar stands at the right end, however few there are. */
function drawFromRight(bars: readonly Bar[], top: number): readonly (readonly Markup[])[] {
  const places = Math.max(PLACES_MIN, bars.length)
  return bars.map((bar, i) => drawBar(bar, places - bars.length + i, WIDTH / places, top))
}

function drawBar(bar: Bar, place: number, step: number, top: number): readonly Markup[] {
  let y = HEIGHT
  const gap = Math.min(2, step / 6)
  return KINDS.filter((kind) => (bar[kind] ?? 0) > 0).map((kind) => {
    const height = Math.max(2, ((bar[kind] ?? 0) / top) * HEIGHT)
    y -= height
    return html`<rect class="${kind}" x="${(place * step + gap).toFixed(1)}" y="${y.toFixed(1)}" width="${(step - 2 * gap).toFixed(1)}" height="${height.toFixed(1)}"></rect>`
  })
}
