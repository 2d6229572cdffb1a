// Metrics that every request counts. A series is found once and then counts without its labels; prom-client, which validates and hashes
// them at each count, sees the sums when somebody looks, and stays in charge of the format.
import type { CounterConfiguration, HistogramConfiguration } from 'prom-client'
import { Counter, Histogram } from './prometheus.ts'

/** One series of a counter. */
export interface CountedSeries {
  readonly inc: () => void
}

/** One series of a histogram. */
export interface ObservedSeries {
  readonly observe: (value: number) => void
}

/** The labels of one series, each with its value. */
type Labels<L extends string> = Readonly<Record<L, string>>

/** A counter of the series that `seriesOf` makes, one a combination of labels, shown from its first count on. */
export function createSeriesCounter<L extends string>(configuration: CounterConfiguration<L>) {
  const all: { readonly labels: Labels<L>; value: number }[] = []
  const counter = new Counter<L>(configuration)
  const getEmpty = counter.get.bind(counter)
  return Object.assign(counter, {
    seriesOf: (labels: Labels<L>): CountedSeries => {
      const series = { labels, value: 0 }
      all.push(series)
      return {
        inc: () => {
          series.value += 1
        },
      }
    },
    get: async () => ({
      ...(await getEmpty()),
      values: all.filter(({ value }) => value > 0).map(({ labels, value }) => ({ labels: { ...labels }, value })),
    }),
  })
}

interface Observed<L extends string> {
  readonly labels: Labels<L>
  /** How many values fell into each bucket, without the buckets below it; the last place counts values over every bound. */
  readonly counts: Float64Array
  sum: number
}

/** A histogram of the series that `seriesOf` makes, one a combination of labels, shown from its first value on. */
export function createSeriesHistogram<L extends string>(
  configuration: HistogramConfiguration<L> & { readonly buckets: readonly number[] },
) {
  const { name, help, buckets: bounds } = configuration
  const all: Observed<L>[] = []
  return Object.assign(new Histogram<L>(configuration), {
    seriesOf: (labels: Labels<L>): ObservedSeries => {
      const series: Observed<L> = { labels, counts: new Float64Array(bounds.length + 1), sum: 0 }
      all.push(series)
      const { counts } = series
      return {
        observe: (value) => {
          let at = 0
          while (at < bounds.length && value > (bounds[at] ?? 0)) at += 1
          counts[at] = (counts[at] ?? 0) + 1
          series.sum += value
        },
      }
    },
    /** What prom-client makes its text and its `get` of. */
    getForPromString: async () => ({
      name,
      help,
      type: 'histogram',
      aggregator: 'sum',
      values: all.flatMap((series) => show(name, bounds, series)),
    }),
  })
}

/** The values of a series as prom-client has them; none before the first. A bucket counts what is up to its bound: it holds those before it. */
function show<L extends string>(name: string, bounds: readonly number[], { labels: sharedLabels, counts, sum }: Observed<L>) {
  const total = counts.reduce((sumOfAll, count) => sumOfAll + count, 0)
  if (total === 0) return []
  let upTo = 0
  const buckets = bounds.map((le, at) => {
    upTo += counts[at] ?? 0
    return { metricName: `${name}_bucket`, labels: { le }, sharedLabels, value: upTo }
  })
  return [
    ...buckets,
    { metricName: `${name}_bucket`, labels: { le: '+Inf' }, sharedLabels, value: total },
    { metricName: `${name}_sum`, labels: {}, sharedLabels, value: sum },
    { metricName: `${name}_count`, labels: {}, sharedLabels, value: total },
  ]
}
