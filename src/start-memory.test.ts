// Tests that memory is given back after a start.
import { getHeapSpaceStatistics } from 'node:v8'
import { expect, test } from 'vitest'
import { releaseStartMemory } from './start-memory.ts'

const youngBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.physical_space_size ?? Number.NaN

test('the young generation shrinks to almost nothing, what is in use stays, and collections are not exposed', async () => {
  const kept = Array.from({ length: 200_000 }, (_, i) => ({ i, text: `text ${i}` }))
  const before = youngBytes()
  expect(before).toBeGreaterThan(4 * 1024 * 1024)
  await releaseStartMemory()
  expect(youngBytes()).toBeLessThan(before / 2)
  expect(kept.every(({ i, text }) => text === `text ${i}`)).toBe(true)
  expect('gc' in globalThis).toBe(false)
})
