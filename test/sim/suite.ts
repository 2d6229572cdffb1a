// Runs seeds for the test files of the simulation.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { testTemplate } from '../helpers/app.ts'
import type { BreakageName } from './breakage.ts'
import { readPrepared } from './prepared.ts'
import { simulate, type Told } from './simulation.ts'

/** The number of new seeds of a run, within which a wrong server must be found. */
export const SEEDS_MAX = Number(process.env['PAWL_SIM_SEEDS'] ?? 200)

let template: Blob | undefined

/** Runs the simulation of one seed on the database that global-setup.ts has made. */
export function live(seed: number, breakage: BreakageName = 'none'): Promise<Told> {
  template ??= new Blob([readFileSync(join(testTemplate(), 'simulated.tar'))])
  return simulate({ seed, template, breakage, readPrepared: () => readPrepared(testTemplate()) })
}

/** The command that replays a run, and the events of the run. */
export const report = ({ seed, trace }: Told): string => `PAWL_SIM_SEED=${seed} npm run test:sim\n${trace.join('\n')}`

/** Makes a test for each seed of one quarter, 0 to 3. The quarters are in files of their own, because workers share the work by files. */
export function liveQuarter(quarter: 0 | 1 | 2 | 3): void {
  const size = Math.ceil(SEEDS_MAX / 4)
  const first = Number(process.env['PAWL_SIM_FIRST']) + quarter * size
  const seeds = Array.from({ length: size }, (_, index) => first + index)
  test.each(seeds)('the life of seed %i', async (seed) => {
    const told = await live(seed)
    expect(told.violation, report(told)).toBeUndefined()
  })
}
