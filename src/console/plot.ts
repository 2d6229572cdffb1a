// A small plot of what happened over time: stacked bars as an SVG, drawn by the server.
import { html, type Markup } from './markup.ts'

export interface Mark {
  /** Milliseconds. */
  readonly time: number
  readonly kind: 'good' | 'bad' | 'rest'
}

export interface PlotOptions {
  readonly from: number
  readonly to: number
  /** What it shows, for those who do not see it. */
  readonly label: string
  /** Below its ends. */
  readonly ends: readonly [string, string]
}

const BARS = 32
const [WIDTH, HEIGHT] = [640, 100]
const KINDS = ['good', 'bad', 'rest'] as const

/** Bars of marks between two times. */
export function plot(marks: readonly Mark[], { from, to, label, ends }: PlotOptions): Markup {
  const width = (to - from) / BARS
  const bars = Array.from({ length: BARS }, () => ({ good: 0, bad: 0, rest: 0 }))
  for (const { time, kind } of marks) {
    const bar = bars[Math.min(BARS - 1, Math.max(0, Math.floor((time - from) / width)))]
    if (bar !== undefined) bar[kind] += 1
  }
  const top = Math.max(1, ...bars.map(({ good, bad, rest }) => good + bad + rest))
  return html`<figure class="plot"><p class="plot-ends"><span>${top} at the most</span></p>
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}">${bars.map((bar, i) => drawBar(bar, i, top))}</svg>
    <p class="plot-ends"><span>${ends[0]}</span><span>${ends[1]}</span></p></figure>`
}

function drawBar(bar: Readonly<Record<Mark['kind'], number>>, place: number, top: number): readonly Markup[] {
  const step = WIDTH / BARS
  let y = HEIGHT
  return KINDS.filter((kind) => bar[kind] > 0).map((kind) => {
    const height = Math.max(2, (bar[kind] / top) * HEIGHT)
    y -= height
    return html`<rect class="${kind}" x="${(place * step + 2).toFixed(1)}" y="${y.toFixed(1)}" width="${(step - 4).toFixed(1)}" height="${height.toFixed(1)}"></rect>`
  })
}
