// Several processes behind one port (PAWL_PROCESSES), from outside: one that is killed, what is counted, their limits, and how all of them end.
import { closeSync, constants, copyFileSync, openSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { COUNT_WAITING, serverUrl } from '../helpers/app.ts'
import { findQuietPort } from '../helpers/ports.ts'
import {
  ADMIN_PASSWORD,
  createInstallation,
  endEverything,
  type PawlProcess,
  SERVER,
  startNode,
  startPawl,
} from '../helpers/process.ts'
import { createSockets, type RawConnection, requestOf } from '../helpers/sockets.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

const TWO = { PAWL_PROCESSES: '2', PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD }

test('the embedded database takes one process', async () => {
  const { env } = await createInstallation('embedded', { isEmpty: true })
  const { code, stderr } = await startNode([SERVER], { ...env, ...TWO }).ended
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: 'pawl cannot start: PAWL_PROCESSES: more than one needs DATABASE_URL, the embedded database takes one process\n',
  })
})

test.skipIf(serverUrl() === undefined)('what keeps the first process from starting is said once', async () => {
  const { env } = await createInstallation('postgresql')
  const env2 = { ...env, ...TWO, PAWL_HOST: '192.0.2.1', PAWL_SINGLE_LISTENER: 'true' }
  const { code, stderr } = await startNode([SERVER], env2).ended
  expect(code).toBe(1)
  expect(stderr.trimEnd().split('\n')).toEqual([expect.stringContaining('is not an address of this machine')])
})

describe.skipIf(serverUrl() === undefined)('two processes', () => {
  let pawl: PawlProcess
  let adminUrl: string | undefined
  beforeAll(async () => {
    const installation = await createInstallation('postgresql')
    adminUrl = installation.adminUrl
    pawl = await startPawl(installation.env, TWO, { PAWL_DRAIN_SECONDS: '1', PAWL_PORT: String(await findQuietPort()) })
  })
  afterAll(endEverything)

  const isKnown = (pid: number): boolean => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  }
  const countStarted = (): Promise<number> => countServing(pawl.url)

  test('both serve, and an answer of either tells what both count', async () => {
    await expect.poll(countStarted, PATIENT).toBe(2)
    for (let i = 0; i < 8; i += 1) expect(await ask(pawl.url, '/health/live')).toBe(200)
    const lines = (await readMetrics(pawl.url)).split('\n')
    const served = lines.filter((line) => /^pawl_http_request_duration_seconds_count\{.*\/health\/live/.test(line))
    const counts = served.map((line) => Number(/worker="[12]".*\} (\d+)$/.exec(line)?.[1]))
    expect(counts).toHaveLength(2)
    expect(counts.reduce((sum, count) => sum + count)).toBe(8)
    const described = lines.filter((line) => line.startsWith('# HELP '))
    expect(new Set(described).size).toBe(described.length)
  })

  test('one that is killed is started again, and the other serves meanwhile', async () => {
    const [killed = 0, other = 0] = workersOf(pawl.pid)
    process.kill(killed, 'SIGKILL')
    await pawl.printed('a worker ended, it is started again')
    for (let i = 0; i < 8; i += 1) expect(await ask(pawl.url, '/health/ready')).toBe(200)
    await expect.poll(countStarted, PATIENT).toBe(2)
    expect(workersOf(pawl.pid)).toContain(other)
    expect(workersOf(pawl.pid)).toHaveLength(2)
    const starts = pawl.output().split('Ready.').length - 1
    expect(starts).toBe(1)
  })

  test('one whose start takes long turns nobody away, because the other serves', async () => {
    await expect.poll(countStarted, PATIENT).toBe(2)
    const [holder, observer] = [0, 1].map(() => new pg.Client({ connectionString: adminUrl })) as [pg.Client, pg.Client]
    await Promise.all([holder.connect(), observer.connect()])
    // Of the tables that a start reads first; who serves has read it.
    await holder.query('begin')
    await holder.query('lock table wrapped_key in access exclusive mode')
    const lives = pawl.output().split('a worker ended').length
    process.kill(workersOf(pawl.pid)[0] ?? 0, 'SIGKILL')
    const countWaiting = async () => (await observer.query<{ waiting: number }>(COUNT_WAITING)).rows[0]?.waiting
    await expect.poll(countWaiting, PATIENT).toBe(1)
    // It waits for as long as a statement may, and answered others from its second second on.
    const statuses = new Set<number | undefined>()
    for (const since = performance.now(); performance.now() - since < 3_000; await sleep(50)) {
      const asked = ['/health/ready', '/pa/v3/status'].map((path) => ask(pawl.url, path))
      for (const status of await Promise.all(asked)) statuses.add(status)
    }
    const starts = pawl.output().split('a worker ended').length
    await Promise.all([holder.end(), observer.end()])
    expect([...statuses]).toEqual([200])
    expect(starts).toBe(lives + 1)
    await expect.poll(countStarted, PATIENT).toBe(2)
  })

  test('SIGTERM drains both, and nothing is left', async () => {
    const workers = workersOf(pawl.pid)
    const ended = pawl.end('SIGTERM')
    await expect.poll(() => ask(pawl.url, '/health/ready'), { interval: 10 }).toBe(503)
    const statuses = await Promise.all([0, 1, 2, 3].map(async (i) => ask(pawl.url, i % 2 ? '/health/live' : '/pa/v3/status')))
    expect(statuses).toEqual([200, 200, 200, 200])
    const { code, signal, stdout, stderr } = await ended
    expect({ code, signal, stderr }).toEqual({ code: 0, signal: null, stderr: '' })
    const stopping = stdout.split('\n').filter((line) => line.includes('"stopping"'))
    expect(stopping.map((line) => (JSON.parse(line) as { worker: string }).worker).toSorted()).toEqual(['1', '2'])
    expect(workers.filter(isKnown)).toEqual([])
  })
})

