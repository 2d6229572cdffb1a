// Failures within a minute: how many, of whom, and which take a place.
import { expect, test } from 'vitest'
import { createFailureBudget } from './failure-budget.ts'

test('a key has its failures in a minute, and others have theirs', () => {
  const budget = createFailureBudget(3)
  for (let i = 0; i < 3; i += 1) expect(budget.take('a', 1000 + i)).toBeDefined()
  expect(budget.take('a', 2000)).toBeUndefined()
  expect(budget.secondsLeft('a', 2000)).toBe(59)
  expect(budget.take('b', 2000)).toBeDefined()
  expect(budget.take('a', 60_999)).toBeUndefined()
  expect(budget.take('a', 61_000)).toBeDefined()
})

test('what did not fail takes no place, and attempts at once have a place each', () => {
  const budget = createFailureBudget(2)
  for (let i = 0; i < 10; i += 1) budget.take('a', 0)?.giveBack()
  const [first, second, third] = [budget.take('a', 0), budget.take('a', 0), budget.take('a', 0)]
  expect([first, second, third].map((attempt) => attempt !== undefined)).toEqual([true, true, false])
  first?.giveBack()
  expect(budget.take('a', 0)).toBeDefined()
  expect(budget.take('a', 0)).toBeUndefined()
})

test('a place that is given back late belongs to its own minute', () => {
  const budget = createFailureBudget(1)
  const late = budget.take('a', 0)
  expect(budget.take('a', 60_000)).toBeDefined()
  late?.giveBack()
  expect(budget.take('a', 60_001)).toBeUndefined()
})
