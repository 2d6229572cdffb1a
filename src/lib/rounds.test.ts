// Tests background rounds: one runs at a time, a failed one is reported and the next follows, a stop waits.
import { expect, test, vi } from 'vitest'
import { runEach, startRounds } from './rounds.ts'

test('rounds run one at a time, also after a failure, and a stop waits for the one that runs', async () => {
  const failures: unknown[] = []
  let running = 0
  let most = 0
  let rounds = 0
  let done = 0
  let sawStop = false
  const held = Promise.withResolvers<void>()
  const stop = startRounds(
    async (signal) => {
      rounds += 1
      running += 1
      most = Math.max(most, running)
      if (rounds > 2) {
        await held.promise
        sawStop = signal.aborted
      }
      running -= 1
      if (rounds === 1) throw new Error('first')
    },
    1,
    { onFailure: (err) => failures.push(err), onDone: () => (done += 1) },
  )
  await vi.waitFor(() => expect(rounds).toBe(3), { timeout: 30_000 })
  const stopped = stop()
  held.resolve()
  await stopped
  expect({ rounds, most, running, sawStop }).toEqual({ rounds: 3, most: 1, running: 0, sawStop: true })
  expect(failures).toEqual([new Error('first')])
  expect(done).toBe(2)
})

test('no round begins while none may run', async () => {
  let [asked, rounds, done] = [0, 0, 0]
  const stop = startRounds(async () => void (rounds += 1), 1, {
    onFailure: () => undefined,
    onDone: () => (done += 1),
    mayRun: () => (asked += 1) > 5,
  })
  await vi.waitFor(() => expect(asked).toBeGreaterThanOrEqual(5), { timeout: 30_000 })
  await vi.waitFor(() => expect(done).toBeGreaterThan(0), { timeout: 30_000 })
  await stop()
  expect(rounds).toBeLessThanOrEqual(asked - 5)
})

test('a task of a round that fails keeps none of the others from running, unless none can', async () => {
  const ran: string[] = []
  const others: unknown[] = []
  const fail = (message: string) => async () => {
    ran.push(message)
    throw new Error(message)
  }
  const run = (...messages: readonly string[]) =>
    runEach(messages.map(fail), {
      goesOn: (error) => error instanceof Error && error.message !== 'lost',
      onFailure: (err) => others.push(err),
    })
  await expect(run('first', 'second', 'third')).rejects.toThrow('first')
  expect([ran, others]).toEqual([
    ['first', 'second', 'third'],
    [new Error('second'), new Error('third')],
  ])
  await expect(run('a', 'lost', 'b')).rejects.toThrow('lost')
  expect([ran.slice(3), others.slice(2)]).toEqual([['a', 'lost'], [new Error('a')]])
})
