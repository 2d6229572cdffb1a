// Runs windows of several targets in turns, so that a slow time of the machine slows them all, and lays out their figures.
import type { Target } from './target.ts'
import { type Figures, median, runWindow } from './window.ts'
import type { Unit, Work } from './works.ts'

export interface Measured {
  readonly work: string
  readonly target: string
  readonly units: number
  readonly windows: readonly Figures[]
}

export interface Turns {
  /** The number of clients of each target that has no number of its own. */
  readonly clients: number
  readonly windows: number
  /** The length of a window, roughly. */
  readonly seconds: number
  /** The least number of windows of each target that are not counted, because a new process first finds the size of its heap. */
  readonly warmUp: number
  /** The function that runs a window; by default runWindow. */
  readonly run?: (lists: readonly (readonly Unit[])[], target: Target) => Promise<Figures>
}

/**
 * Runs windows of all targets in turns. The window before, at first a short trial, shows how many units fill the time. `phones`: the units of a
 * target that run before the first counted one, so that all its phones have had a turn.
 */
export async function measureInTurns(
  name: string,
  pairs: readonly { target: Target; work: Work; clients?: number; phones?: number }[],
  { clients: usual, windows, seconds, warmUp, run = runWindow }: Turns,
): Promise<Measured[]> {
  const running = []
  for (const { target, work, clients = usual, phones = 0 } of pairs) {
    const runUnits = async (count: number): Promise<Figures> => run(await work.prepare(count, clients), target)
    const unitsAt = ({ rate }: Figures): number => Math.max(clients, Math.min(UNITS_MAX, Math.round(rate * seconds)))
    let units = unitsAt(await runUnits(clients * TRIAL_UNITS))
    for (let warmed = 0, sent = 0; warmed < warmUp || sent < phones; warmed += 1) {
      sent += units
      units = unitsAt(await runUnits(units))
    }
    running.push({ target, work, clients, units, figures: [] as Figures[] })
  }
  // Each target runs the same number of units; with fewer units a slower target would be colder.
  const units = Math.min(...running.map((one) => one.units))
  for (let i = 0; i < windows; i += 1) {
    for (const { target, work, clients, figures } of i % 2 === 0 ? running : running.toReversed())
      figures.push(await run(await work.prepare(units, clients), target))
  }
  return running.map(({ target, figures }) => ({ work: name, target: target.name, units, windows: figures }))
}

/** The titles of the columns. */
export const header = (): string =>
  ['work'.padEnd(32), ...COLUMNS.map(([title]) => title.padStart(9)), '  spread of Node'].join(' ')

/** A line of medians. `shown`: the title of the line. */
export function row(shown: string, { windows: figures }: Measured): string {
  const cells = COLUMNS.map(([, pick, digits]) => {
    const found = figures.map(pick).filter((value) => value !== undefined)
    return (found.length === 0 ? '-' : median(found).toFixed(digits)).padStart(9)
  })
  const cpu = figures.map(({ nodeCpu }) => nodeCpu)
  return [shown.padEnd(32), ...cells, `  ${Math.min(...cpu).toFixed(0)} to ${Math.max(...cpu).toFixed(0)}`].join(' ')
}

/** The median of the ratios of neighbouring windows, because a slow time of the machine slows both. */
export function compare(own: Measured, other: Measured): string {
  const ratio = (pick: (figures: Figures) => number | undefined): string =>
    median(own.windows.map((figures, i) => (pick(figures) ?? NaN) / (pick(other.windows[i] ?? figures) ?? NaN))).toFixed(2)
  const both = ({ nodeCpu, databaseCpu = 0 }: Figures): number => nodeCpu + databaseCpu
  return `${''.padEnd(32)} ratio of processor time ${ratio(both)} (Node ${ratio(({ nodeCpu }) => nodeCpu)}), of p50 ${ratio(({ p50 }) => p50)}, of p99 ${ratio(({ p99 }) => p99)}`
}

const COLUMNS: readonly [string, (figures: Figures) => number | undefined, number][] = [
  ['/s', ({ rate }) => rate, 0],
  ['p50 ms', ({ p50 }) => p50, 2],
  ['p95 ms', ({ p95 }) => p95, 2],
  ['p99 ms', ({ p99 }) => p99, 2],
  ['Node µs', ({ nodeCpu }) => nodeCpu, 0],
  ['DB µs', ({ databaseCpu }) => databaseCpu, 0],
  ['client µs', ({ clientCpu }) => clientCpu, 0],
  ['RSS MiB', ({ resident }) => resident, 0],
]
const TRIAL_UNITS = 4
const UNITS_MAX = 50_000
