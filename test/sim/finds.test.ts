// The simulation finds servers that are wrong on purpose, and a replay shows the same fault again.
import { expect, test } from 'vitest'
import { BREAKAGES, type BreakageName } from './breakage.ts'
import { live, report, SEEDS_MAX } from './suite.ts'

// The number of seeds bounds the search. This one is for a life that hangs: on a busy machine many lives take long.
const LIVES_LIMIT_MS = 1_200_000
const NAMES = Object.keys(BREAKAGES) as BreakageName[]

test.each(NAMES.filter((name) => name !== 'none'))(
  'a server is found out: %s',
  async (breakage) => {
    for (let seed = 1; seed <= SEEDS_MAX; seed += 1) {
      const told = await live(seed, breakage)
      if (told.violation === undefined) continue
      // The fault must be a broken promise, and no failure of the simulation itself.
      expect(told.violation).not.toContain('the simulation stopped')
      console.log(`${breakage}: found out by seed ${seed}, ${told.violation}`)
      return
    }
    expect.fail(`${SEEDS_MAX} seeds have not found: ${breakage}`)
  },
  LIVES_LIMIT_MS,
)

test.each([5, 6])('a seed lives the same life each time (%i)', async (seed) => {
  const [first, again] = [await live(seed), await live(seed)]
  expect(report(again)).toBe(report(first))
})
