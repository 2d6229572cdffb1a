// Tests the limits of one key in a minute, which events count, and the wait of a key that fails too often.
import { describe, expect, test } from 'vitest'
import type { Standing } from './shared-failures.ts'
import { createWindow } from './window.ts'

test('a key has its failures in a minute, and others have theirs', () => {
  const window = createWindow({ perMinute: 3 })
  for (let i = 0; i < 3; i += 1) expect(window.takeIfLeft('a', 1000 + i)).toBeDefined()
  expect(window.takeIfLeft('a', 2000)).toBeUndefined()
  expect(window.secondsLeft('a', 2000)).toBe(59)
  expect(window.takeIfLeft('b', 2000)).toBeDefined()
  expect(window.takeIfLeft('a', 60_999)).toBeUndefined()
  expect(window.takeIfLeft('a', 61_000)).toBeDefined()
})

test('what did not fail takes no place, and attempts at once have a place each', () => {
  const window = createWindow({ perMinute: 2 })
  for (let i = 0; i < 10; i += 1) window.takeIfLeft('a', 0)?.giveBack()
  const [first, second, third] = [window.takeIfLeft('a', 0), window.takeIfLeft('a', 0), window.takeIfLeft('a', 0)]
  expect([first, second, third].map((attempt) => attempt !== undefined)).toEqual([true, true, false])
  first?.giveBack()
  expect(window.takeIfLeft('a', 0)).toBeDefined()
  expect(window.takeIfLeft('a', 0)).toBeUndefined()
})

test('what is given back beside another attempt takes neither its place nor a failure away', () => {
  const window = createWindow({ perMinute: 3 })
  window.takeIfLeft('a', 0)?.keep()
  const [first, second] = [window.takeIfLeft('a', 0), window.takeIfLeft('a', 0)]
  first?.giveBack()
  expect([second, window.takeIfLeft('a', 0), window.takeIfLeft('a', 0)].map((attempt) => attempt !== undefined)).toEqual([
    true,
    true,
    false,
  ])
})

test('a key that failed is not forgotten for any number of keys that did not', () => {
  const window = createWindow({ perMinute: 1 })
  window.takeIfLeft('a', 0)?.keep()
  for (let i = 0; i < 100_001; i += 1) window.takeIfLeft(`right ${i}`, 1)?.giveBack()
  expect(window.takeIfLeft('a', 2)).toBeUndefined()
})

test('a place that is given back late belongs to its own minute', () => {
  const window = createWindow({ perMinute: 1 })
  const late = window.takeIfLeft('a', 0)
  expect(window.takeIfLeft('a', 60_000)).toBeDefined()
  late?.giveBack()
  expect(window.takeIfLeft('a', 60_001)).toBeUndefined()
})

test('a call beyond its number is refused until its minute is over', () => {
  const window = createWindow({ perMinute: 1 })
  window.take('a', 0)
  expect(() => window.take('a', 500)).toThrow(expect.objectContaining({ code: 'TOO_MANY_REQUESTS', retryAfterSeconds: 60 }))
  expect(() => window.take('a', 59_500)).toThrow(expect.objectContaining({ retryAfterSeconds: 1 }))
  window.take('a', 60_000)
})

test('a key that backs off waits twice as long each time, and after an hour without a wait as shortly as at first', () => {
  const window = createWindow({ perMinute: 4, backsOff: true })
  for (let i = 0; i < 3; i += 1) expect(window.fail('a', 0)).toBeUndefined()
  expect(window.fail('a', 0)).toBe(60)
  expect(window.refusal('a', 1_000)).toMatchObject({ code: 'TOO_MANY_REQUESTS', retryAfterSeconds: 59 })
  expect(window.takeIfLeft('a', 59_999)).toBeUndefined()
  expect(window.fail('a', 59_999)).toBeUndefined()
  expect(window.refusal('a', 60_000)).toBeUndefined()
  expect(window.refusal('b', 0)).toBeUndefined()
  let now = 60_000
  for (const seconds of [120, 240, 480, 960, 960]) {
    expect(window.fail('a', now)).toBe(seconds)
    now += seconds * 1_000
  }
  now += 3_600_000
  for (let i = 0; i < 3; i += 1) expect(window.fail('a', now)).toBeUndefined()
  expect(window.fail('a', now)).toBe(60)
})

