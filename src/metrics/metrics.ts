// The metrics of one server: counted where events are told, timed at its listeners, read when somebody looks (docs/METRICS.md).
import { readdir } from 'node:fs/promises'
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

/** The processes that share a port, as one of them sees them. */
export interface Peers {
  /** Label of everything that this one counts. */
  readonly worker: string
  /** The text of each, of this one too. */
  readonly collect: () => Promise<readonly string[]>
  readonly onAsked: (render: () => Promise<string>) => void
}

/** One exposition of several: the series of a metric stand together below its one description (text format 0.0.4). */
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
  /** The events of the server, to be told instead of the ones that were given. */
  readonly events: Events
  /** What a look reads beside what is counted; for when the database is open. */
  readonly watch: (sources: MetricSources) => void
  /** Times the requests of a listener. */
  readonly timeRequests: (app: FastifyInstance) => void
  /** The text of an answer to Prometheus. */
  readonly render: () => Promise<{ readonly contentType: string; readonly text: string }>
  /** The same for a person, with the last hour of this process. */
  readonly look: () => Promise<Look>
  readonly close: () => void
}

interface MetricSources {
  readonly read: () => Promise<VitalSigns>
  readonly version: string
  readonly databaseKind: string
  /** Of PostgreSQL. */
  readonly poolUse: (() => PoolUse) | undefined
  readonly listCaches: () => readonly CacheUse[]
  /** Milliseconds by which the clock of the process is ahead of the database's; undefined where they are one. */
  readonly clockDifference: () => number | undefined
}

/** Metrics with a registry of their own. `now`: milliseconds. `peers`: the answer has what all of them count, told apart by the label worker. */
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
      // The start itself, with its migrations, says nothing of how requests are served.
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
    // The watch of the process stays as it is: its values are those since Prometheus asked last.
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
 * Times the requests of a listener, from their headers to the end of their answer. What has no route is one, whatever its path and method: nobody
 * makes series by thinking of paths.
 */
function timeRequests(app: FastifyInstance, { requests }: Instruments): void {
  app.addHook('onResponse', ({ method, routeOptions: { url: route } }, { statusCode, elapsedTime }, done) => {
    const labels = { method: route ? method : 'any', route: route ?? 'unknown', status: String(statusCode) }
    requests.observe(labels, elapsedTime / 1000)
    done()
  })
}

export interface Look {
  /** Of this process, oldest first; the last one ends now. */
  readonly history: readonly Sample[]
  /** Seconds since 1970. */
  readonly startedAt: number
  readonly version: string
  readonly database: string
  /** When the gauges of the database were read, in seconds since 1970; undefined when they never were. */
  readonly readAt: number | undefined
  /** Undefined for a database without a pool. */
  readonly pool: { readonly busy: number; readonly max: number; readonly waiting: number } | undefined
  /** Statements without an answer in time, since the start. */
  readonly statementTimeouts: number
  /** Age of the oldest audit row that is not sealed, in seconds. */
  readonly sealLagSeconds: number
  readonly brokenChains: number
  /** Since the start. */
  readonly background: readonly { readonly work: string; readonly failures: number; readonly lastSuccessAt: number | undefined }[]
}

/** Reads the instruments; what comes from the database is as old as its last reading. */
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
 * Measures the process, and watches its event loop until that is stopped. prom-client's own collection is not used: it starts observers that cannot
 * be stopped again.
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
        // The timer itself is part of what is measured.
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
      // Elsewhere than on Linux there is no such folder.
      const files = await readdir('/proc/self/fd').catch(() => undefined)
      if (files) instruments.openFiles.set(files.length)
    },
    stop: () => void delays.disable(),
  }
}

const RESOLUTION_MS = 20
const QUANTILES = [0.5, 0.9, 0.99, 1]
