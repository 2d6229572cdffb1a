// The process itself while somebody sets the clock of its machine: an hour back, a day on, and as it was. The embedded database has the same
// clock, as a PostgreSQL on the same machine has. Between the programs and the clock stands libfaketime, which leaves the monotonic clock alone.
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { member, type HttpReply, sendJson } from '../../phone/http.ts'
import { basicAuthorization } from '../helpers/bank.ts'
import { HOUR, MINUTE, SECOND } from '../helpers/expectations.ts'
import {
  ADMIN_PASSWORD,
  createInstallation,
  endEverything,
  type Installation,
  type PawlProcess,
  startPawl,
} from '../helpers/process.ts'
import { type Receiver, startReceiver } from '../helpers/receiver.ts'
import { runCli } from '../helpers/cli.ts'
import { beginningOf, createSockets } from '../helpers/sockets.ts'
import { type Bound, expectOk, openWorld, type World } from '../helpers/world.ts'

const LIBRARY = ['x86_64', 'aarch64']
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path))
const title = LIBRARY === undefined ? 'skipped: Debian’s faketime is not installed' : 'a server'
const KEYS_PER_MINUTE = 40

describe.skipIf(LIBRARY === undefined)(title, () => {
  let installation: Installation
  let env: Readonly<Record<string, string>>
  let pawl: PawlProcess
  let world: World
  let receiver: Receiver
  let silent: Receiver
  let bound: Bound
  const sockets = createSockets(() => Number(new URL(pawl.url).port))

  /** Sets the clock of the process to so many milliseconds beside the right one; at once, because it never reads half a file. */
  const setClock = (ms: number): void => {
    const file = join(installation.directory, 'clock')
    writeFileSync(`${file}.new`, `${ms < 0 ? '-' : '+'}${Math.abs(ms) / SECOND}\n`)
    renameSync(`${file}.new`, file)
  }
  const readTime = async (): Promise<number> =>
    Number(member((await sendJson(pawl.url, 'POST', '/pa/v3/status', {})).json, 'responseObject', 'serverTime'))
  /** How far the server's time is from the right one, in whole minutes. An answer that took a millisecond rounds to -0, which is no 0 for `toBe`. */
  const minutesOff = async (): Promise<number> => Math.round(((await readTime()) - Date.now()) / MINUTE) + 0
  const hook = async (url: string): Promise<string> => {
    const body = { application: 'test-app', name: url, kind: 'OPERATION', url, attributes: ['status'] }
    return String(member(expectOk(await world.bank.call('POST', '/admin/webhooks', body)).json, 'id'))
  }
  const failuresOf = async (id: string): Promise<unknown> =>
    member(expectOk(await world.bank.call('GET', `/admin/webhooks/${id}`)).json, 'failuresInRow')
  const createOperation = async (): Promise<string> =>
    String(member(expectOk(await world.bank.createOperation({ userId: bound.userId, template: 'login' })).json, 'operationId'))
  const statusOf = async (id: string): Promise<unknown> => member(expectOk(await world.bank.readOperation(id)).json, 'status')
  const askForKey = (): Promise<HttpReply> =>
    sendJson(pawl.url, 'POST', '/pa/v3/keystore/create', world.newPhone('3.3').newTemporaryKeyRequest('application').json)

  beforeAll(async () => {
    installation = await createInstallation('embedded')
    setClock(0)
    const clock = {
      LD_PRELOAD: LIBRARY ?? '',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      FAKETIME_NO_CACHE: '1',
      FAKETIME_TIMESTAMP_FILE: join(installation.directory, 'clock'),
    }
    env = {
      ...installation.env,
      ...clock,
      PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD,
      PAWL_WEBHOOK_ALLOW_HTTP: 'true',
      PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
      PAWL_TEMPORARY_KEYS_PER_MINUTE: String(KEYS_PER_MINUTE),
    }
    pawl = await startPawl(env)
    const close = async (): Promise<void> => undefined
    world = await openWorld({ urls: [pawl.url], admin: `admin:${ADMIN_PASSWORD}`, advance: () => undefined, close })
    receiver = await startReceiver()
    silent = await startReceiver()
    silent.answerWith(() => undefined)
    bound = await world.activePhone('3.3')
  })
  afterAll(async () => {
    sockets.endAll()
    await receiver.goDown()
    await silent.goDown()
    await endEverything()
  })

  test.each([
    ['an hour back', -HOUR],
    ['as it was', 0],
    ['a day on', 24 * HOUR],
    ['a day back, as it was', 0],
  ])('goes on when the clock is set %s', async (_, ms) => {
    const { phone } = bound
    const isBack = ms / MINUTE < (await minutesOff())
    const token = await phone.createToken('possession')
    const before = await createOperation()
    const urls = [receiver.url, silent.url].map((url) => `${url}?${ms}-${Date.now()}`)
    const [quick = '', slow = ''] = await Promise.all(urls.map(hook))
    receiver.take()
    await createOperation()
    await expect.poll(() => receiver.received.length).toBeGreaterThan(0)
    // One body is on its way, and one message for a receiver that never answers.
    const body = await sockets.open('127.0.0.1', beginningOf('/pa/v3/signature/validate'), { staysOpen: true })

    setClock(ms)
    await expect.poll(minutesOff).toBe(ms / MINUTE)
    expectOk(await sendJson(pawl.url, 'GET', '/health/ready'))
    // Phones, with codes, tokens and envelopes; what lay before the end of its time, and what is new.
    expectOk(await phone.send(phone.prepareValidation()))
    expectOk(await phone.send(await phone.prepareTokenCall('list', token)))
    await phone.createToken('possession')
    expect(await statusOf(before)).toBe(isBack ? 'PENDING' : 'EXPIRED')
    const id = await createOperation()
    expectOk(await phone.send(phone.prepareAuthorize({ id, data: 'A2' })))
    expect(await statusOf(id)).toBe('APPROVED')
    const other = await world.activePhone('3.1')
    expectOk(await other.phone.send(other.phone.prepareValidation()))
    // The bank, by its password.
    const wrong = basicAuthorization(`nobody-${Date.now()}:wrong`)
    expect((await sendJson(pawl.url, 'GET', '/admin/users', undefined, wrong)).status).toBe(401)
    // Webhooks: both messages of the operation arrive, and the receiver that never answers is given up after ten seconds.
    const arrived = () => receiver.received.filter(({ json }) => json['operationId'] === id).map(({ json }) => json['status'])
    await expect.poll(() => new Set(arrived())).toEqual(new Set(['PENDING', 'APPROVED']))
    await expect.poll(() => failuresOf(slow)).toBeGreaterThan(0)
    // A slow body is neither cut off by the step nor kept by it.
    await expect.poll(body.text).toMatch(/^HTTP\/1\.1 408 /)
    // The audit log goes on, and is right.
    const verify = async () => (await world.bank.call('GET', '/admin/audit/verification')).json
    await expect.poll(verify).toMatchObject({ isIntact: true, chains: [{ unsealed: 0 }, { unsealed: 0 }] })
    for (const webhookId of [quick, slow]) expectOk(await world.bank.call('DELETE', `/admin/webhooks/${webhookId}`))
  })

  test('and limits of a minute last a minute', async () => {
    setClock(-HOUR)
    await expect.poll(minutesOff).toBe(-60)
    // All at once, so that the minute is not over when the clock is set. Two minutes have so many at most.
    const replies = await Promise.all(Array.from({ length: 2 * KEYS_PER_MINUTE + 1 }, askForKey))
    expect(replies.map(({ status }) => status)).toContain(429)
    for (const ms of [-2 * HOUR, 24 * HOUR, -HOUR]) {
      setClock(ms)
      const reply = await askForKey()
      expect(reply.status).toBe(429)
      expect(Number(reply.headers['retry-after'])).toBeLessThanOrEqual(60)
    }
    // As long as the last answer says, and no longer.
    const { status, headers } = await askForKey()
    expect(status).toBe(429)
    await sleep(Number(headers['retry-after']) * SECOND)
    expect((await askForKey()).status).toBe(200)
  })

  test('and a stop ends when the clock is set meanwhile, and the next start finds everything', async () => {
    setClock(0)
    const ended = pawl.end('SIGTERM')
    setClock(-HOUR)
    expect(await ended).toMatchObject({ code: 0, signal: null, stderr: '' })
    setClock(0)
    expect(await runCli(['audit', 'verify'], env)).toMatchObject({ code: 0 })
    pawl = await startPawl(env)
    const { phone } = bound
    expectOk(await phone.send(phone.prepareValidation(), pawl.url))
  })
})
