// Joined trips: who shares one, who waits, and who fails. What they wait for is turns of the event loop and a clock that the tests move: how
// busy the machine is decides nothing.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createBatch, createLine, type Line } from './batch.ts'

/** How long a trip that takes long holds up the next one, and how long one of a busy process waits for company, in milliseconds. */
const [TRIP_MS, COMPANY_MS] = [40, 10]

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** A batch whose trips end when the test says so; `trips` lists what each was asked. */
function createManual(
  options: { itemsMax?: number; keyOf?: (item: string) => string; line?: Line; isBusy?: () => boolean } = {},
) {
  const trips: string[][] = []
  const gates: PromiseWithResolvers<void>[] = []
  const ask = createBatch(
    async (items: readonly string[]) => {
      trips.push([...items])
      const gate = Promise.withResolvers<void>()
      gates.push(gate)
      await gate.promise
      return items.map((item) => item.toUpperCase())
    },
    {
      itemsMax: 10,
      isUndone: (error) => error instanceof Error && error.message !== 'connection lost',
      isBusy: () => false,
      ...options,
    },
  )
  /** Two turns: one in which the batch waits, one in which it has left. */
  const settle = async () => {
    for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  }
  const pass = async (milliseconds: number) => {
    vi.advanceTimersByTime(milliseconds)
    await settle()
  }
  const end = async (trip: number, error?: Error) => {
    if (error) gates[trip]?.reject(error)
    else gates[trip]?.resolve()
    await settle()
  }
  return { ask, trips, end, settle, pass }
}

describe('a batch', () => {
  test('joins the items of one turn, and those that come while a trip is on its way', async () => {
    const { ask, trips, end, settle } = createManual()
    const first = Promise.all(['a', 'b'].map(ask))
    await settle()
    expect(trips).toEqual([['a', 'b']])
    const second = Promise.all(['c', 'd'].map(ask))
    await settle()
    expect(trips).toEqual([['a', 'b']])
    await end(0)
    expect(trips).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ])
    await end(1)
    expect([await first, await second]).toEqual([
      ['A', 'B'],
      ['C', 'D'],
    ])
  })

  test('waits for a trip that takes long no longer than some milliseconds', async () => {
    const { ask, trips, end, settle, pass } = createManual()
    const first = ask('a')
    await settle()
    const second = ask('b')
    await pass(TRIP_MS - 1)
    expect(trips).toEqual([['a']])
    await pass(1)
    expect(trips).toEqual([['a'], ['b']])
    await end(1)
    expect(await second).toBe('B')
    await end(0)
    expect(await first).toBe('A')
  })

  test('takes no more than itemsMax on a trip', async () => {
    const { ask, trips, end, settle } = createManual({ itemsMax: 2 })
    const answers = Promise.all(['a', 'b', 'c', 'd', 'e'].map(ask))
    await settle()
    for (let trip = 0; trip < 3; trip += 1) await end(trip)
    expect(trips).toEqual([['a', 'b'], ['c', 'd'], ['e']])
    expect(await answers).toEqual(['A', 'B', 'C', 'D', 'E'])
  })

  test('never lets two items with one key share a trip, and keeps their order', async () => {
    const { ask, trips, end, settle } = createManual({ keyOf: (item) => item.charAt(0) })
    const answers = Promise.all(['a1', 'a2', 'b1', 'a3'].map(ask))
    await settle()
    for (let trip = 0; trip < 3; trip += 1) await end(trip)
    expect(trips).toEqual([['a1', 'b1'], ['a2'], ['a3']])
    expect(await answers).toEqual(['A1', 'A2', 'B1', 'A3'])
  })

  test('tries each item alone when a trip of several fails', async () => {
    const { ask, trips, end, settle } = createManual()
    const answers = Promise.allSettled(['a', 'b', 'c'].map(ask))
    await settle()
    await end(0, new Error('one of them is bad'))
    expect(trips.slice(1)).toEqual([['a'], ['b'], ['c']])
    await end(1)
    await end(2, new Error('b is bad'))
    await end(3)
    expect((await answers).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })

  test('fails all items when it is unknown whether the trip took place', async () => {
    const { ask, trips, end, settle } = createManual()
    const answers = Promise.allSettled(['a', 'b'].map(ask))
    await settle()
    await end(0, new Error('connection lost'))
    expect((await answers).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(trips).toEqual([['a', 'b']])
  })

  test('goes on after a failure', async () => {
    const { ask, end, trips, settle } = createManual()
    const failing = ask('a')
    const expectation = expect(failing).rejects.toThrow('gone')
    await settle()
    await end(0, new Error('gone'))
    await expectation
    const answer = ask('b')
    await settle()
    await end(trips.length - 1)
    expect(await answer).toBe('B')
  })
})

