// Tests which requests share a batch, which wait for the next, and which fail. The batcher waits for turns of the event loop and for a clock that
// the tests advance, so the load of the machine has no influence.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createRequestBatcher } from './request-batcher.ts'

/** The time for which a slow batch holds up the next one, in milliseconds. */
const BATCH_MS = 40

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** Makes a batcher whose batches end when the test calls `end`; `batches` lists the items of each. */
function createManual(options: { itemsMax?: number; keyOf?: (item: string) => string } = {}) {
  const batches: string[][] = []
  const gates: PromiseWithResolvers<void>[] = []
  const ask = createRequestBatcher(
    async (items: readonly string[]) => {
      batches.push([...items])
      const gate = Promise.withResolvers<void>()
      gates.push(gate)
      await gate.promise
      return items.map((item) => item.toUpperCase())
    },
    {
      itemsMax: 10,
      isUndone: (error) => error instanceof Error && error.message !== 'connection lost',
      ...options,
    },
  )
  /** Waits two turns of the event loop: the batch waits in the first, and has been sent after the second. */
  const settle = async () => {
    for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  }
  const pass = async (milliseconds: number) => {
    vi.advanceTimersByTime(milliseconds)
    await settle()
  }
  const end = async (batch: number, error?: Error) => {
    if (error) gates[batch]?.reject(error)
    else gates[batch]?.resolve()
    await settle()
  }
  return { ask, batches, end, settle, pass }
}

describe('a batcher', () => {
  test('joins the items of one turn, and those that come while a batch is on its way', async () => {
    const { ask, batches, end, settle } = createManual()
    const first = Promise.all(['a', 'b'].map(ask))
    await settle()
    expect(batches).toEqual([['a', 'b']])
    const second = Promise.all(['c', 'd'].map(ask))
    await settle()
    expect(batches).toEqual([['a', 'b']])
    await end(0)
    expect(batches).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ])
    await end(1)
    expect([await first, await second]).toEqual([
      ['A', 'B'],
      ['C', 'D'],
    ])
  })

  test('waits for a batch that takes long no longer than some milliseconds', async () => {
    const { ask, batches, end, settle, pass } = createManual()
    const first = ask('a')
    await settle()
    const second = ask('b')
    await pass(BATCH_MS - 1)
    expect(batches).toEqual([['a']])
    await pass(1)
    expect(batches).toEqual([['a'], ['b']])
    await end(1)
    expect(await second).toBe('B')
    await end(0)
    expect(await first).toBe('A')
  })

  test('takes no more than itemsMax in a batch', async () => {
    const { ask, batches, end, settle } = createManual({ itemsMax: 2 })
    const answers = Promise.all(['a', 'b', 'c', 'd', 'e'].map(ask))
    await settle()
    for (let batch = 0; batch < 3; batch += 1) await end(batch)
    expect(batches).toEqual([['a', 'b'], ['c', 'd'], ['e']])
    expect(await answers).toEqual(['A', 'B', 'C', 'D', 'E'])
  })

  test('never lets two items with one key share a batch, and keeps their order', async () => {
    const { ask, batches, end, settle } = createManual({ keyOf: (item) => item.charAt(0) })
    const answers = Promise.all(['a1', 'a2', 'b1', 'a3'].map(ask))
    await settle()
    for (let batch = 0; batch < 3; batch += 1) await end(batch)
    expect(batches).toEqual([['a1', 'b1'], ['a2'], ['a3']])
    expect(await answers).toEqual(['A1', 'A2', 'B1', 'A3'])
  })

  test('tries each item alone when a batch of several fails', async () => {
    const { ask, batches, end, settle } = createManual()
    const answers = Promise.allSettled(['a', 'b', 'c'].map(ask))
    await settle()
    await end(0, new Error('one of them is bad'))
    expect(batches.slice(1)).toEqual([['a'], ['b'], ['c']])
    await end(1)
    await end(2, new Error('b is bad'))
    await end(3)
    expect((await answers).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })

  test('fails all items when it is unknown whether the batch took place', async () => {
    const { ask, batches, end, settle } = createManual()
    const answers = Promise.allSettled(['a', 'b'].map(ask))
    await settle()
    await end(0, new Error('connection lost'))
    expect((await answers).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(batches).toEqual([['a', 'b']])
  })

  test('goes on after a failure', async () => {
    const { ask, end, batches, settle } = createManual()
    const failing = ask('a')
    const expectation = expect(failing).rejects.toThrow('gone')
    await settle()
    await end(0, new Error('gone'))
    await expectation
    const answer = ask('b')
    await settle()
    await end(batches.length - 1)
    expect(await answer).toBe('B')
  })
})