describe.skipIf(serverUrl() === undefined)('with limits of connections and requests', () => {
  afterAll(endEverything)

  test('two processes have these limits each', async () => {
    const { env } = await createInstallation('postgresql')
    const both = await startPawl(env, { PAWL_PROCESSES: '2', PAWL_CONNECTIONS_MAX: '12', PAWL_REQUESTS_IN_FLIGHT_MAX: '8' })
    const { openMany, endAll } = createSockets(() => Number(new URL(both.url).port))
    const statusOf = ({ text }: RawConnection): string | undefined => /^HTTP\/1\.1 (\d+)/.exec(text())?.[1]
    for (const bytes of ['', requestOf('GET', '/health/live')]) {
      const sent = await openMany(60, '127.0.0.2', bytes)
      const other = await openMany(6, '127.0.0.3', requestOf('POST', '/pa/v3/status'))
      await vi.waitFor(() => expect(other.map(statusOf)).toEqual(Array(6).fill('200')), PATIENCE_MS)
      expect(sent.filter(({ isOpen }) => isOpen()).length).toBeLessThanOrEqual(18)
      endAll()
    }
    await both.end('SIGTERM')
  })
})

describe.skipIf(serverUrl() === undefined)('while its Node is being replaced', () => {
  afterAll(endEverything)

  test('a worker that cannot be started is tried again, and a stop is the same as ever', async () => {
    const { env, directory } = await createInstallation('postgresql')
    const node = join(directory, 'node')
    copyFileSync(process.execPath, node, constants.COPYFILE_FICLONE)
    const begin = `process.execve(${JSON.stringify(node)}, ['node', ${JSON.stringify(SERVER)}])`
    const port = String(await findQuietPort())
    const pawl = startNode(['-e', begin], { ...env, ...TWO, PAWL_PORT: port })
    const serving = () => countServing(`http://127.0.0.1:${port}`)
    const countFailures = () => pawl.output().split('the system could not start a worker').length - 1
    await pawl.printed('Ready.')
    await expect.poll(serving, PATIENT).toBe(2)
    const [killed = 0, other = 0] = workersOf(pawl.pid)
    renameSync(node, `${node}.old`)
    process.kill(killed, 'SIGKILL')
    await expect.poll(countFailures, PATIENT).toBeGreaterThan(0)
    renameSync(`${node}.old`, node)
    await expect.poll(serving, PATIENT).toBe(2)
    expect(workersOf(pawl.pid)).toContain(other)
    const failures = countFailures()
    rmSync(node)
    // While it is being written the system starts none of it either.
    copyFileSync(process.execPath, node)
    const written = openSync(node, 'r+')
    process.kill(other, 'SIGKILL')
    await expect.poll(countFailures, PATIENT).toBeGreaterThan(failures)
    expect((await pawl.end('SIGTERM')).code).toBe(0)
    closeSync(written)
  })
})

const workersOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)

async function readMetrics(url: string): Promise<string> {
  const authorization = `Basic ${Buffer.from(`admin:${ADMIN_PASSWORD}`).toString('base64')}`
  const answer = await fetch(`${url}/metrics`, { headers: { authorization } })
  expect(answer.status).toBe(200)
  return answer.text()
}

/** How many processes serve. */
const countServing = async (url: string): Promise<number> =>
  (await readMetrics(url)).match(/^process_start_time_seconds\{/gm)?.length ?? 0

const PATIENT = { timeout: PATIENCE_MS, interval: 100 }

/** The status of a request on a connection of its own, so that connections go to the processes in turn. */
const ask = (url: string, path: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const method = path.startsWith('/pa/') ? 'POST' : 'GET'
    const outgoing = request(`${url}${path}`, { method, agent: false }, (incoming) => {
      incoming.resume().once('end', () => resolve(incoming.statusCode))
    })
    outgoing.once('error', reject).end()
  })
