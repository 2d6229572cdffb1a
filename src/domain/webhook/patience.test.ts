// Tests after what time a receiver of webhooks counts as slow, also in a busy process.
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { startPatience } from './patience.ts'

/** Blocks the event loop. */
const beBusy = (milliseconds: number): void => {
  for (const until = performance.now() + milliseconds; performance.now() < until; );
}

describe('by a clock that the test moves', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
  afterEach(() => void vi.useRealTimers())
  const pass = (milliseconds: number) => vi.advanceTimersByTimeAsync(milliseconds)

  test('a receiver is late after a second in which it answered nothing, and is told of once', async () => {
    let told = 0
    const patience = startPatience(() => (told += 1))
    const silent = Promise.withResolvers<string>()
    const answered = [patience.wait(silent.promise), patience.wait(Promise.resolve('at once'))]
    await pass(999)
    expect([patience.isLate(), told]).toEqual([false, 0])
    await pass(1)
    expect([patience.isLate(), told]).toEqual([true, 1])
    await pass(10_000)
    silent.resolve('late')
    expect(await Promise.all(answered)).toEqual(['late', 'at once'])
    expect([patience.isLate(), told]).toEqual([true, 1])
  })

  test('one that answers a message now and then has three seconds for all of them', async () => {
    let told = 0
    const patience = startPatience(() => (told += 1))
    const never = Promise.withResolvers<undefined>()
    const open = patience.wait(never.promise)
    for (let answers = 0; answers < 6; answers += 1) {
      const answer = Promise.withResolvers<undefined>()
      const waited = patience.wait(answer.promise)
      await pass(400)
      answer.resolve(undefined)
      await waited
    }
    await pass(599)
    expect([patience.isLate(), told]).toEqual([false, 0])
    await pass(1)
    expect([patience.isLate(), told]).toEqual([true, 1])
    never.resolve(undefined)
    await open
  })
})

test('the time of a process that was busy is not the time of the receiver', async () => {
  const receiver = createServer((_request, response) => response.end('well'))
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const address = receiver.address()
  if (typeof address !== 'object' || address === null) throw new Error('no address')
  try {
    const patience = startPatience(() => undefined)
    const answer = patience.wait(fetch(`http://127.0.0.1:${address.port}/`))
    await sleep(100)
    const next = patience.wait(fetch(`http://127.0.0.1:${address.port}/`))
    setImmediate(() => beBusy(1_300))
    await Promise.all([answer, next])
    expect(patience.isLate()).toBe(false)
    // Time for reading and storing between two messages does not count either.
    await sleep(1_200)
    expect(patience.isLate()).toBe(false)
  } finally {
    receiver.close()
    receiver.closeAllConnections()
  }
})
