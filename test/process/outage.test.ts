// Requests that are running when the server is told to stop are answered; while the database is away, the server says so and recovers.
import type { Server, Socket } from 'node:net'
import { connect, createServer } from 'node:net'
import { Client } from 'pg'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { COUNT_WAITING, serverUrl } from '../helpers/app.ts'
import { basicAuthorization } from '../helpers/bank.ts'
import { errorCode } from '../helpers/expectations.ts'
import type { HttpReply } from '../../phone/http.ts'
import { NO_BODY, send, sendJson } from '../../phone/http.ts'
import { findQuietPort } from '../helpers/ports.ts'
import type { Environment, Installation, PawlProcess } from '../helpers/process.ts'
import { ADMIN_PASSWORD, createInstallation, DATABASE_KIND, endEverything, startPawl } from '../helpers/process.ts'
import type { World } from '../helpers/world.ts'
import { expectOk, openWorld, registrationOf } from '../helpers/world.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

afterEach(endEverything)

describe.each([DATABASE_KIND])('a stop on %s', (kind) => {
  test('requests that are running are answered as a whole, and the exit status is 0', async () => {
    // When this process is slow, all may be answered before it sends the signal; then nothing was running.
    let late = 0
    for (let i = 0; i < 8 && late === 0; i++) late = await stopWhileRunning(await createInstallation(kind))
    expect(late, 'answers after the signal').toBeGreaterThan(0)
  })

  /** How many answers came after the signal. */
  const stopWhileRunning = async (installation: Installation): Promise<number> => {
    const server = await start(installation, { PAWL_SHUTDOWN_TIMEOUT_SECONDS: '60' })
    // Each costs a slow hash, one runs at a time, the rest wait for their turn: as many as may.
    const requests = Array.from({ length: 20 }, (_, i) => sendWithLogin(server.url, `nobody-${i}`))
    await Promise.all(requests.map(({ isRunning }) => isRunning))
    const since = performance.now()
    const ended = server.end('SIGTERM')
    server.send('SIGTERM')
    const replies = await Promise.all(requests.map(({ reply }) => reply))
    expect(replies.map(({ text }) => text.split('\r\n')[0])).toEqual(Array.from(replies, () => 'HTTP/1.1 401 Unauthorized'))
    expect(replies.every(({ text }) => text.endsWith('"message":"Unauthorized"}}'))).toBe(true)
    expect(await ended).toMatchObject({ code: 0, signal: null, stderr: '' })
    return replies.filter(({ at }) => at > since).length
  }
})

