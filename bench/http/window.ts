// Runs one window of a measurement: a fixed number of units in a closed loop, and their cost.
import type { Target, Usage } from './target.ts'
import type { Unit } from './works.ts'

export interface Figures {
  /** Units a second. */
  readonly rate: number
  /** Quantiles of the latency in milliseconds; undefined when the client did not see single answers. */
  readonly p50: number | undefined
  readonly p95: number | undefined
  readonly p99: number | undefined
  /** Microseconds of processor time a unit. */
  readonly nodeCpu: number
  readonly databaseCpu: number | undefined
  /** The same of the clients, which are all in this process; undefined when they did not run at the same time as the server. */
  readonly clientCpu: number | undefined
  /** MiB at the end of the window. */
  readonly resident: number
}

/** Runs each list as one client, which sends its next unit after the answer to the last, over the same connection, as an app does. */
export async function runWindow(lists: readonly (readonly Unit[])[], { usage }: Pick<Target, 'usage'>): Promise<Figures> {
  const times: number[] = []
  const before = usage()
  const clientBefore = process.cpuUsage()
  const start = performance.now()
  await Promise.all(
    lists.map(async (units, client) => {
      for (const unit of units) {
        const sent = performance.now()
        await unit(client)
        times.push(performance.now() - sent)
      }
    }),
  )
  const seconds = (performance.now() - start) / 1000
  const cost = costOf(before, usage(), times.length)
  const client = process.cpuUsage(clientBefore)
  const sorted = Float64Array.from(times).sort()
  return {
    rate: times.length / seconds,
    p50: quantile(sorted, 0.5),
    p95: quantile(sorted, 0.95),
    p99: quantile(sorted, 0.99),
    clientCpu: (client.user + client.system) / times.length,
    ...cost,
  }
}

/** The cost of each of `units` between two readings of the usage. */
export const costOf = (before: Usage, after: Usage, units: number): Pick<Figures, 'nodeCpu' | 'databaseCpu' | 'resident'> => ({
  nodeCpu: (after.node - before.node) / units,
  databaseCpu:
    after.database === undefined || before.database === undefined ? undefined : (after.database - before.database) / units,
  resident: after.resident,
})

/** The smallest value that at least this share of the sorted values does not exceed. */
export const quantile = (sorted: ArrayLike<number>, share: number): number =>
  sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN

export const median = (values: readonly number[]): number =>
  quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  )
