// Whether the event loop is busy, on a loop that is and on one that is not.
import { expect, test } from 'vitest'
import { isLoopBusy } from './loop-load.ts'

test('a loop that works is busy, and one that waits is not', async () => {
  isLoopBusy()
  const end = performance.now() + 200
  while (performance.now() < end) await new Promise(setImmediate)
  expect(isLoopBusy()).toBe(true)
  // Soon: what else a process does counts for a while on a machine that is busy itself.
  await expect.poll(isLoopBusy, { interval: 150 }).toBe(false)
})
