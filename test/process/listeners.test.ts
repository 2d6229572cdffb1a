// Two listeners: one for phones, one for the bank, from the start text to the stop (cloud §1.1).
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { basicAuthorization } from '../helpers/bank.ts'
import { member, sendJson } from '../../phone/http.ts'
import {
  ADMIN_PASSWORD,
  createInstallation,
  endEverything,
  type Installation,
  type PawlProcess,
  refusePawl,
  runNode,
  startPawl,
} from '../helpers/process.ts'

// Creating a database costs seconds of processor time, and other test files run at the same time.

const env = { PAWL_INTERNAL_PORT: '0', PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD }
const admin = basicAuthorization(`admin:${ADMIN_PASSWORD}`)

let installation: Installation
let pawl: PawlProcess
let internal: string
beforeAll(async () => {
  installation = await createInstallation('embedded')
  pawl = await startPawl(installation.env, env)
  internal = /^Cloud API and administration, never for phones: (\S+)$/m.exec(pawl.output())?.[1] ?? ''
})
afterAll(endEverything)

const hasIpv6 = Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === '::1'))

const statusOf = async (url: string, method: string, path: string): Promise<number> =>
  (await sendJson(url, method, path, method === 'POST' ? {} : undefined, admin)).status

describe('with PAWL_INTERNAL_PORT', () => {
  test('the start text names both addresses and sends the bank to its own', () => {
    expect(internal).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect(internal).not.toBe(pawl.url)
    expect(pawl.output()).toContain(`API description: ${internal}/swagger-ui.html\n`)
    expect(pawl.output()).toContain(` ${internal}/admin/application\n`)
  })

  test('phones reach their API and health, and nothing of the bank', async () => {
    expect(await statusOf(pawl.url, 'POST', '/pa/v3/status')).toBe(200)
    expect(await statusOf(pawl.url, 'GET', '/health/ready')).toBe(200)
    for (const path of ['/registration?userId=a', '/admin/applications', '/openapi.json', '/swagger-ui.html', '/metrics']) {
      const reply = await sendJson(pawl.url, 'GET', path, undefined, admin)
      expect([reply.status, member(reply.json, 'responseObject', 'code')]).toEqual([404, 'ERROR_NOT_FOUND'])
    }
  })

  test('the bank reaches its API, the description and health, and nothing of the phones', async () => {
    for (const path of ['/admin/applications', '/openapi.json', '/swagger-ui.html', '/health/ready']) {
      expect(await statusOf(internal, 'GET', path)).toBe(200)
    }
    expect(await statusOf(internal, 'POST', '/pa/v3/status')).toBe(404)
    expect((await sendJson(internal, 'GET', '/admin/applications')).status).toBe(401)
    const metrics = await sendJson(internal, 'GET', '/metrics')
    // Of the phones' listener as well.
    expect(metrics.text).toContain('pawl_http_request_duration_seconds_count{method="POST",route="/pa/v3/status",status="200"} 1')
  })

  test('serviceBaseUrl is where phones reach the server, although the bank asks elsewhere, and the start says once that it is derived', async () => {
    for (const id of ['derived', 'derived-too']) {
      const created = await sendJson(internal, 'POST', '/admin/application', { id }, admin)
      expect(member(created.json, 'responseObject', 'serviceBaseUrl')).toBe(pawl.url)
    }
    expect(pawl.output().split('PAWL_PUBLIC_URL is not set')).toHaveLength(2)
  })

  test('the health check of the image asks the public one whether it is alive', async () => {
    expect(await runNode(['bin/health.mjs'], { PAWL_PORT: new URL(pawl.url).port })).toMatchObject({ code: 0 })
  })

  const places = [
    ['127.0.0.2', '127.0.0.2'],
    ['::1', '::1'],
    ['::', '127.0.0.1'],
    ['0.0.0.0', '127.0.0.1'],
  ] as const
  test.each(places.filter(([host]) => hasIpv6 || host !== '::1'))(
    'where the server listens on %s, it asks %s',
    async (host, asked) => {
      const server = createHttpServer((_, response) => response.end())
      server.listen(0, asked)
      await once(server, 'listening')
      const { port } = server.address() as AddressInfo
      const { code } = await runNode(['bin/health.mjs'], { PAWL_HOST: host, PAWL_PORT: String(port) })
      server.close()
      expect(code).toBe(0)
    },
  )

  test('a stop ends both, and does not wait for connections that wait', async () => {
    const sockets = [pawl.url, internal].map((url) =>
      connect(Number(new URL(url).port), '127.0.0.1').on('error', () => undefined),
    )
    await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))))
    expect(await pawl.end('SIGTERM')).toMatchObject({ code: 0 })
    for (const socket of sockets) socket.destroy()
  })

  test('an internal port in use is said in one line, and nothing is served', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as AddressInfo
    const { code, stderr, stdout } = await refusePawl(installation.env, env, { PAWL_INTERNAL_PORT: String(port) })
    other.close()
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(
      new RegExp(`^pawl cannot start: 127.0.0.1:${port} is in use by another program.*PAWL_INTERNAL_PORT.*\n$`),
    )
  })
})
