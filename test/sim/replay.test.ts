// Replays one seed, PAWL_SIM_SEED=n npm run test:sim, and prints all events.
import { expect, test } from 'vitest'
import { live, report } from './suite.ts'

test('the life of a seed', async () => {
  const told = await live(Number(process.env['PAWL_SIM_SEED']))
  console.log(report(told))
  expect(told.violation).toBeUndefined()
})
