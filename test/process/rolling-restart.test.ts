// Two processes behind a balancer are replaced one after the other: no request fails.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { NO_BODY, send } from '../../phone/http.ts'
import { serverUrl } from '../helpers/app.ts'
import { openBalancer } from '../helpers/balancer.ts'
import { basicAuthorization } from '../helpers/bank.ts'
import { findQuietPort } from '../helpers/ports.ts'
import type { Environment } from '../helpers/process.ts'
import { ADMIN_PASSWORD, createInstallation, endEverything, startPawl } from '../helpers/process.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

afterEach(endEverything)

const title =
  serverUrl() === undefined
    ? 'skipped: PAWL_TEST_DATABASE_URL is not set, and only PostgreSQL has room for two'
    : 'a rolling restart'

describe.skipIf(serverUrl() === undefined)(title, () => {
  test('fails no request of a balancer that looks at readiness each second', async () => {
    const { env } = await createInstallation('postgresql')
    const settings: Environment = { ...env, PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD, PAWL_DRAIN_SECONDS: '3' }
    const ports = [await findQuietPort(), await findQuietPort()].map(String)
    const start = (port: string) => startPawl(settings, { PAWL_PORT: port })
    const processes = await Promise.all(ports.map(start))
    const balancer = await openBalancer(processes.map(({ url }) => url))
    const load = startLoad(balancer.url)
    await sleep(1_000)
    for (const [index, port] of ports.entries()) {
      const old = processes[index]
      expect(await old?.end('SIGTERM')).toMatchObject({ code: 0, stderr: '' })
      expect(balancer.readyCount()).toBe(1)
      processes[index] = await start(port)
      await vi.waitFor(() => expect(balancer.readyCount()).toBe(2), { timeout: 30_000 })
    }
    const { sent, failed } = await load.stop()
    await balancer.close()
    expect(sent).toBeGreaterThan(500)
    expect(failed).toEqual([])
  })
})

/** Reads and writes of the bank's, over eight connections, until it is stopped. */
function startLoad(url: string): { stop: () => Promise<{ sent: number; failed: readonly string[] }> } {
  const stopped = new AbortController()
  let sent = 0
  const failed: string[] = []
  const authorization = basicAuthorization(`admin:${ADMIN_PASSWORD}`)
  const lane = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      sent += 1
      try {
        const { status } = await send(url, { method: 'GET', path: '/admin/applications', headers: authorization, body: NO_BODY })
        if (status !== 200) failed.push(`status ${status}`)
      } catch (error) {
        failed.push(String(error))
      }
    }
  }
  const lanes = Array.from({ length: 8 }, lane)
  return {
    stop: async () => {
      stopped.abort()
      await Promise.all(lanes)
      return { sent, failed }
    },
  }
}
