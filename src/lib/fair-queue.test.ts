// Tests turns, limits and drops of the fair queue.
import { expect, test } from 'vitest'
import { createFairQueue } from './fair-queue.ts'

/** Makes a queue whose work lasts until `finish` is called. `finish` ends the piece that runs. */
function setUp(limits: { waitingPerKeyMax?: number; waitingMax?: number } = {}) {
  const queue = createFairQueue({ atOnce: 1, waitingPerKeyMax: 10, waitingMax: 100, ...limits })
  const begun: string[] = []
  let finish = (): void => undefined
  const run = (key: string, name: string, signal?: AbortSignal) =>
    queue.run(
      async () => {
        begun.push(name)
        await new Promise<void>((resolve) => {
          finish = resolve
        })
      },
      { key, ...(signal && { signal }) },
    )
  const step = async (): Promise<void> => {
    finish()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { begun, run, step }
}

test('keys take turns, and work of one key stays in order', async () => {
  const { begun, run, step } = setUp()
  const all = ['a1', 'a2', 'a3', 'b1', 'c1', 'b2'].map((name) => run(name.charAt(0), name))
  for (let i = 0; i < all.length; i += 1) await step()
  await Promise.all(all)
  expect(begun).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2'])
})

test('a key has so many waiting and no more, others have their own', async () => {
  const { begun, run, step } = setUp({ waitingPerKeyMax: 2 })
  const taken = [run('a', 'a1'), run('a', 'a2'), run('a', 'a3')]
  await expect(run('a', 'a4')).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' })
  taken.push(run('b', 'b1'))
  for (let i = 0; i < 4; i += 1) await step()
  await Promise.all(taken)
  expect(begun).toEqual(['a1', 'a2', 'b1', 'a3'])
})

test('in a full queue the longest line gives way to a shorter one', async () => {
  const { begun, run, step } = setUp({ waitingMax: 3 })
  const first = run('a', 'a1')
  const waiting = [run('a', 'a2'), run('a', 'a3')]
  const last = run('a', 'a4')
  const refused = expect(last).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  waiting.push(run('b', 'b1'))
  await refused
  await expect(run('a', 'a5')).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  for (let i = 0; i < 4; i += 1) await step()
  await Promise.all([first, ...waiting])
  expect(begun).toEqual(['a1', 'a2', 'b1', 'a3'])
})

test('work that waits is dropped by its signal, what runs goes on', async () => {
  const { begun, run, step } = setUp()
  const gone = new AbortController()
  const all = [run('a', 'a1', gone.signal), run('a', 'a3')]
  const dropped = run('a', 'a2', gone.signal)
  const refused = expect(dropped).rejects.toThrow('gone')
  gone.abort(new Error('gone'))
  await refused
  await expect(run('a', 'a4', gone.signal)).rejects.toThrow('gone')
  for (let i = 0; i < 2; i += 1) await step()
  await Promise.all(all)
  expect(begun).toEqual(['a1', 'a3'])
})
