// A process with more connections, requests and bytes than it takes still serves others and /health, and answers each caller.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { send, sendJson } from '../../phone/http.ts'
import { basicAuthorization } from '../helpers/bank.ts'
import { findQuietPort } from '../helpers/ports.ts'
import type { PawlProcess } from '../helpers/process.ts'
import { ADMIN_PASSWORD, createInstallation, DATABASE_KIND, endEverything, startPawl } from '../helpers/process.ts'
import { beginningOf, createSockets, type RawConnection, requestOf } from '../helpers/sockets.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

/** Three quarters are 30 and 12. */
const CONNECTIONS = 40
const IN_FLIGHT = 16
const STRANGER = '127.0.0.2'
const OTHERS = ['127.0.0.1', '127.0.0.3']

let pawl: PawlProcess
let internalPort: number
const phones = createSockets(() => Number(new URL(pawl.url).port))
const bank = createSockets(() => internalPort)
beforeAll(async () => {
  internalPort = await findQuietPort()
  const { env } = await createInstallation(DATABASE_KIND)
  pawl = await startPawl(env, {
    PAWL_INTERNAL_PORT: String(internalPort),
    PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD,
    PAWL_CONNECTIONS_MAX: String(CONNECTIONS),
    PAWL_REQUESTS_IN_FLIGHT_MAX: String(IN_FLIGHT),
  })
})
afterEach(() => {
  phones.endAll()
  bank.endAll()
})
afterAll(endEverything)

const statusOf = ({ text }: RawConnection): string | undefined => /^HTTP\/1\.1 (\d+)/.exec(text())?.[1]

/** A right request over a connection of its own, its body in two parts; and readiness, as a balancer asks for it. */
async function askBoth(from: string): Promise<(string | undefined)[]> {
  const connection = await phones.open(from, beginningOf('/pa/v3/status', 2))
  const probe = await phones.open(from, requestOf('GET', '/health/ready'))
  await sleep(10)
  connection.socket.write('}')
  await vi.waitFor(
    () =>
      expect([connection, probe].map((one) => [statusOf(one), one.isOpen()])).toEqual([
        ['200', true],
        ['200', true],
      ]),
    PATIENCE_MS,
  )
  connection.socket.destroy()
  probe.socket.destroy()
  return [connection, probe].map(statusOf)
}

describe.each([
  ['bodies on their way', beginningOf('/pa/v3/activation/status'), ' '],
  [
    'bodies without a length',
    'POST /pa/v3/status HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n',
    '1\r\n \r\n',
  ],
  ['bodies larger than a buffer', beginningOf('/pa/v3/signature/validate', 100_000) + ' '.repeat(20_000), ' '],
  ['bodies for paths that there are not', beginningOf('/nothing/here'), ' '],
  ['bodies with a question for health', beginningOf('/health/live').replace('POST', 'GET'), ' '],
  ['connections that asked for health and idle', requestOf('GET', '/health/live'), ''],
  ['connections that were refused and idle', requestOf('POST', '/api/auth/token/app/operation/list'), ''],
  ['headers on their way', 'POST /pa/v3/status HTTP/1.1\r\nHost: a\r\n', 'X'],
  ['connections that send nothing', '', ''],
])('%s, three times as many from one address as there are places', (_, bytes, drip) => {
  test('take nothing from others', async () => {
    const sent = await phones.openMany(CONNECTIONS * 3, STRANGER, bytes)
    const timer = setInterval(() => {
      for (const { socket, isOpen } of sent) if (drip !== '' && isOpen()) socket.write(drip)
    }, 100)
    for (let i = 0; i < 8; i += 1)
      for (const answer of await Promise.all([...OTHERS, ...OTHERS].map(askBoth))) expect(answer).toEqual(['200', '200'])
    clearInterval(timer)
    const left = sent.filter(({ isOpen }) => isOpen()).length
    expect(left).toBeGreaterThan(0)
    expect(left).toBeLessThanOrEqual(CONNECTIONS * 0.75)
    await vi.waitFor(() => expect(pawl.output()).toContain('"source":"127.0.0.2"'), PATIENCE_MS)
  })
})

describe('the internal listener', () => {
  test.each([
    ['bodies on their way', beginningOf('/registration')],
    ['connections that asked for health and idle', requestOf('GET', '/health/live')],
    ['connections that send nothing', ''],
  ])('answers probes and the bank, whatever a source does there and to phones: %s', async (_, bytes) => {
    for (const { openMany } of [bank, phones]) await openMany(CONNECTIONS * 3, STRANGER, bytes)
    const url = `http://127.0.0.1:${internalPort}`
    for (const path of ['/health/ready', '/health/live', '/metrics']) expect((await sendJson(url, 'GET', path)).status).toBe(200)
    // From one address, and more at once than a source has that proves nothing. The first one takes the time of a hash.
    const headers = { ...basicAuthorization(`admin:${ADMIN_PASSWORD}`), 'Content-Type': 'application/json' }
    const ask = async () => send(url, { method: 'GET', path: '/admin/applications', headers, body: new Uint8Array(0) })
    expect((await ask()).status).toBe(200)
    expect((await Promise.all(Array.from({ length: IN_FLIGHT - 2 }, ask))).map(({ status }) => status)).toEqual(
      Array(IN_FLIGHT - 2).fill(200),
    )
  })
})

