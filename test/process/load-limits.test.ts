// What a process does with more connections, requests and bytes than it takes: each caller is told so, and health still answers.
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { NO_BODY, send, sendJson } from '../../phone/http.ts'
import { errorCode } from '../helpers/expectations.ts'
import type { PawlProcess } from '../helpers/process.ts'
import { createInstallation, DATABASE_KIND, endEverything, startPawl } from '../helpers/process.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const CONNECTIONS = 30
const IN_FLIGHT = 10

let pawl: PawlProcess
const sockets: Socket[] = []
beforeAll(async () => {
  const { env } = await createInstallation(DATABASE_KIND)
  pawl = await startPawl(env, { PAWL_CONNECTIONS_MAX: String(CONNECTIONS), PAWL_REQUESTS_IN_FLIGHT_MAX: String(IN_FLIGHT) })
})
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  await endEverything()
})

/** A connection and everything that came over it. */
async function open(
  bytes = '',
): Promise<{ readonly socket: Socket; readonly text: () => string; readonly closed: Promise<void> }> {
  const socket = connect(Number(new URL(pawl.url).port), '127.0.0.1')
  sockets.push(socket)
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  socket.on('error', () => undefined)
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()))
  if (bytes !== '') await new Promise<void>((resolve) => socket.write(bytes, () => resolve()))
  return { socket, text: () => text, closed }
}

const closeAll = async (): Promise<void> => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await vi.waitFor(async () => expect((await sendJson(pawl.url, 'POST', '/pa/v3/status', {})).status).toBe(200))
}

const requestOf = (method: string, path: string): string => `${method} ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`

const health = (kind: string) => send(pawl.url, { method: 'GET', path: `/health/${kind}`, headers: {}, body: NO_BODY })

const DRIP =
  'POST /pa/v3/activation/status HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{'

describe('requests in flight beyond the limit', () => {
  test.each([
    ['POST', '/pa/v3/status', 'ERROR_GENERIC'],
    ['POST', '/api/auth/token/app/operation/list', 'ERROR_GENERIC'],
    ['GET', '/registration?userId=a', 'HTTP_503'],
  ])('%s %s is 503 in the form of its API, health is not', async (method, path, code) => {
    await Promise.all(Array.from({ length: IN_FLIGHT }, () => open(DRIP)))
    await vi.waitFor(async () => {
      const reply = await sendJson(pawl.url, method, path, method === 'POST' ? {} : undefined)
      expect([reply.status, errorCode(reply), reply.headers['retry-after']]).toEqual([503, code, '1'])
    })
    expect((await health('ready')).status).toBe(200)
    expect((await health('live')).status).toBe(200)
    await closeAll()
  })
})

describe('connections beyond the limit', () => {
  test('are told so with 503 and closed, and health answers on them', async () => {
    await Promise.all(Array.from({ length: CONNECTIONS }, () => open()))
    await sleep(200)
    const refused = await open(requestOf('POST', '/pa/v3/status'))
    await refused.closed
    expect(refused.text()).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\n/)
    expect(refused.text()).toMatch(/\r\nconnection: close\r\n/i)
    expect(refused.text()).toMatch(/\r\nretry-after: 1\r\n/i)
    expect(refused.text()).toContain('"code":"ERROR_GENERIC"')
    const healthy = await open(requestOf('GET', '/health/ready'))
    await vi.waitFor(() => expect(healthy.text()).toMatch(/^HTTP\/1\.1 200 OK\r\n/))
    await closeAll()
  })

  test('far beyond are not taken, and the process lives', async () => {
    const opened = await Promise.all(Array.from({ length: CONNECTIONS * 3 }, () => open()))
    await Promise.race(opened.map(({ closed }) => closed))
    await vi.waitFor(() => expect(pawl.output()).toContain('a connection was not taken'))
    await closeAll()
    expect((await health('live')).status).toBe(200)
  })
})

describe('a request that does not arrive', () => {
  test.each([
    ['its headers', 'POST /pa/v3/status HTTP/1.1\r\nHost: a\r\n'],
    ['its body', DRIP],
  ])('ends at the time limit with 408: %s', async (_what, bytes) => {
    const printed = pawl.output().length
    const since = performance.now()
    const { text, closed, socket } = await open(bytes)
    // It drips, so the connection is never silent.
    const timer = setInterval(() => socket.write(bytes === DRIP ? ' ' : 'X'), 1_000)
    await closed
    clearInterval(timer)
    const seconds = (performance.now() - since) / 1000
    expect(seconds).toBeGreaterThan(9)
    expect(seconds).toBeLessThan(34)
    expect(text()).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/)
    expect(text()).toMatch(/\r\nX-Request-Id: [\da-f-]{36}\r\n/i)
    expect(text()).toMatch(/"status":"ERROR"/)
    expect(pawl.output().slice(printed)).not.toContain('"stack"')
  })
})