describe('while the event loop is busy, a batch', () => {
  const isBusy = () => true
  const FOUR = ['a', 'b', 'c', 'd']

  /** A batch whose only trip so far had four items. */
  async function createUsedToFour() {
    const manual = createManual({ isBusy })
    const answers = Promise.all(FOUR.map(manual.ask))
    await manual.settle()
    await manual.end(0)
    await answers
    return manual
  }

  test('waits for half as many items as its trips had lately', async () => {
    const { ask, trips, end, settle } = await createUsedToFour()
    const second = ask('e')
    await settle()
    expect(trips).toEqual([FOUR])
    const third = ask('f')
    await settle()
    expect(trips).toEqual([FOUR, ['e', 'f']])
    await end(1)
    expect(await Promise.all([second, third])).toEqual(['E', 'F'])
  })

  test('leaves with fewer after some milliseconds, and waits for fewer from then on', async () => {
    const { ask, trips, end, settle, pass } = await createUsedToFour()
    const alone = ask('e')
    await settle()
    await pass(COMPANY_MS - 1)
    expect(trips).toEqual([FOUR])
    await pass(1)
    expect(trips).toEqual([FOUR, ['e']])
    await end(1)
    await alone
    const next = ask('f')
    await settle()
    expect(trips).toEqual([FOUR, ['e'], ['f']])
    await end(2)
    expect(await next).toBe('F')
  })

  test('lets the trips of its line go first that came before', async () => {
    const line = createLine()
    const one = createManual({ isBusy, line })
    const other = createManual({ isBusy, line })
    const first = one.ask('a')
    await one.settle()
    const second = other.ask('b')
    await other.settle()
    expect([one.trips, other.trips]).toEqual([[['a']], []])
    const third = other.ask('c')
    await one.end(0)
    await other.settle()
    expect(other.trips).toEqual([['b', 'c']])
    await other.end(0)
    expect(await Promise.all([first, second, third])).toEqual(['A', 'B', 'C'])
  })

  test('is held up by a trip of its line that takes long no longer than some milliseconds', async () => {
    const line = createLine()
    const [one, other] = [createManual({ isBusy, line }), createManual({ isBusy, line })]
    const first = one.ask('a')
    await one.settle()
    const second = other.ask('b')
    await other.settle()
    await other.pass(TRIP_MS - 1)
    expect(other.trips).toEqual([])
    await other.pass(1)
    expect(other.trips).toEqual([['b']])
    await other.end(0)
    expect(await second).toBe('B')
    await one.end(0)
    expect(await first).toBe('A')
  })

  test('gives up its place in the line after a failure', async () => {
    const line = createLine()
    const [one, other] = [createManual({ isBusy, line }), createManual({ isBusy, line })]
    const failing = one.ask('a')
    const expectation = expect(failing).rejects.toThrow('gone')
    await one.settle()
    const next = other.ask('b')
    await one.end(0, new Error('gone'))
    await expectation
    await other.settle()
    expect(other.trips).toEqual([['b']])
    await other.end(0)
    expect(await next).toBe('B')
  })
})

test('without load, batches of one line do not wait for each other', async () => {
  const line = createLine()
  const [one, other] = [createManual({ line }), createManual({ line })]
  const answers = Promise.all([one.ask('a'), other.ask('b')])
  await one.settle()
  expect([one.trips, other.trips]).toEqual([[['a']], [['b']]])
  await one.end(0)
  await other.end(0)
  expect(await answers).toEqual(['A', 'B'])
})
