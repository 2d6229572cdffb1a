// HAProxy as it is shipped, before a process with the limits that it has by default: what one address does, others do not notice.
import { createServer, type Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { HAPROXY, type Haproxy, hasHaproxy, openHaproxy } from '../helpers/haproxy.ts'
import { findQuietPort } from '../helpers/ports.ts'
import { createInstallation, endEverything, startPawl } from '../helpers/process.ts'
import { beginningOf, createSockets, type RawConnection, requestOf } from '../helpers/sockets.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

const STRANGER = '127.0.0.2'

let haproxy: Haproxy
const phones = createSockets(() => Number(new URL(haproxy.phonesUrl).port))
afterEach(phones.endAll)

async function start(limits?: Readonly<Record<string, string>>): Promise<void> {
  const { env } = await createInstallation('embedded')
  const [port, internalPort] = [String(await findQuietPort()), String(await findQuietPort())]
  await startPawl(env, { PAWL_PORT: port, PAWL_INTERNAL_PORT: internalPort, PAWL_TRUSTED_PROXIES: '127.0.0.1' })
  const process = { port, internalPort }
  haproxy = await openHaproxy([process, process], limits)
}

async function stop(): Promise<void> {
  await haproxy.close()
  await endEverything()
}

const statusOf = ({ text }: RawConnection): string | undefined => /^HTTP\/1\.1 (\d+)/.exec(text())?.[1]

/** Right requests over a connection each, their bodies in two parts. */
async function ask(from: string, count: number): Promise<(string | undefined)[]> {
  const all = await phones.openMany(count, from, beginningOf('/pa/v3/status', 2))
  for (const { socket } of all) socket.write('}')
  await vi.waitFor(() => expect(all.filter((one) => one.isOpen() && statusOf(one) === undefined)).toEqual([]), PATIENCE_MS)
  for (const { socket } of all) socket.destroy()
  return all.map(statusOf)
}

const all200 = (count: number): string[] => Array<string>(count).fill('200')

describe.skipIf(!hasHaproxy)(`with its own limits (needs ${HAPROXY})`, () => {
  beforeAll(() => start())
  afterAll(stop)

  test.each([
    ['bodies on their way', beginningOf('/pa/v3/activation/status'), ' '],
    ['bodies that do not fit into a buffer', beginningOf('/pa/v3/signature/validate', 100_000) + ' '.repeat(20_000), ' '],
    [
      'bodies that headers leave no room for',
      beginningOf('/pa/v3/status', 7_000, `X: ${'x'.repeat(7_000)}\r\n`) + ' '.repeat(6_900),
      '',
    ],
    [
      'bodies without a length',
      'POST /pa/v3/status HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5000\r\n' + ' '.repeat(20_000),
      ' ',
    ],
    ['headers on their way', 'POST /pa/v3/status HTTP/1.1\r\nHost: a\r\n', 'X'],
    ['connections that idle', requestOf('POST', '/pa/v3/status'), ''],
    ['connections that send nothing', '', ''],
  ])('%s, 1,000 of one address, take nothing from others', async (_, bytes, drip) => {
    const sent = await phones.openMany(1_000, STRANGER, bytes)
    const timer = setInterval(() => {
      for (const { socket, isOpen } of sent) if (drip !== '' && isOpen()) socket.write(drip)
    }, 1_000)
    for (let i = 0; i < 3; i += 1) {
      for (const from of ['127.0.0.1', '127.0.0.3']) expect(await ask(from, 12)).toEqual(all200(12))
      for (const path of ['/health/ready', '/health/live']) expect((await fetch(haproxy.url + path)).status).toBe(200)
    }
    clearInterval(timer)
  })

  test('what comes by TLS is told so, and the cookie of the console is one for TLS alone', async () => {
    const { headers } = await fetch(`${haproxy.url}/console/sign-out`, { method: 'POST', redirect: 'manual' })
    expect(headers.get('set-cookie')).toMatch(/^__Host-pawl_console_\d+=; .*; Secure/)
  })

  test('3,000 phones of one address are served, one request after the other and all at once', async () => {
    const all = await phones.openMany(3_000, '127.0.0.1', requestOf('POST', '/pa/v3/status'))
    // How many have been told what, and whether they are still connected.
    const tally = (): Record<string, number> => {
      const counts: Record<string, number> = {}
      for (const { text, isOpen } of all) {
        const told = [...text().matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status).join(' ')
        const key = `${told}${isOpen() ? '' : ', closed'}`
        counts[key] = (counts[key] ?? 0) + 1
      }
      return counts
    }
    await vi.waitFor(() => expect(tally()).toEqual({ '200': 3_000 }), PATIENCE_MS)
    for (const { socket } of all) socket.write(requestOf('POST', '/pa/v3/status'))
    await vi.waitFor(() => expect(tally()).toEqual({ '200 200': 3_000 }), PATIENCE_MS)
  })

  test('long bodies of many phones of one address arrive', async () => {
    const body = JSON.stringify({ x: 'x'.repeat(60_000) })
    const all = await phones.openMany(100, '127.0.0.1', beginningOf('/pa/v3/signature/validate', body.length))
    for (const { socket } of all) socket.write(body.slice(1))
    await vi.waitFor(() => expect(all.map(statusOf)).toEqual(Array(100).fill('401')), PATIENCE_MS)
  })
})

describe.skipIf(!hasHaproxy)(`with limits of a few (needs ${HAPROXY})`, () => {
  beforeAll(() => start({ 'gt 3500': 'gt 20', 'gt 50': 'gt 5', 'gt 200': 'gt 8' }))
  afterAll(stop)

  test('an address has so many connections and no more', async () => {
    const sent = await phones.openMany(40, STRANGER, requestOf('POST', '/pa/v3/status'))
    await expect.poll(() => sent.filter((one) => statusOf(one) === '200')).toHaveLength(20)
    await expect.poll(() => sent.filter(({ isOpen }) => isOpen())).toHaveLength(20)
    expect(await ask('127.0.0.3', 15)).toEqual(all200(15))
    phones.endAll()
    await expect.poll(() => ask(STRANGER, 15)).toEqual(all200(15))
  })

  test('and few bodies on their way when many places are taken; whole ones have as many as they like', async () => {
    const long = beginningOf('/pa/v3/signature/validate', 100_000) + ' '.repeat(20_000)
    // Other addresses than those of the test before, whose connections HAProxy may count for a moment longer.
    const sent = await phones.openMany(18, '127.0.0.4', long)
    await expect.poll(() => sent.filter((one) => statusOf(one) === '503').length).toBeGreaterThanOrEqual(8)
    expect(await ask('127.0.0.5', 12)).toEqual(all200(12))
    const [other] = await phones.openMany(1, '127.0.0.3', long)
    other?.socket.write(' '.repeat(79_999))
    await expect.poll(() => other && statusOf(other)).toBe('401')
  })
})

describe.skipIf(!hasHaproxy)(`before processes whose database is slow for a while (needs ${HAPROXY})`, () => {
  /** Answers at both ports of a process, and lets a probe wait. */
  async function openSlow(
    delayMs: () => number,
  ): Promise<{ readonly servers: readonly Server[]; readonly ports: readonly string[] }> {
    const ports = [String(await findQuietPort()), String(await findQuietPort())]
    const servers = ports.map((port) =>
      createServer(({ url }, response) => {
        setTimeout(() => response.end(), url?.startsWith('/health/') === true ? delayMs() : 0)
      }).listen(Number(port), '127.0.0.1'),
    )
    return { servers, ports }
  }

  test('both stay while they say within their time that they are ready', async () => {
    let delayMs = 0
    const both = [await openSlow(() => delayMs), await openSlow(() => delayMs)] as const
    const [one, two] = both.map(({ ports: [port = '', internalPort = ''] }) => ({ port, internalPort }))
    if (one === undefined || two === undefined) throw new TypeError('not two')
    const balancer = await openHaproxy([one, two])
    delayMs = 2_000
    for (let i = 0; i < 40; i += 1) {
      expect(
        (await fetch(`${balancer.phonesUrl}/pa/v3/status`, { method: 'POST' })).status,
        `after ${i} tenths of a second`,
      ).toBe(200)
      await sleep(100)
    }
    await balancer.close()
    for (const { servers } of both)
      for (const server of servers) {
        server.close()
        server.closeAllConnections()
      }
  })
})
