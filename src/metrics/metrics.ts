// Makes the metrics of one server. They count its events, time the requests of its listeners, and read the database when somebody asks
// (docs/METRICS.md).
import { readdir, readFile } from 'node:fs/promises'
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import type { FastifyInstance } from 'fastify'
import type { CacheUse } from '../lib/memory.ts'
import type { Events } from '../log/events.ts'
import type { PoolUse } from '../storage/database/postgres.ts'
import type { VitalSigns } from '../storage/vital-signs.ts'
import { countEvents } from './count-events.ts'
import { type History, keepHistory, type Sample } from './history.ts'
import { createInstruments, type Instruments } from './instruments.ts'
import { createReading } from './reading.ts'

/** The processes that share a port, from the view of one of them. */
export interface Peers {
  /** The label of all series of this process. */
  readonly worker: string
  /** Returns the exposition of every process, also of this one. */
  readonly collect: () => Promise<readonly string[]>
  readonly onAsked: (render: () => Promise<string>) => void
}

/** Merges several expositions into one. The series of a metric stand together below one description (text format 0.0.4). */
function mergeExpositions(texts: readonly string[]): string {
  const metrics = new Map<string, string[]>()
  for (const block of texts.flatMap((text) => text.trimEnd().split('\n\n'))) {
    const [help = '', type = '', ...series] = block.split('\n')
    const description = `${help}\n${type}`
    const known = metrics.get(description)
    if (known === undefined) metrics.set(description, series)
    else known.push(...series)
  }
  return `${[...metrics].map(([description, series]) => [description, ...series].join('\n')).join('\n\n')}\n`
}

export interface Metrics {
  /** The events to use instead of the given ones: they are also counted. */
  readonly events: Events
  /** Sets the sources that are read beside the counters. Call it when the database is open. */
  readonly watch: (sources: MetricSources) => void
  readonly timeRequests: (app: FastifyInstance) => void
  /** Returns the answer to Prometheus. */
  readonly render: () => Promise<{ readonly contentType: string; readonly text: string }>
  /** Returns values for the console, with the last hour of this process. */
  readonly look: () => Promise<Look>
  readonly close: () => void
}

interface MetricSources {
  readonly read: () => Promise<VitalSigns>
  readonly version: string
  readonly databaseKind: string
  /** Undefined for the embedded database, which has no pool. */
  readonly poolUse: (() => PoolUse) | undefined
  readonly listCaches: () => readonly CacheUse[]
  /** Milliseconds by which the clock of the process is ahead of the database's; undefined where both use one clock. */
  readonly clockDifference: () => number | undefined
}

/**
 * Creates metrics with a registry of their own. `now`: milliseconds since 1970. With `peers` the answer has the metrics of all processes, which
 * differ by the label `worker`.
 */
export function createMetrics(events: Events, now: () => number, peers?: Peers): Metrics {
  const instruments = createInstruments()
  const processWatch = watchProcess(instruments)
  const { registry } = instruments
  let update = async (): Promise<void> => undefined
  let history: History | undefined
  const renderOwn = async (): Promise<string> => {
    await Promise.all([update(), processWatch.update()])
    return registry.metrics()
  }
  if (peers) registry.setDefaultLabels({ worker: peers.worker })
  peers?.onAsked(renderOwn)
  return {
    events: countEvents(events, instruments, now),
    watch: ({ version, databaseKind, poolUse, listCaches, clockDifference, read }) => {
      // The history begins here, because the start and its migrations say nothing about the serving of requests.
      history = keepHistory(instruments, now, () => busyOf(poolUse?.()))
      const readDatabase = createReading(instruments, now, read)
      instruments.info.set({ version, database: databaseKind }, 1)
      update = async () => {
        showCaches(instruments, listCaches())
        if (poolUse) showPool(instruments, poolUse())
        instruments.clockDifference.set((clockDifference() ?? 0) / 1000)
        await readDatabase()
      }
    },
    timeRequests: (app) => timeRequests(app, instruments),
    render: async () => ({
      contentType: registry.contentType,
      text: peers ? mergeExpositions(await peers.collect()) : await renderOwn(),
    }),
    // processWatch is not updated here: its values cover the time since the last question of Prometheus.
    look: async () => {
      await update()
      return look(instruments, (await history?.read()) ?? [])
    },
    close: () => {
      history?.stop()
      processWatch.stop()
      registry.clear()
    },
  }
}

function showCaches(instruments: Instruments, caches: readonly CacheUse[]): void {
  const { cacheEntries, cacheEntriesMax, cacheHits, cacheMisses } = instruments
  cacheHits.reset()
  cacheMisses.reset()
  for (const { name: cache, entries, entriesMax, hits, misses } of caches) {
    cacheEntries.set({ cache }, entries)
    cacheEntriesMax.set({ cache }, entriesMax)
    cacheHits.inc({ cache }, hits)
    cacheMisses.inc({ cache }, misses)
  }
}

const busyOf = (use: PoolUse | undefined): number | undefined => use && use.open - use.idle

function showPool({ poolConnections, poolMax, poolWaiting }: Instruments, { open, max, idle, waiting }: PoolUse): void {
  poolMax.set(max)
  poolConnections.set({ state: 'busy' }, open - idle)
  poolConnections.set({ state: 'idle' }, idle)
  poolWaiting.set(waiting)
}

