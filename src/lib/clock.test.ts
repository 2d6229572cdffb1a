// Tests the time of a process beside that of its database: which of the two counts when they differ, and who is told.
import { describe, expect, test } from 'vitest'
import { createClock } from './clock.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 1_440 * MINUTE
const START = 1_700_000_000_000

/** Opens a process and a database whose clocks the test sets. A question takes `trip` milliseconds there, and the answer as many back. */
function open({ ahead = 0, trip = 0 } = {}) {
  const told: string[] = []
  let passed = 0
  const at = { own: START + ahead, database: START }
  const pass = (ms: number): void => {
    passed += ms
    at.own += ms
    at.database += ms
  }
  const clock = createClock(
    { now: () => at.own, monotonic: () => 5_000 + passed },
    { clockDiffers: ({ seconds }) => told.push(`differs by ${seconds}`), clockAgrees: () => told.push('agrees') },
  )
  const hear = (ms = trip): Promise<void> =>
    clock.hear(async () => {
      pass(ms)
      const time = at.database
      pass(ms)
      return time
    })
  /** The milliseconds by which the clock of the process is ahead of that of the database. */
  const off = (): number => clock.now() - at.database
  return { clock, at, told, pass, hear, off }
}

test('is the own one until another was heard', () => {
  const { clock, pass } = open({ ahead: 3 * DAY })
  pass(MINUTE)
  expect(clock.now()).toBe(START + 3 * DAY + MINUTE)
  expect([clock.isAgreed(), clock.difference()]).toEqual([true, undefined])
})

test.each([
  ['800 days ahead', 800 * DAY, false],
  ['a day behind', -DAY, false],
  ['61 s ahead', 61 * SECOND, false],
  ['61 s behind', -61 * SECOND, false],
  ['60 s ahead', 60 * SECOND, true],
  ['59 s ahead', 59 * SECOND, true],
  ['59 s behind', -59 * SECOND, true],
  ['right', 0, true],
])('is that of the database from the start on, in a process that is %s', async (_, ahead, isAgreed) => {
  const { clock, hear, off, pass, told } = open({ ahead })
  for (let i = 0; i < 3; i += 1) {
    await hear()
    pass(5 * SECOND)
  }
  expect(off()).toBe(0)
  expect([clock.isAgreed(), clock.difference()]).toEqual([isAgreed, ahead])
  expect(told).toEqual(isAgreed ? [] : [`differs by ${ahead / 1000}`])
})

test.each([-DAY, 800 * DAY, -61 * SECOND, 3_600 * SECOND])(
  'does not follow a step of the own clock by %d ms, and tells of it and of its end',
  async (step) => {
    const { clock, at, hear, off, pass, told } = open()
    await hear()
    at.own += step
    pass(SECOND)
    expect(off()).toBe(0)
    for (let i = 0; i < 3; i += 1) await hear()
    expect([off(), clock.isAgreed(), clock.difference()]).toEqual([0, false, step])
    at.own -= step
    for (let i = 0; i < 3; i += 1) await hear()
    expect([off(), clock.isAgreed()]).toEqual([0, true])
    expect(told).toEqual([`differs by ${step / 1000}`, 'agrees'])
  },
)

test.each([-DAY, 800 * DAY, 61 * SECOND])('does not follow a database that jumps away from both by %d ms', async (step) => {
  const { clock, at, hear, pass, told } = open()
  await hear()
  at.database += step
  pass(SECOND)
  for (let i = 0; i < 3; i += 1) await hear()
  expect(clock.now()).toBe(START + SECOND)
  expect(clock.isAgreed()).toBe(false)
  // The clock of the process was wrong, too. Both are right now.
  at.own += step
  await hear()
  expect(clock.now()).toBe(at.database)
  expect(told).toEqual([`differs by ${-step / 1000}`, 'agrees'])
})

test('follows the database where both clocks were set, and where the process stood still for an hour', async () => {
  const { clock, at, hear, off } = open()
  await hear()
  for (const step of [-3_600 * SECOND, 2 * DAY]) {
    at.database += step
    at.own += step
    await hear()
    expect([off(), clock.isAgreed()]).toEqual([0, true])
  }
})

describe('an answer that takes long', () => {
  test('moves the time no more than it says', async () => {
    const { hear, off, pass } = open({ trip: 2 })
    await hear()
    for (const trip of [400, 3_000, 20, 0]) {
      await hear(trip)
      pass(SECOND)
      expect(off()).toBe(0)
    }
  })

  test('is taken for nothing but what it proves', async () => {
    // The real difference is 61 s minus 4 s or plus 4 s, so it may be less than a minute.
    const { clock, hear, pass, at, told } = open({ ahead: 61 * SECOND })
    await hear(4 * SECOND)
    expect(clock.isAgreed()).toBe(true)
    await hear(1)
    expect(clock.isAgreed()).toBe(false)
    at.own -= 3 * SECOND
    pass(SECOND)
    await hear(4 * SECOND)
    expect(clock.isAgreed()).toBe(false)
    await hear(1)
    expect(clock.isAgreed()).toBe(true)
    expect(told).toEqual(['differs by 61', 'agrees'])
  })

  test('leaves everything as it was when it does not come', async () => {
    const { clock, hear, off } = open({ ahead: 2 * DAY })
    await hear()
    await expect(clock.hear(() => Promise.reject(new Error('no database')))).rejects.toThrow('no database')
    expect([off(), clock.isAgreed(), clock.difference()]).toEqual([0, false, 2 * DAY])
  })
})

test('has whole milliseconds', async () => {
  const clock = createClock({ now: () => START, monotonic: () => 12.3 }, { clockDiffers: () => {}, clockAgrees: () => {} })
  await clock.hear(async () => START + 0.123456)
  expect(clock.now()).toBe(START)
})
