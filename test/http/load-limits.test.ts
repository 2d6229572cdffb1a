// The share of a listener that one source can take, and the rest for others. Limits are small, and requests last as long as the test wants.
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { KyselyPlugin } from 'kysely'
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sendJson } from '../../phone/http.ts'
import { renderErrorsWith, sendError } from '../../src/http/errors.ts'
import { exemptFromShares, limitLoad } from '../../src/http/load-limits.ts'
import { keepRawBodies } from '../../src/http/raw-body.ts'
import { CALLERS_BYTES_MAX } from '../../src/http/body-bounds.ts'
import { serverOptions } from '../../src/http/server-options.ts'
import { createEvents } from '../../src/log/events.ts'
import { createLog } from '../../src/log/log.ts'
import { systemPlatform } from '../../src/lib/platform.ts'
import type { Pool } from '../../src/storage/database/database.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { errorCode } from '../helpers/expectations.ts'
import { beginningOf, createSockets, type RawConnection, requestOf } from '../helpers/sockets.ts'

const STRANGER = '127.0.0.2'
const OTHER = '127.0.0.3'
const PROXY = '127.0.0.4'
/** Three quarters are 9 and 6. */
const LIMITS = { connectionsMax: 12, requestsInFlightMax: 8, trustedProxies: [PROXY] }
const KNOWN = 'Authorization: known\r\n'

let app: FastifyInstance
let served: string[]
let release: () => void
const sockets = createSockets(() => (app.server.address() as AddressInfo).port)
const { open, openMany } = sockets

beforeEach(async () => {
  const events = createEvents(createLog('fatal', { write: () => undefined }))
  app = Fastify(serverOptions(LIMITS, systemPlatform))
  limitLoad(app, LIMITS, events)
  app.addHttpMethod('GET', { hasBody: true, overrideExisting: true })
  keepRawBodies(app)
  renderErrorsWith(app, events, (error, _request, reply) =>
    sendError(reply, error, error.code === 'UNAVAILABLE' ? 503 : 401, error.code),
  )
  served = []
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const serve = async ({ ip, url }: FastifyRequest) => {
    served.push(`${ip} ${url}`)
    if (url.endsWith('/slow')) await released
    return 'served'
  }
  app.addHook('onRequest', async (request) => {
    if (request.headers.authorization === 'known') exemptFromShares(request)
    if (request.url === '/checked') await released
    if (request.url === '/refused') throw Object.assign(new Error('who are you?'), { statusCode: 401 })
  })
  for (const path of ['/slow', '/fast', '/checked', '/refused', '/health/live', '/health/slow'])
    app.route({ method: ['GET', 'POST'], url: path, bodyLimit: CALLERS_BYTES_MAX, handler: serve })
  await app.listen({ host: '127.0.0.1', port: 0 })
})

afterEach(async () => {
  release()
  sockets.endAll()
  await app.close()
})

const countOpen = (all: readonly RawConnection[]): number => all.filter(({ isOpen }) => isOpen()).length
const statusOf = ({ text }: RawConnection): string | undefined => /^HTTP\/1\.1 (\d+)/.exec(text())?.[1]
const countAnswered = (all: readonly RawConnection[], status: string): number =>
  all.filter((connection) => statusOf(connection) === status).length

/** A request whose body comes in two parts, over a connection of its own. */
async function ask(from: string, path = '/fast', headers = ''): Promise<string | undefined> {
  const connection = await open(from, beginningOf(path, 2, headers))
  await sleep(20)
  connection.socket.write('}')
  await expect.poll(() => statusOf(connection)).toBeDefined()
  return statusOf(connection)
}

describe('requests in flight', () => {
  test('of one source are three quarters, and others are served', async () => {
    const stranger = await openMany(8, STRANGER, requestOf('GET', '/slow'))
    await expect.poll(() => countAnswered(stranger, '503')).toBe(2)
    expect(served).toHaveLength(6)
    expect(await ask(OTHER)).toBe('200')
    expect(await ask('127.0.0.1')).toBe('200')
    release()
    await expect.poll(() => countAnswered(stranger, '200')).toBe(6)
    expect(await ask(STRANGER)).toBe('200')
  })

  test('over one connection, or after a whole body, are counted alike', async () => {
    const stranger = await open(STRANGER, requestOf('GET', '/slow').repeat(4))
    for (let i = 0; i < 2; i += 1) (await open(STRANGER, beginningOf('/slow', 2))).socket.write('}')
    await expect.poll(() => served).toHaveLength(6)
    expect(await ask(STRANGER)).toBe('503')
    expect(await ask(OTHER)).toBe('200')
    stranger.socket.destroy()
    release()
    await expect.poll(() => ask(STRANGER)).toBe('200')
  })

  test('have a last place, and health needs none', async () => {
    await openMany(6, STRANGER, requestOf('GET', '/slow'))
    await openMany(2, OTHER, requestOf('GET', '/slow'))
    await expect.poll(() => served).toHaveLength(8)
    expect(await ask('127.0.0.1')).toBe('503')
    expect(await ask('127.0.0.1', '/health/live')).toBe('200')
  })

  test('of a known caller have no share', async () => {
    await openMany(8, STRANGER, requestOf('GET', '/slow', KNOWN))
    await expect.poll(() => served).toHaveLength(8)
    expect(await ask(STRANGER, '/fast', KNOWN)).toBe('503')
  })
})

