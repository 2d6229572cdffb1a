// Series that count by themselves say what prom-client's own would say.
import { Counter, Histogram, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { createSeriesCounter, createSeriesHistogram } from './series.ts'

const VALUES = [0, 0.001, 0.002, 0.0021, 0.005, 0.3, 1, 2.5, 2.500001, 1e9]
const BUCKETS = [0.002, 0.005, 1, 2.5]
const LABELS = [
  { route: '/a', status: '200' },
  { route: '/"b"\n', status: '404' },
]

test('a histogram has the text and the values of prom-client', async () => {
  const [ours, theirs] = [new Registry(), new Registry()]
  const about = { name: 'times_seconds', help: 'How long', buckets: BUCKETS, labelNames: ['route', 'status'] as const }
  const series = createSeriesHistogram({ ...about, registers: [ours] })
  const model = new Histogram({ ...about, registers: [theirs] })
  const unused = series.seriesOf({ route: '/never', status: '200' })
  for (const [turn, labels] of LABELS.entries()) {
    const { observe } = series.seriesOf(labels)
    for (const value of VALUES.slice(turn * 3)) {
      observe(value)
      model.observe(labels, value)
    }
  }
  expect(await ours.metrics()).toBe(await theirs.metrics())
  expect(sorted(await series.get())).toEqual(sorted(await model.get()))
  unused.observe(1)
  expect(await ours.metrics()).toContain('times_seconds_count{route="/never",status="200"} 1')
})

test('a counter has the text and the values of prom-client', async () => {
  const [ours, theirs] = [new Registry(), new Registry()]
  const about = { name: 'checks_total', help: 'How many', labelNames: ['route', 'status'] as const }
  const series = createSeriesCounter({ ...about, registers: [ours] })
  const model = new Counter({ ...about, registers: [theirs] })
  series.seriesOf({ route: '/never', status: '200' })
  for (const [turn, labels] of LABELS.entries()) {
    const { inc } = series.seriesOf(labels)
    for (let i = 0; i <= turn; i += 1) {
      inc()
      model.inc(labels)
    }
  }
  expect(await ours.metrics()).toBe(await theirs.metrics())
  expect(sorted(await series.get())).toEqual(sorted(await model.get()))
})

/** Name, labels and value of each series in one order; of exemplars, which are not used here, the library says null. */
const sorted = ({ values }: { values: readonly { metricName?: string; labels: object; value: number }[] }): readonly string[] =>
  values.map(({ metricName, labels, value }) => JSON.stringify([metricName, labels, value])).toSorted()
