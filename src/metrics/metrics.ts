// The metrics of one server: counted where events are told, timed at its listeners, read when somebody looks (docs/METRICS.md).
import type { FastifyInstance } from 'fastify'
import { createInstruments, type Instruments } from './instruments.ts'
import type { CacheUse } from '../lib/memory.ts'
import type { Events } from '../log/events.ts'
import type { PoolUse } from '../storage/database/postgres.ts'
import { countEvents } from './count-events.ts'
import { type History, keepHistory } from './history.ts'
import { look, type Look } from './look.ts'
import { watchProcess } from './process.ts'
import { createReading } from './reading.ts'
import type { VitalSigns } from '../storage/vital-signs.ts'

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

export interface MetricSources {
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