describe('bodies on their way', () => {
  test.each([
    ['announced', beginningOf('/slow')],
    ['in chunks', 'POST /slow HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n'],
    ['of a GET', beginningOf('/slow').replace('POST', 'GET')],
    ['for a path that nobody knows', beginningOf('/unknown')],
    ['long, and begun', beginningOf('/slow', 100_000) + 'x'.repeat(20_000)],
  ])('of one source are three quarters, the oldest end with 503: %s', async (_, bytes) => {
    const stranger = await openMany(8, STRANGER, bytes)
    await expect.poll(() => stranger.map(({ isOpen }) => isOpen())).toEqual([false, false, ...Array(6).fill(true)])
    expect(stranger[0]?.text()).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\n[^]*\r\nRetry-After: 1\r\n[^]*"code":"HTTP_503"/)
    expect(await Promise.all(Array.from({ length: 3 }, () => ask(OTHER)))).toEqual(['200', '200', '200'])
    expect(await ask(OTHER, '/fast', KNOWN)).toBe('200')
    expect(countOpen(stranger)).toBeGreaterThanOrEqual(4)
    expect(served.filter((line) => line.startsWith(STRANGER))).toEqual([])
  })

  // A look at passwords may take longer than the five seconds that a body has.
  test('that have arrived, or arrive with the answer, while the server looks who sends them are not late', async () => {
    const both = [await open(STRANGER, beginningOf('/checked', 2) + '}'), await open(STRANGER, beginningOf('/checked', 2))]
    await sleep(7_500)
    expect(both.map(({ text, isOpen }) => [text(), isOpen()])).toEqual(both.map(() => ['', true]))
    release()
    both[1]?.socket.write('}')
    await expect.poll(() => both.map(statusOf)).toEqual(['200', '200'])
  })

  test('take no place among requests in flight', async () => {
    await openMany(6, STRANGER, beginningOf('/fast'))
    const whole = await openMany(3, STRANGER, requestOf('GET', '/slow'))
    await expect.poll(() => served).toHaveLength(3)
    expect(countAnswered(whole, '503')).toBe(0)
  })

  test('that are not awaited, because the answer is clear, count all the same', async () => {
    const stranger = await openMany(8, STRANGER, beginningOf('/refused'))
    await expect.poll(() => countOpen(stranger)).toBe(6)
    expect(countAnswered(stranger, '401')).toBe(8)
    expect(await ask(OTHER)).toBe('200')
  })

  test('that were ended are not served when the rest comes', async () => {
    const first = await open(STRANGER, beginningOf('/fast', 3), { staysOpen: true })
    await openMany(6, STRANGER, beginningOf('/fast'))
    await expect.poll(() => statusOf(first)).toBe('503')
    first.socket.write('{}')
    await sleep(50)
    expect(served).toEqual([])
  })

  test('give their places back, however they end', async () => {
    for (let i = 0; i < 3; i += 1) {
      for (const { socket } of await openMany(5, STRANGER, beginningOf('/slow'))) socket.destroy()
      for (const path of ['/refused', '/fast']) expect(await ask(STRANGER, path)).toBe(path === '/fast' ? '200' : '401')
      expect(await ask(STRANGER, '/fast', KNOWN)).toBe('200')
    }
    await sleep(50)
    const stranger = await openMany(6, STRANGER, beginningOf('/slow'))
    await sleep(50)
    expect(countOpen(stranger)).toBe(6)
  })
})

