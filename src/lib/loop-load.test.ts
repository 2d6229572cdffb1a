// Whether the event loop is busy, on a loop that is and on one that is not.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { isLoopBusy } from './loop-load.ts'

test('a loop that works is busy, and one that waits is not', async () => {
  isLoopBusy()
  const end = performance.now() + 200
  while (performance.now() < end) await new Promise(setImmediate)
  expect(isLoopBusy()).toBe(true)
  await sleep(300)
  expect(isLoopBusy()).toBe(false)
})