test('the minute of a key that has waited begins with its next failure, not with attempts that succeed', () => {
  const window = createWindow({ perMinute: 8, backsOff: true })
  for (let i = 0; i < 7; i += 1) expect(window.fail('a', 0)).toBeUndefined()
  expect(window.fail('a', 0)).toBe(60)
  window.take('a', 60_000).giveBack()
  expect(window.fail('a', 119_000)).toBeUndefined()
  // One later than a minute after the success; for an hour two failures in a minute are too many.
  expect(window.fail('a', 121_000)).toBe(120)
})

test('a further failure does not make the minute longer', () => {
  const window = createWindow({ perMinute: 3, backsOff: true })
  for (const now of [0, 50_000, 61_000, 62_000]) expect(window.fail('a', now)).toBeUndefined()
  expect(window.fail('a', 63_000)).toBe(60)
})

test('a key that backs off has no more attempts under way than failures left, over the end of its minute, too', () => {
  const window = createWindow({ perMinute: 2, backsOff: true })
  const first = window.take('a', 0)
  expect(window.fail('a', 30_000)).toBeUndefined()
  expect(window.secondsLeft('a', 30_000)).toBe(1)
  expect(window.takeIfLeft('a', 30_000)).toBeUndefined()
  expect(window.takeIfLeft('a', 90_000)).toBeDefined()
  expect(window.takeIfLeft('a', 90_000)).toBeUndefined()
  first.giveBack()
  expect(window.takeIfLeft('a', 90_000)).toBeDefined()
})

test('an attempt that succeeds beside another one does not end the memory of a wait', () => {
  const window = createWindow({ perMinute: 8, backsOff: true })
  for (let i = 0; i < 8; i += 1) window.fail('a', 0)
  const [first] = [window.take('a', 60_000), window.take('a', 60_000)]
  first.giveBack()
  expect(window.fail('a', 60_000)).toBeUndefined()
  expect(window.fail('a', 60_000)).toBe(120)
})

describe('what other processes have counted', () => {
  const NO_WAIT = { waits: 0, waitEndsAt: -1_000_000 }
  const hear = async (standing: Standing, failures: number, failedAt: number, heardAt: number) => {
    const others = { shared: { tell: () => undefined, ask: async () => standing }, of: 'test' }
    const window = createWindow({ perMinute: 4, backsOff: true, others })
    for (let i = 0; i < failures; i += 1) window.fail('a', failedAt)
    await window.hear('a', heardAt)
    return window
  }

  test('takes no failure of this process away', async () => {
    const window = await hear({ failures: 1, endsAt: 60_000, ...NO_WAIT }, 3, 0, 1_000)
    expect(window.fail('a', 1_000)).toBe(60)
  })

  test('in a minute that is over says nothing about the one of this process', async () => {
    const window = await hear({ failures: 9, endsAt: 1_500, ...NO_WAIT }, 3, 1_000, 2_000)
    expect(window.fail('a', 2_000)).toBe(60)
  })

  test('does not shorten a wait', async () => {
    const older = await hear({ failures: 0, endsAt: 30_000, waits: 1, waitEndsAt: 30_000 }, 4, 0, 1_000)
    const none = await hear({ failures: 1, endsAt: 60_000, ...NO_WAIT }, 4, 0, 1_000)
    for (const window of [older, none]) expect(window.refusal('a', 1_000)).toMatchObject({ retryAfterSeconds: 59 })
  })

  test('of a wait stands for the failures that led to it', async () => {
    const window = await hear({ failures: 0, endsAt: 45_000, waits: 1, waitEndsAt: 61_000 }, 3, 50_000, 51_000)
    expect(window.takeIfLeft('a', 60_999)).toBeUndefined()
    expect(window.takeIfLeft('a', 61_000)).toBeDefined()
  })
})

test('a key that asks without end keeps its count among more others than are remembered', () => {
  const window = createWindow({ perMinute: 20, keysMax: 10 })
  for (let i = 0; i < 20; i += 1) {
    expect(window.takeIfLeft('a', i)).toBeDefined()
    for (let other = 0; other < 9; other += 1) window.takeIfLeft(`${i} ${other}`, i)
  }
  expect(window.takeIfLeft('a', 20)).toBeUndefined()
  // One that asks rarely is forgotten.
  for (let other = 0; other < 10; other += 1) window.takeIfLeft(`more ${other}`, 20)
  expect(window.takeIfLeft('a', 20)).toBeDefined()
})
