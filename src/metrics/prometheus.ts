// The parts of prom-client that are used, each by itself: the package as a whole also loads OpenTelemetry and quantiles, 60 modules.
import { createRequire } from 'node:module'
import type { Counter as CounterOf, Gauge as GaugeOf, Histogram as HistogramOf, Registry as RegistryOf } from 'prom-client'

const load = createRequire(import.meta.url)

export const Counter = load('prom-client/lib/counter.js') as typeof CounterOf
export const Gauge = load('prom-client/lib/gauge.js') as typeof GaugeOf
export const Histogram = load('prom-client/lib/histogram.js') as typeof HistogramOf
export const Registry = load('prom-client/lib/registry.js') as typeof RegistryOf
