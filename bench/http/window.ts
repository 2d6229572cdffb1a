// One window of a measurement: a fixed number of units in a closed loop, and what they cost.
import { type Connection, createConnection } from './connection.ts'
import type { Usage } from './target.ts'
import type { Unit } from './works.ts'

export interface Figures {
  /** Units a second. */
  readonly rate: number
  /** Milliseconds. */
  readonly p50: number
  readonly p95: number
  readonly p99: number
  /** Microseconds of processor time a unit. */
  readonly nodeCpu: number
  readonly databaseCpu: number | undefined
  /** Of the clients, all in this process. */
  readonly clientCpu: number
  /** MiB at the end of the window. */
  readonly resident: number
}

/** Every list is one client, which sends its next unit when it has the answer to the last, by the same connection: as an app does. */
export async function runWindow(lists: readonly (readonly Unit[])[], usage: () => Usage): Promise<Figures> {
  const times: number[] = []
  const before = usage()
  const clientBefore = process.cpuUsage()
  const start = performance.now()
  await Promise.all(
    lists.map(async (units, client) => {
      const connectionTo = (url: string): Connection => connectionOf(url, client)
      for (const unit of units) {
        const sent = performance.now()
        await unit(connectionTo)
        times.push(performance.now() - sent)
      }
    }),
  )
  const seconds = (performance.now() - start) / 1000
  const after = usage()
  const client = process.cpuUsage(clientBefore)
  const sorted = Float64Array.from(times).sort()
  const perUnit = (total: number): number => total / times.length
  return {
    rate: times.length / seconds,
    p50: quantile(sorted, 0.5),
    p95: quantile(sorted, 0.95),
    p99: quantile(sorted, 0.99),
    nodeCpu: perUnit(after.node - before.node),
    databaseCpu:
      after.database === undefined || before.database === undefined ? undefined : perUnit(after.database - before.database),
    clientCpu: perUnit(client.user + client.system),
    resident: after.resident,
  }
}

/** The smallest value that at least this share of the sorted values does not exceed. */
export const quantile = (sorted: ArrayLike<number>, share: number): number =>
  sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN

export const median = (values: readonly number[]): number =>
  quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  )

/** The connection of a client to a server, the same in all windows. */
export function connectionOf(url: string, client: number): Connection {
  const opened = CONNECTIONS.get(url) ?? []
  CONNECTIONS.set(url, opened)
  return (opened[client] ??= createConnection(url))
}

const CONNECTIONS = new Map<string, Connection[]>()