describe('connections', () => {
  test.each([
    ['that send nothing', ''],
    ['whose headers are not whole', 'POST /fast HTTP/1.1\r\nHost: a\r\nX-A: '],
    ['that have asked for health', requestOf('GET', '/health/live')],
    ['that have sent half a word', 'PO'],
    ['that have been refused', requestOf('GET', '/refused')],
  ])('of one source are three quarters, and give way to others: %s', async (_, bytes) => {
    const stranger = await openMany(20, STRANGER, bytes)
    await expect.poll(() => countOpen(stranger)).toBe(9)
    expect(countOpen(stranger.slice(0, 11))).toBe(0)
    const other = await openMany(5, OTHER, requestOf('GET', '/fast'))
    await expect.poll(() => countAnswered(other, '200')).toBe(5)
    await expect.poll(() => [countOpen(other), countOpen(stranger)]).toEqual([5, 7])
    await openMany(10, STRANGER, bytes)
    expect(countOpen(other)).toBe(5)
    expect(await ask('127.0.0.1')).toBe('200')
  })

  test('are left alone where there are places', async () => {
    const all = [...(await openMany(9, STRANGER)), ...(await openMany(2, OTHER))]
    await sleep(50)
    expect(countOpen(all)).toBe(11)
  })

  test('that are idle go first, and those whose requests are served stay', async () => {
    const [busy] = await openMany(1, STRANGER, requestOf('GET', '/slow'))
    const idle = await openMany(7, STRANGER, requestOf('GET', '/fast'))
    const [latest] = await openMany(1, STRANGER)
    await expect.poll(() => countAnswered(idle, '200')).toBe(7)
    idle[0]?.socket.write(requestOf('GET', '/fast'))
    await expect.poll(() => served).toHaveLength(9)
    await openMany(2, STRANGER)
    await expect.poll(() => idle.map(({ isOpen }) => isOpen())).toEqual([true, false, false, true, true, true, true])
    expect([busy, latest].map((one) => one?.isOpen())).toEqual([true, true])
    release()
    await expect.poll(() => busy && statusOf(busy)).toBe('200')
  })

  test('that can be had for no other are told so, and health answers on them', async () => {
    await openMany(8, STRANGER, requestOf('GET', '/health/slow'))
    await openMany(4, OTHER, requestOf('GET', '/health/slow'))
    await expect.poll(() => served).toHaveLength(12)
    const refused = await open('127.0.0.1', requestOf('GET', '/fast'))
    await refused.closed
    expect(refused.text()).toMatch(/^HTTP\/1\.1 503 [^]*\r\nconnection: close\r\nretry-after: 1\r\n/i)
    expect(await ask('127.0.0.1', '/health/live')).toBe('200')
  })

  test('of a proxy have no share, and their requests are those of who is forwarded', async () => {
    const from = (address: string): string => `X-Forwarded-For: ${address}\r\n`
    const proxy = await openMany(10, PROXY, requestOf('GET', '/fast', from('198.51.100.1')))
    await expect.poll(() => served).toHaveLength(10)
    expect(countOpen(proxy)).toBe(10)
    for (const { socket } of proxy.slice(0, 7)) socket.write(requestOf('GET', '/slow', from('198.51.100.1')))
    await expect.poll(() => served).toHaveLength(16)
    expect(countOpen(proxy)).toBe(10)
    expect(await ask(PROXY, '/fast', from('198.51.100.1'))).toBe('503')
    expect(await ask(PROXY, '/fast', from('198.51.100.2'))).toBe('200')
    expect(served).toContain('198.51.100.2 /fast')
  })

  test('of a proxy or of a known caller go when no place is left and nobody else has any', async () => {
    const proxy = await openMany(6, PROXY, requestOf('GET', '/fast'))
    const known = await openMany(6, OTHER, requestOf('GET', '/fast', KNOWN))
    await expect.poll(() => served).toHaveLength(12)
    expect(countOpen([...proxy, ...known])).toBe(12)
    expect(await ask(STRANGER)).toBe('200')
    expect(countOpen([...proxy, ...known])).toBe(11)
    expect(proxy[0]?.isOpen()).toBe(false)
  })
})

test('a connection that was refused ends, also when its caller does not end it', async () => {
  // Of one process, so that the timer that is due first is the first, however late both are.
  const gone = new Promise<string>((resolve) =>
    app.server.once('connection', (socket: Socket) => socket.once('close', () => resolve('ended'))),
  )
  const refused = await open(STRANGER, 'this is not HTTP\r\n\r\n', { staysOpen: true })
  await expect.poll(() => statusOf(refused)).toBe('400')
  expect(await Promise.race([gone, sleep(3_000, 'still open after 3 s')])).toBe('ended')
})

describe('more requests than are taken', () => {
  let server: TestServer
  let answers: Promise<void> = Promise.resolve()
  const logins = createSockets(() => Number(new URL(server.url).port))
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => answers.then(() => result),
  }
  beforeAll(async () => {
    server = await startTestServer({
      env: { PAWL_REQUESTS_IN_FLIGHT_MAX: '8' },
      worksInBackground: false,
      alterDatabase: (database) => ({ ...database, db: database.db.withPlugin(plugin) as Pool }),
    })
  })
  afterEach(logins.endAll)
  afterAll(() => server.close())

  test.each([
    ['POST', '/pa/v3/status', 'ERROR_GENERIC'],
    ['POST', '/api/auth/token/app/operation/list', 'ERROR_GENERIC'],
    ['GET', '/registration?userId=a', 'HTTP_503'],
  ])('%s %s is 503 in the form of its API, health is not', async (method, path, code) => {
    const held = Promise.withResolvers<void>()
    answers = held.promise
    for (let i = 1; i <= 8; i += 1) {
      const credential = Buffer.from(`user${i}:not the password`).toString('base64')
      await logins.open(`127.0.2.${i}`, requestOf('GET', '/registration', `Authorization: Basic ${credential}\r\n`))
    }
    // Until all of them have come it is answered otherwise, without the database.
    const ask = () => sendJson(server.url, method, path, method === 'POST' ? {} : undefined)
    await expect.poll(async () => (await ask()).status).toBe(503)
    const reply = await ask()
    const probe = await sendJson(server.url, 'GET', '/health/live')
    held.resolve()
    expect([reply.status, errorCode(reply), reply.headers['retry-after'], probe.status]).toEqual([503, code, '1', 200])
    expect((await sendJson(server.url, 'GET', '/health/ready')).status).toBe(200)
  })
})