describe.skipIf(serverUrl() === undefined)(
  serverUrl() === undefined ? 'skipped: PAWL_TEST_DATABASE_URL is not set' : 'with PostgreSQL',
  () => {
    test('a request that waits for the database when the signal comes is served, one that waits too long is cut', async () => {
      const installation = await createInstallation('postgresql')
      const patient = await start(installation)
      const impatient = await start(installation, { PAWL_SHUTDOWN_TIMEOUT_SECONDS: '1' })
      const world = await openWorldAt(patient)
      const { userId } = await world.activePhone('3.3')
      const { userId: otherId } = await world.activePhone('3.3')
      const atImpatient = world.bank.as(world.bank.credential, impatient.url)
      // Statements are given up after eight seconds, so the first login, which is slow, comes before, and who is served comes last.
      expectOk(await atImpatient.view(otherId))
      const lock = await lockActivations(installation)
      const areWaiting = (count: number) =>
        vi.waitFor(async () => expect(await lock.countWaiting()).toBe(count), { timeout: PATIENCE_MS })
      const cut = atImpatient.change(otherId, 'BLOCK').catch(() => 'cut' as const)
      await areWaiting(1)
      const served = world.bank.change(userId, 'BLOCK')
      await areWaiting(2)
      const patientEnd = patient.end('SIGTERM')
      const impatientEnd = impatient.end('SIGTERM')
      expect(await cut).toBe('cut')
      await lock.release()
      expectOk(await served)
      expect(await patientEnd).toMatchObject({ code: 0, signal: null, stderr: '' })
      expect(await impatientEnd).toMatchObject({ code: 0, signal: null, stderr: '' })
      expect((await impatientEnd).stdout).toContain('requests were still running at the time limit')
      const next = await start(installation)
      expect(await registrationOf(await openWorldAt(next), userId)).toBe('BLOCKED')
    })

    test('while the database is away the server lives, is not ready, and answers 503; when it is back, everything works', async () => {
      const installation = await createInstallation('postgresql')
      const proxy = await openProxy(new URL(installation.env['DATABASE_URL'] ?? ''))
      const server = await start(installation, { DATABASE_URL: proxy.url })
      const world = await openWorldAt(server)
      const { phone, userId } = await world.activePhone('3.3')
      const sent: Promise<HttpReply>[] = []
      const sendSome = (): void => {
        for (let i = 0; i < 4; i++)
          sent.push(phone.send(phone.prepareValidation({ factors: 'possession' })), world.bank.view(userId))
      }
      sendSome()
      await proxy.close()
      sendSome()
      const statuses = (await Promise.all(sent)).map(({ status }) => status)
      // Codes that overtake each other are refused; nothing is a bug of the server.
      expect(statuses.filter((status) => ![200, 401, 503].includes(status))).toEqual([])
      await vi.waitFor(async () => expect((await health(server, 'ready')).status).toBe(503), { timeout: PATIENCE_MS })
      expect((await health(server, 'ready')).headers['retry-after']).toBe('1')
      expect((await health(server, 'live')).status).toBe(200)
      await expectUnavailable(world)
      const cookie = `pawl_console_${new URL(server.url).port}=${'x'.repeat(43)}`
      const page = await send(server.url, { method: 'GET', path: '/console/', headers: { cookie }, body: NO_BODY })
      expect([page.status, page.text.includes('The database does not answer, or')]).toEqual([503, true])
      // One more round says nothing new: each kind of failure has its stack once.
      const stacks = countStacks(server)
      expect(stacks).toBeGreaterThan(0)
      await expectUnavailable(world)
      expect(countStacks(server)).toBeLessThanOrEqual(stacks + 2)
      await proxy.reopen()
      await vi.waitFor(async () => expect((await health(server, 'ready')).status).toBe(200), { timeout: PATIENCE_MS })
      expectOk(await phone.send(phone.prepareValidation()))
      expectOk(await world.bank.view(userId))
      expect(await server.end('SIGTERM')).toMatchObject({ code: 0, stderr: '' })
      await proxy.close()
    })

    test('a stop comes to its end although the database no longer says anything', async () => {
      const installation = await createInstallation('postgresql')
      const proxy = await openProxy(new URL(installation.env['DATABASE_URL'] ?? ''))
      const startedAt = performance.now()
      const server = await start(installation, { DATABASE_URL: proxy.url, PAWL_DRAIN_SECONDS: '1' })
      const startMs = performance.now() - startedAt
      const world = await openWorldAt(server)
      proxy.freeze()
      const unanswered = world.bank.view('somebody').catch(() => 'cut' as const)
      // The connection that the pool had is the one that hangs; this one is answered without the database.
      expectOk(await health(server, 'live'))
      const since = performance.now()
      expect(await server.end('SIGTERM')).toMatchObject({ code: 0, signal: null, stderr: '' })
      // One second of draining, and less than ten for the rest with the settings as they are. A busy machine adds what its start has over five.
      expect(performance.now() - since).toBeLessThan(11_000 + Math.max(0, startMs - 5_000))
      // The time limit of the stop and that of the statement are over within the same second: nobody is told that it was done.
      const outcome = await unanswered
      expect(outcome === 'cut' ? 503 : outcome.status).toBe(503)
      await proxy.close()
    })
  },
)

const start = (installation: Installation, env: Environment = {}): Promise<PawlProcess> =>
  startPawl(installation.env, { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD }, env)

const openWorldAt = ({ url }: PawlProcess): Promise<World> =>
  openWorld({ urls: [url], admin: `admin:${ADMIN_PASSWORD}`, advance: () => undefined, close: async () => undefined })

const health = ({ url }: PawlProcess, kind: 'live' | 'ready'): Promise<HttpReply> =>
  send(url, { method: 'GET', path: `/health/${kind}`, headers: {}, body: NO_BODY })

const countStacks = ({ output }: PawlProcess): number => output().split('"stack":').length - 1

