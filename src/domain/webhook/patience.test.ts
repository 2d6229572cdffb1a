// How long a receiver of webhooks may keep the others waiting, beside a process that is busy.
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startPatience } from './patience.ts'

/** Keeps the whole process from everything else. */
const beBusy = (milliseconds: number): void => {
  for (const until = performance.now() + milliseconds; performance.now() < until; );
}

test('a receiver is late after a second in which it answered nothing, and is told of once', async () => {
  let told = 0
  const patience = startPatience(() => (told += 1))
  const silent = Promise.withResolvers<string>()
  const answered = [patience.wait(silent.promise), patience.wait(Promise.resolve('at once'))]
  await sleep(700)
  expect(patience.isLate()).toBe(false)
  await expect.poll(() => told, { timeout: 1_500 }).toBe(1)
  silent.resolve('late')
  expect(await Promise.all(answered)).toEqual(['late', 'at once'])
  expect([patience.isLate(), told]).toEqual([true, 1])
})

test('one that answers a message now and then has three seconds for all of them', async () => {
  const since = performance.now()
  const lateAfter = Promise.withResolvers<number>()
  const patience = startPatience(() => lateAfter.resolve(performance.now() - since))
  const never = patience.wait(lateAfter.promise)
  for (let answers = 0; answers < 6; answers += 1) await patience.wait(sleep(400))
  expect(patience.isLate()).toBe(false)
  await patience.wait(sleep(400))
  expect(await never).toBeGreaterThan(2_500)
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
    // What is read and stored between two messages is no waiting either.
    await sleep(1_200)
    expect(patience.isLate()).toBe(false)
  } finally {
    receiver.close()
    receiver.closeAllConnections()
  }
})