test('one source alone has three quarters', async () => {
  const sent = await phones.openMany(CONNECTIONS * 0.75, STRANGER)
  await sleep(100)
  expect(sent.filter(({ isOpen }) => isOpen())).toHaveLength(CONNECTIONS * 0.75)
})

test('as many sources as there are places and more: the earliest go, and the process lives', async () => {
  const dropped = /pawl_http_connections_dropped_total (\d+)/
  const count = async (): Promise<number> =>
    Number(dropped.exec((await sendJson(`http://127.0.0.1:${internalPort}`, 'GET', '/metrics')).text)?.[1])
  const before = await count()
  await Promise.all(Array.from({ length: CONNECTIONS * 5 }, (_, i) => phones.open(`127.0.1.${i}`)))
  await vi.waitFor(async () => expect(await count()).toBeGreaterThanOrEqual(before + CONNECTIONS * 4), PATIENCE_MS)
  expect(await askBoth('127.0.0.1')).toEqual(['200', '200'])
})

const INCOMPLETE = [
  ['headers', 'POST /pa/v3/status HTTP/1.1\r\nHost: a\r\n', 'X', 1_000, [9, 13]],
  ['nothing at all', '', '', 1_000, [9, 13]],
  ['a body, a byte a second', beginningOf('/pa/v3/activation/status', 1000), ' ', 1_000, [5, 8]],
  ['a body that was refused, a byte a second', beginningOf('/app/init', 1000), ' ', 1_000, [5, 8]],
  [
    'a long body, a hundred bytes a tenth of a second',
    beginningOf('/pa/v3/signature/validate', 100_000),
    ' '.repeat(100),
    100,
    [5, 9],
  ],
  [
    'a long body without a length',
    'POST /pa/v4/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n',
    '1\r\n \r\n',
    100,
    [5, 9],
  ],
] as const

describe('a request that does not arrive', () => {
  test('ends in time with its connection, whatever of it is missing', async () => {
    const printed = pawl.output().length
    let isOver = false
    const lateness = measureLateness(() => isOver)
    const ends = await Promise.all(INCOMPLETE.map(([, bytes, drip, everyMs]) => endOf(bytes, drip, everyMs)))
    isOver = true
    const late = await lateness
    for (const [i, [name, , , , [least, most]]] of INCOMPLETE.entries()) {
      const { seconds = 0, text = '' } = ends[i] ?? {}
      expect(seconds, name).toBeGreaterThan(least)
      expect(seconds, name).toBeLessThan(most + late)
      expect(text, name).toMatch(/^HTTP\/1\.1 4(08 Request Timeout|04 Not Found)\r\n/)
      expect(text, name).toMatch(/\r\nX-Request-Id: [\da-f-]{36}\r\n/i)
      expect(text, name).toMatch(/"status":"ERROR"/)
    }
    expect(pawl.output().slice(printed)).not.toContain('"stack"')
  })

  /** The seconds after which the server ends a connection, and its answer. The connection drips, so it is never silent, and never ends its own side. */
  async function endOf(bytes: string, drip: string, everyMs: number): Promise<{ seconds: number; text: string }> {
    const since = performance.now()
    const { text, closed, socket } = await phones.open('127.0.0.1', bytes, { staysOpen: true })
    const timer = setInterval(() => drip !== '' && socket.write(drip), everyMs)
    await Promise.race([new Promise((resolve) => socket.once('end', resolve)), closed])
    clearInterval(timer)
    return { seconds: (performance.now() - since) / 1000, text: text() }
  }

  /** The seconds of the slowest of the answers that wait for nothing but the processor. */
  async function measureLateness(isOver: () => boolean): Promise<number> {
    let slowest = 0
    while (!isOver()) {
      const since = performance.now()
      await sleep(200)
      expect((await sendJson(pawl.url, 'GET', '/health/live')).status).toBe(200)
      slowest = Math.max(slowest, performance.now() - since - 200)
    }
    return slowest / 1000
  }

  test('is served however slow it is, as long as it keeps to the slowest rate', async () => {
    const bytes = 70_000
    const connection = await phones.open('127.0.0.1', beginningOf('/pa/v3/signature/validate', bytes + 1))
    const since = performance.now()
    // Ten bytes a millisecond: what a busy machine has sent too late comes with the next.
    for (let sent = 0; sent < bytes; await sleep(100)) {
      const due = Math.min(bytes, Math.ceil((performance.now() - since) * 10))
      connection.socket.write(' '.repeat(due - sent))
      sent = due
    }
    await vi.waitFor(() => expect(statusOf(connection)).toBe('401'), PATIENCE_MS)
  })
})