/**
 * Times the requests of a listener, from their headers to the end of their answer. All requests without a route share one series, whatever their
 * path and method: callers cannot make series by inventing paths.
 */
function timeRequests(app: FastifyInstance, { requests }: Instruments): void {
  app.addHook('onResponse', ({ method, routeOptions: { url: route } }, { statusCode, elapsedTime }, done) => {
    const labels = { method: route ? method : 'any', route: route ?? 'unknown', status: String(statusCode) }
    requests.observe(labels, elapsedTime / 1000)
    done()
  })
}

export interface Look {
  /** Samples of this process, oldest first; the last one ends now. */
  readonly history: readonly Sample[]
  /** Seconds since 1970. */
  readonly startedAt: number
  readonly version: string
  readonly database: string
  /** The time of the last reading of the database, in seconds since 1970; undefined when there was none. */
  readonly readAt: number | undefined
  /** Undefined for a database without a pool. */
  readonly pool: { readonly busy: number; readonly max: number; readonly waiting: number } | undefined
  /** Statements without an answer in time, since the start. */
  readonly statementTimeouts: number
  /** Age of the oldest audit row that is not sealed, in seconds. */
  readonly sealLagSeconds: number
  readonly brokenChains: number
  /** Each work with its failures since the start of the process, and the time of its last success, in seconds since 1970. */
  readonly background: readonly { readonly work: string; readonly failures: number; readonly lastSuccessAt: number | undefined }[]
}

/** Reads the instruments. Values from the database are as old as its last reading. */
export async function look(i: Instruments, history: readonly Sample[]): Promise<Look> {
  const [pool, max, waiting, timeouts, lags, broken, failures, rounds, reading, started, info] = await Promise.all([
    values(i.poolConnections),
    values(i.poolMax),
    values(i.poolWaiting),
    values(i.statementTimeouts),
    values(i.sealLag),
    values(i.brokenChains),
    values(i.failedRounds),
    values(i.lastRound),
    values(i.lastReading),
    values(i.started),
    values(i.info),
  ])
  const stateOf = (state: string) => pool.find(({ labels }) => labels['state'] === state)?.value ?? 0
  const readAt = reading[0]?.value
  return {
    history,
    startedAt: started[0]?.value ?? 0,
    version: String(info[0]?.labels['version'] ?? ''),
    database: String(info[0]?.labels['database'] ?? ''),
    readAt: readAt === 0 ? undefined : readAt,
    pool: pool.length === 0 ? undefined : { busy: stateOf('busy'), max: max[0]?.value ?? 0, waiting: waiting[0]?.value ?? 0 },
    statementTimeouts: timeouts.reduce((sum, { value }) => sum + value, 0),
    sealLagSeconds: Math.max(0, ...lags.map(({ value }) => value)),
    brokenChains: broken[0]?.value ?? 0,
    background: failures.map(({ labels, value }) => ({
      work: String(labels['work']),
      failures: value,
      lastSuccessAt: rounds.find((round) => round.labels['work'] === labels['work'])?.value,
    })),
  }
}

interface Value {
  readonly value: number
  readonly labels: Readonly<Record<string, string | number | undefined>>
}

const values = async (metric: {
  readonly get: () => Promise<{ readonly values: readonly Value[] }>
}): Promise<readonly Value[]> => (await metric.get()).values

interface ProcessWatch {
  readonly update: () => Promise<void>
  readonly stop: () => void
}

/**
 * Measures the process, and watches its event loop until `stop` is called. prom-client's own collection starts observers that cannot be stopped, so
 * it is not used.
 */
function watchProcess(instruments: Instruments): ProcessWatch {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delays.enable()
  let loopUse = performance.eventLoopUtilization()
  let processorSeconds = 0
  instruments.started.set(performance.timeOrigin / 1000)
  return {
    update: async () => {
      for (const quantile of QUANTILES) {
        // The measured delay includes the interval of the timer itself.
        const late = Math.max(0, delays.percentile(quantile * 100) / 1e6 - RESOLUTION_MS)
        instruments.loopDelay.set({ quantile }, delays.count === 0 ? 0 : late / 1000)
      }
      delays.reset()
      const nextLoopUse = performance.eventLoopUtilization()
      instruments.loopUse.set(performance.eventLoopUtilization(nextLoopUse, loopUse).utilization)
      loopUse = nextLoopUse
      const { user, system } = process.cpuUsage()
      const seconds = (user + system) / 1e6
      instruments.processorTime.inc(seconds - processorSeconds)
      processorSeconds = seconds
      const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
      instruments.residentMemory.set(rss)
      instruments.heapUsed.set(heapUsed)
      instruments.heapTotal.set(heapTotal)
      instruments.externalMemory.set(external)
      // Other systems than Linux do not have this folder.
      const files = await readdir('/proc/self/fd').catch(() => undefined)
      if (files) instruments.openFiles.set(files.length)
      const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '')
      const [, filesMax] = /^Max open files +(\d+)/m.exec(limits) ?? []
      if (filesMax !== undefined) instruments.filesMax.set(Number(filesMax))
    },
    stop: () => void delays.disable(),
  }
}

const RESOLUTION_MS = 20
const QUANTILES = [0.5, 0.9, 0.99, 1]
