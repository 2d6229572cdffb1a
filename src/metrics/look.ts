// Sums up how the server stands, from its metrics, for a person: what docs/METRICS.md says to be told of, as values.
import type { Sample } from './history.ts'
import type { Instruments } from './instruments.ts'

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
