// Two processes behind a balancer are replaced one after the other: no request fails.
import { afterEach, describe, expect, test, vi } from 'vitest'
import { NO_BODY, send } from '../../phone/http.ts'
import { serverUrl } from '../helpers/app.ts'
import { type Balancer, openBalancer } from '../helpers/balancer.ts'
import { type Behind, checkShippedConfiguration, HAPROXY, hasHaproxy, openHaproxy } from '../helpers/haproxy.ts'
import { basicAuthorization } from '../helpers/bank.ts'
import { findQuietPort } from '../helpers/ports.ts'
import type { Environment } from '../helpers/process.ts'
import { ADMIN_PASSWORD, createInstallation, endEverything, startPawl } from '../helpers/process.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

afterEach(endEverything)

const title =
  serverUrl() === undefined
    ? 'skipped: PAWL_TEST_DATABASE_URL is not set, and only PostgreSQL has room for two'
    : 'a rolling restart'

describe.skipIf(serverUrl() === undefined)(title, () => {
  test('fails no request of a balancer that looks at readiness each second', async () => {
    await replaceBoth(async (behind) => openBalancer(behind.map(({ port }) => `http://127.0.0.1:${port}`)))
  })

  test.skipIf(!hasHaproxy)(`fails no request behind HAProxy as it is shipped (needs ${HAPROXY})`, async () => {
    checkShippedConfiguration()
    await replaceBoth(async (behind) => {
      const haproxy = await openHaproxy(behind)
      const ask = async (path: string) =>
        (await send(haproxy.phonesUrl, { method: 'POST', path, headers: JSON_TYPE, body: EMPTY })).status
      expect(await ask('/pa/v3/status')).toBe(200)
      expect(await ask('/registration')).toBe(404)
      expect(await ask('/metrics')).toBe(404)
      return haproxy
    }, true)
  })
})

/** Replaces two processes, one after the other, under load. `hasInternal`: each has a second listener, which is the one that is asked. */
async function replaceBoth(open: (behind: readonly [Behind, Behind]) => Promise<Balancer>, hasInternal = false): Promise<void> {
  const { env } = await createInstallation('postgresql')
  const settings: Environment = { ...env, PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD, PAWL_DRAIN_SECONDS: '3' }
  const behind: readonly [Behind, Behind] = [await findPorts(), await findPorts()]
  const start = ({ port, internalPort }: Behind) =>
    startPawl(settings, { PAWL_PORT: port, ...(hasInternal && { PAWL_INTERNAL_PORT: internalPort }) })
  const processes = await Promise.all(behind.map(start))
  const balancer = await open(behind)
  const load = startLoad(balancer.url)
  const isAnswered = (count: number) => vi.waitFor(() => expect(load.answered()).toBeGreaterThan(count), PATIENCE_MS)
  await isAnswered(200)
  for (const [index, place] of behind.entries()) {
    const old = processes[index]
    expect(await old?.end('SIGTERM')).toMatchObject({ code: 0, stderr: '' })
    expect(balancer.readyCount()).toBe(1)
    // The other one serves alone.
    await isAnswered(load.answered() + 50)
    processes[index] = await start(place)
    await vi.waitFor(() => expect(balancer.readyCount()).toBe(2), { timeout: PATIENCE_MS })
  }
  await isAnswered(500)
  const failed = await load.stop()
  await balancer.close()
  expect(failed).toEqual([])
}

const findPorts = async (): Promise<Behind> => ({
  port: String(await findQuietPort()),
  internalPort: String(await findQuietPort()),
})

const JSON_TYPE = { 'Content-Type': 'application/json' }
const EMPTY = Buffer.from('{}')

/** Reads and writes of the bank's, over eight connections, until it is stopped. */
function startLoad(url: string): { answered: () => number; stop: () => Promise<readonly string[]> } {
  const stopped = new AbortController()
  let answered = 0
  const failed: string[] = []
  const authorization = basicAuthorization(`admin:${ADMIN_PASSWORD}`)
  const lane = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      try {
        const { status } = await send(url, { method: 'GET', path: '/admin/applications', headers: authorization, body: NO_BODY })
        if (status !== 200) failed.push(`status ${status}`)
        answered += 1
      } catch (error) {
        failed.push(String(error))
      }
    }
  }
  const lanes = Array.from({ length: 8 }, lane)
  return {
    answered: () => answered,
    stop: async () => {
      stopped.abort()
      await Promise.all(lanes)
      return failed
    },
  }
}
