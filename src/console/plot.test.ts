// Tests that plots show the whole of the named time, from zero to the highest bar.
import { expect, test } from 'vitest'
import { toText } from './markup.ts'
import { plot, processPlots, smallPlot } from './plot.ts'

const HOUR = 3_600_000
const barsOf = (svg: string) =>
  [...svg.matchAll(/<rect class="(\w+)" x="([\d.]+)" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"/g)].map(
    ([, kind, x, y, height]) => ({
      kind,
      x: Number(x),
      bottom: Number(y) + Number(height),
      height: Number(height),
    }),
  )

test('a mark of just now stands at the right end of a day, and a day stays a day', () => {
  const text = toText(plot([{ time: 24 * HOUR - 1, kind: 'good' }], { from: 0, to: 24 * HOUR, label: 'x' }))
  const [bar] = barsOf(text)
  expect(bar?.x).toBeGreaterThan(620)
  expect(text).toContain('1 day ago')
  expect(text).toContain('12 hours ago')
  expect(text).toContain('1 in 30 minutes')
})

test('heights are shares of what the scale says, and bars stand on zero', () => {
  const bars = [{ good: 1 }, { good: 2, bad: 2 }, {}]
  const text = toText(smallPlot({ name: 'n', value: 'v', note: 'o', bars, least: 1, sayTop: (top) => `${top}/s` }))
  expect(text).toContain('0 to 4/s')
  expect(barsOf(text).map(({ kind, height }) => [kind, height])).toEqual([
    ['good', 25],
    ['good', 50],
    ['bad', 50],
  ])
  expect(barsOf(text)[0]?.bottom).toBe(100)
})

test('a process of a minute fills a sixtieth of its hour, at the right', () => {
  const sample = {
    at: HOUR - 5_000,
    seconds: 10,
    requests: 50,
    failures: 0,
    codesAccepted: 3,
    codesRefused: 0,
    messagesDelivered: 1,
    messagesFailed: 0,
    loopDelaySeconds: 0.01,
    connections: 0,
    memoryBytes: 2 ** 27,
  }
  const look = {
    history: [sample],
    startedAt: 0,
    version: '1',
    database: 'embedded',
    readAt: undefined,
    pool: undefined,
    statementTimeouts: 0,
    sealLagSeconds: 0,
    brokenChains: 0,
    background: [],
  }
  const bars = barsOf(toText(processPlots(look, HOUR)))
  expect(bars).toHaveLength(5)
  for (const { x } of bars) expect(x).toBeGreaterThan((640 / 60) * 59 - 1)
})