/** Every kind of request: 503 in the form of its API, with the time after which to try again. */
async function expectUnavailable({ url, bank, newPhone, app }: World): Promise<void> {
  const phone = newPhone('3.3', { app })
  const temporaryKey = phone.newTemporaryKeyRequest('application').json
  const activationId = '6fc4f0e4-6ab0-4d02-a5ba-0bd1bd8a2d5a'
  const device = [
    await sendJson(url, 'POST', '/pa/v3/keystore/create', temporaryKey),
    await sendJson(url, 'POST', '/pa/v3/activation/status', { requestObject: { activationId } }),
  ]
  const cloud = [await bank.view('somebody'), await bank.register('somebody'), await bank.as('some:body').view('somebody')]
  for (const [replies, code] of [
    [device, 'ERROR_GENERIC'],
    [cloud, 'HTTP_503'],
  ] as const) {
    for (const reply of replies) {
      expect({ status: reply.status, code: errorCode(reply) }, reply.text).toEqual({ status: 503, code })
      expect(Number(reply.headers['retry-after'])).toBeGreaterThan(0)
    }
  }
}

interface RawRequest {
  /** Resolves when the server has taken the request. */
  readonly isRunning: Promise<void>
  readonly reply: Promise<{ readonly text: string; readonly at: number }>
}

/** A request with a wrong login over a connection of its own. 100 Continue tells that the server has begun with it. */
function sendWithLogin(url: string, username: string): RawRequest {
  const { hostname, port } = new URL(url)
  const body = '{"userId":"x"}'
  const running = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<{ text: string; at: number }>()
  const socket = connect(Number(port), hostname)
  let text = ''
  socket.setEncoding('utf8')
  socket.on('data', (chunk: string) => {
    text += chunk
    const isContinue = text.startsWith('HTTP/1.1 100 Continue\r\n\r\n')
    if (!isContinue) return
    text = text.slice('HTTP/1.1 100 Continue\r\n\r\n'.length)
    socket.write(body, () => running.resolve())
  })
  socket.once('error', (error) => {
    running.reject(error)
    answered.reject(error)
  })
  socket.once('close', () => answered.resolve({ text, at: performance.now() }))
  const { Authorization } = basicAuthorization(`${username}:a wrong password`)
  const head = ['POST /registration HTTP/1.1', 'Host: pawl', `Authorization: ${Authorization}`, 'Content-Type: application/json']
  const framing = [`Content-Length: ${body.length}`, 'Expect: 100-continue', 'Connection: close']
  socket.write(`${[...head, ...framing].join('\r\n')}\r\n\r\n`)
  return { isRunning: running.promise, reply: answered.promise }
}

/** Holds a lock on every activation, as a transaction of somebody else would. */
async function lockActivations({
  env,
}: Installation): Promise<{ countWaiting: () => Promise<number>; release: () => Promise<void> }> {
  const [holder, observer] = [new Client(env['DATABASE_URL']), new Client(env['DATABASE_URL'])]
  await Promise.all([holder.connect(), observer.connect()])
  await holder.query('begin')
  await holder.query('select activation_id from activation for update')
  return {
    countWaiting: async () => (await observer.query<{ waiting: number }>(COUNT_WAITING)).rows[0]?.waiting ?? 0,
    release: async () => {
      await holder.query('commit')
      await Promise.all([holder.end(), observer.end()])
    },
  }
}

interface Proxy {
  /** Of the database, through the proxy. */
  readonly url: string
  /** Ends every connection and takes no new ones. */
  readonly close: () => Promise<void>
  /** Takes connections again, at the same address. */
  readonly reopen: () => Promise<void>
  /** Keeps every connection but carries nothing any more. */
  readonly freeze: () => void
}

/** A way to the database that can be cut. */
async function openProxy(target: URL): Promise<Proxy> {
  const sockets = new Set<Socket>()
  const follow = (socket: Socket): void => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('close', () => sockets.delete(socket))
  }
  const freeze = (): void => {
    for (const socket of sockets) socket.unpipe().pause()
  }
  const port = await findQuietPort()
  const listen = (): Promise<Server> =>
    new Promise((resolve, reject) => {
      const created = createServer((near) => {
        const far = connect(Number(target.port || 5432), target.hostname)
        for (const socket of [near, far]) follow(socket)
        near.pipe(far).once('close', () => near.destroy())
        far.pipe(near).once('close', () => far.destroy())
      })
      created.once('error', reject)
      created.listen(port, '127.0.0.1', () => resolve(created))
    })
  let server = await listen()
  const url = new URL(target)
  url.host = `127.0.0.1:${port}`
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
  const reopen = async (): Promise<void> => {
    server = await listen()
  }
  return { url: url.toString(), close, reopen, freeze }
}
