// Workers that hang (PAWL_PROCESSES): who is killed and who is not, how soon, and that no connection is left without an answer or an end.
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { serverUrl } from '../helpers/app.ts'
import { findQuietPort } from '../helpers/ports.ts'
import {
  ADMIN_PASSWORD,
  createInstallation,
  endEverything,
  type Environment,
  type PawlProcess,
  startPawl,
} from '../helpers/process.ts'
import { createSockets, type RawConnection, requestOf } from '../helpers/sockets.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

const TWO = { PAWL_PROCESSES: '2', PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD }
const HANGS = 'a worker hangs, it is killed'

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
const signal = (pids: readonly number[], name: NodeJS.Signals): void => {
  for (const pid of pids) process.kill(pid, name)
}
const isThere = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
const countOf = (pawl: PawlProcess, text: string): number => pawl.output().split(text).length - 1

/** What a busy machine adds to a bound: by how much its start of two workers is longer than one on a quiet machine may be. */
const busyMs = (startMs: number): number => Math.max(0, startMs - 5_000)

/** Two workers, and each answers. */
async function expectBothServe({ url, pid }: PawlProcess): Promise<void> {
  const headers = { authorization: `Basic ${Buffer.from(`admin:${ADMIN_PASSWORD}`).toString('base64')}` }
  const countServing = async () => {
    const metrics = await fetch(`${url}/metrics`, { headers }).then((answer) => answer.text(), String)
    return metrics.match(/^process_start_time_seconds\{/gm)?.length
  }
  await expect.poll(countServing, { interval: 200 }).toBe(2)
  expect(childrenOf(pid)).toHaveLength(2)
}

describe.skipIf(serverUrl() === undefined)('two processes', () => {
  let pawl: PawlProcess
  let port: number
  let startMs: number
  const sockets = createSockets(() => port)
  beforeAll(async () => {
    const { env } = await createInstallation('postgresql')
    port = await findQuietPort()
    const since = performance.now()
    pawl = await startPawl(env, TWO, { PAWL_PORT: String(port), PAWL_CREDENTIAL_FAILURES_PER_MINUTE: '100000' })
    startMs = performance.now() - since
  })
  afterEach(sockets.endAll)
  afterAll(endEverything)

  const workers = (): number[] => childrenOf(pawl.pid)
  const isAnswered = ({ text }: RawConnection): boolean => text().startsWith('HTTP/1.1 200')
  const ask = (count: number): Promise<RawConnection[]> => sockets.openMany(count, '127.0.0.1', requestOf('GET', '/health/live'))
  const bothServe = () => expectBothServe(pawl)

  test.each([
    ['the first', [0]],
    ['the second', [1]],
    ['each', [0, 1]],
  ])('%s is stopped: that is seen within ten seconds, and it is replaced', async (_, places) => {
    await bothServe()
    const before = workers()
    const stopped = places.map((i) => before[i] ?? 0)
    const told = countOf(pawl, HANGS)
    const begin = performance.now()
    signal(stopped, 'SIGSTOP')
    const waiting = await ask(8)
    await expect.poll(() => countOf(pawl, HANGS), { timeout: PATIENCE_MS, interval: 50 }).toBe(told + stopped.length)
    expect(performance.now() - begin).toBeLessThan(10_000 + busyMs(startMs))
    // Nobody is left behind: each is answered, or ended.
    await expect.poll(() => waiting.filter((one) => one.isOpen() && !isAnswered(one)).length, { timeout: PATIENCE_MS }).toBe(0)
    // Of a worker that is left, all but what the other held are answered.
    if (stopped.length === 1) expect(waiting.filter(isAnswered).length).toBeGreaterThanOrEqual(6)
    await bothServe()
    expect(workers().filter((pid) => stopped.includes(pid))).toEqual([])
    expect(workers()).toEqual(expect.arrayContaining(before.filter((pid) => !stopped.includes(pid))))
    expect(stopped.filter(isThere)).toEqual([])
    const lines = pawl
      .output()
      .split('\n')
      .filter((line) => line.includes(HANGS))
    const [last = '{}'] = lines.slice(-1)
    expect(JSON.parse(last)).toMatchObject({ level: 'error', worker: expect.stringMatching(/^[12]$/), seconds: 7 })
  })

  test.each([
    ['a worker that is busy for two seconds', [1], 2_000, 1],
    ['a worker that is busy for five seconds', [1], 5_000, 1],
    ['a worker that is busy for three seconds, again and again', [2], 3_000, 4],
    ['both busy for four seconds', [1, 2], 4_000, 1],
    ['the first process that stands still alone', [0], 12_000, 1],
    ['a machine that is suspended', [0, 1, 2], 12_000, 1],
    ['a machine that is suspended, again and again', [0, 1, 2], 2_500, 6],
  ])('nobody is killed for %s', async (_, places, ms, times) => {
    await bothServe()
    const all = [pawl.pid, ...workers()]
    const still = places.map((i) => all[i] ?? 0)
    const told = countOf(pawl, HANGS)
    for (let i = 0; i < times; i += 1) {
      signal(still, 'SIGSTOP')
      await sleep(ms)
      signal(still, 'SIGCONT')
      await sleep(1_500)
    }
    await bothServe()
    expect([pawl.pid, ...workers()].toSorted()).toEqual(all.toSorted())
    expect(countOf(pawl, HANGS)).toBe(told)
  })

  test('nobody is killed for much work', async () => {
    await bothServe()
    const all = workers()
    const wrong = { authorization: `Basic ${Buffer.from('admin:not the password').toString('base64')}` }
    const until = performance.now() + 12_000
    const client = async (): Promise<void> => {
      while (performance.now() < until) {
        const asked = [fetch(`${pawl.url}/admin/users`, { headers: wrong }), fetch(`${pawl.url}/openapi.json`)]
        await Promise.all(asked.map((one) => one.then((answer) => answer.arrayBuffer(), String)))
      }
    }
    await Promise.all(Array.from({ length: 48 }, client))
    expect(workers()).toEqual(all)
    await bothServe()
  })

  test.each([
    ['while they stand still', true],
    ['while they work', false],
  ])('both killed at once %s: no connection is left without an answer or an end', async (_, isStill) => {
    await bothServe()
    const both = workers()
    if (isStill) signal(both, 'SIGSTOP')
    const waiting = await ask(6)
    const load = isStill ? [] : Array.from({ length: 40 }, () => ask(4))
    signal(both, 'SIGKILL')
    const all = [...waiting, ...(await Promise.all(load)).flat()]
    await expect.poll(() => all.filter((one) => one.isOpen() && !isAnswered(one)).length, { timeout: PATIENCE_MS }).toBe(0)
    await bothServe()
    expect((await fetch(`${pawl.url}/health/ready`)).status).toBe(200)
  })
})

describe.skipIf(serverUrl() === undefined)('SIGTERM', () => {
  afterAll(endEverything)

  const start = async (more: Environment): Promise<PawlProcess & { readonly startMs: number }> => {
    const { env } = await createInstallation('postgresql')
    const since = performance.now()
    const pawl = await startPawl(env, TWO, { PAWL_PORT: String(await findQuietPort()) }, more)
    const startMs = performance.now() - since
    // The second one has its handlers.
    await expectBothServe(pawl)
    return { ...pawl, startMs }
  }

  test.each([
    ['one is stopped', [0], 0, 2],
    ['both are stopped', [0, 1], 0, 2],
    ['one is stopped, and all drain', [1], 2, 1],
  ])('ends all within the time that is promised: %s', async (_, places, drain, timeout) => {
    const pawl = await start({ PAWL_DRAIN_SECONDS: String(drain), PAWL_SHUTDOWN_TIMEOUT_SECONDS: String(timeout) })
    const workers = childrenOf(pawl.pid)
    const stopped = places.map((i) => workers[i] ?? 0)
    signal(stopped, 'SIGSTOP')
    const begin = performance.now()
    const { code, signal: how, stdout } = await pawl.end('SIGTERM')
    // Both settings, and three seconds; what is over is of this machine.
    expect(performance.now() - begin).toBeLessThan((drain + timeout + 3 + 1.5) * 1000 + busyMs(pawl.startMs))
    expect({ code, how }).toEqual({ code: 1, how: null })
    const killed = stdout.split('\n').filter((line) => line.includes('a worker did not end in time, it is killed'))
    expect(killed).toHaveLength(stopped.length)
    expect(workers.filter(isThere)).toEqual([])
  })

  test('ends all at once where nobody hangs, and where one waits to be started again', async () => {
    const pawl = await start({ PAWL_SHUTDOWN_TIMEOUT_SECONDS: '5' })
    const [first = 0] = childrenOf(pawl.pid)
    process.kill(first, 'SIGKILL')
    await pawl.printed('a worker ended, it is started again')
    const begin = performance.now()
    const { code } = await pawl.end('SIGTERM')
    expect(performance.now() - begin).toBeLessThan(Math.max(5_000, pawl.startMs))
    expect(code).toBe(0)
  })
})
