// Nothing that was committed is lost to a receiver: it is down during a run of changes, the server is killed meanwhile, and afterwards
// every event arrives, in order for each object (cloud §9).
import { Client } from 'pg'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { openDatabase } from '../../src/storage/database/database.ts'
import { createBank } from '../helpers/bank.ts'
import { endOperation, failOperation, insertOperation } from '../helpers/operations.ts'
import type { Installation, PawlProcess } from '../helpers/process.ts'
import { ADMIN_PASSWORD, createInstallation, DATABASE_KIND, endEverything, runNode, startPawl } from '../helpers/process.ts'
import { type Received, signaturesOf, startReceiver } from '../helpers/receiver.ts'
import { expectOk } from '../helpers/world.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 240_000 })

afterEach(endEverything)

const OBJECTS = 500
const ENV = {
  PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD,
  PAWL_WEBHOOK_ALLOW_HTTP: 'true',
  PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
  PAWL_WEBHOOK_RETRY_BASE_SECONDS: '1',
}
const start = ({ env }: Installation): Promise<PawlProcess> => startPawl(env, ENV)
const bankAt = ({ url }: PawlProcess) => createBank(url, `admin:${ADMIN_PASSWORD}`)

/** Creates an application and a webhook of every change in it; returns its id and secret. */
async function createHook(server: PawlProcess, kind: string, url: string): Promise<{ id: string; secret: string }> {
  const bank = bankAt(server)
  expectOk(await bank.createApplication('app'))
  const attributes = kind === 'OPERATION' ? ['status', 'failureCount'] : ['activationStatus', 'userId']
  const body = { application: 'app', name: 'hook', kind, url, attributes }
  return expectOk(await bank.call('POST', '/admin/webhooks', body)).json as { id: string; secret: string }
}

/** Resolves when nothing waits any longer, and returns the webhook. */
async function waitUntilDelivered(server: PawlProcess, id: string): Promise<Readonly<Record<string, unknown>>> {
  let hook: Readonly<Record<string, unknown>> = {}
  const read = async (): Promise<unknown> => {
    hook = expectOk(await bankAt(server).call('GET', `/admin/webhooks/${id}`)).json as typeof hook
    return hook['waiting']
  }
  await expect.poll(read, { timeout: 100_000, interval: 500 }).toBe(0)
  return hook
}

/** Checks every signature and that a repeated id has the same body; returns the first message of each id. */
function expectGenuine(received: readonly Received[], secret: string): readonly Received[] {
  const byId = new Map<string, Received>()
  for (const one of received) {
    expect(one.headers['webhook-signature']).toBe(signaturesOf(one, secret))
    const known = byId.get(one.id)
    if (known) expect(one.text).toBe(known.text)
    else byId.set(one.id, one)
  }
  return [...byId.values()]
}

/** Runs `work` for 0 to `count` - 1, several at a time. */
async function repeat(count: number, work: (i: number) => Promise<void>): Promise<void> {
  let next = 0
  const run = async (): Promise<void> => {
    while (next < count) {
      const i = next
      next += 1
      await work(i)
    }
  }
  await Promise.all(Array.from({ length: 8 }, run))
}

describe.each([DATABASE_KIND])('on %s', (kind) => {
  test('every change of an activation reaches a receiver that was down, through a kill of the server', async () => {
    const receiver = await startReceiver()
    await receiver.goDown()
    const installation = await createInstallation(kind)
    let running = start(installation)
    const { id, secret } = await createHook(await running, 'ACTIVATION', receiver.url)
    const restart = async (killed: PawlProcess): Promise<PawlProcess> => {
      expect(await killed.end('SIGKILL')).toMatchObject({ signal: 'SIGKILL' })
      return start(installation)
    }
    let answered = 0
    // The kill meets requests on their way, which may have done their work or not; all others wait for the new start.
    await repeat(OBJECTS, async (i) => {
      if (i === OBJECTS / 2) running = restart(await running)
      const bank = bankAt(await running)
      for (const act of [bank.register, bank.remove]) {
        const reply = await act(`user-${i}`).catch(() => undefined)
        if (reply?.status === 200) answered += 1
      }
    })
    let server = await running
    // Two for each object, but for those of eight at a time that met the kill.
    expect(answered).toBeGreaterThanOrEqual(2 * OBJECTS - 16)
    await receiver.comeUp()
    const hook = await waitUntilDelivered(server, id)
    const events = expectGenuine(receiver.received, secret)
    expect(hook).toMatchObject({ dead: 0, isEnabled: true })
    expect(events.length).toBeGreaterThanOrEqual(answered)
    const byActivation = Map.groupBy(events, ({ json }) => json['activationId'])
    for (const messages of byActivation.values()) {
      const states = messages.map(({ json }) => json['activationStatus'])
      expect(['CREATED', 'CREATED,REMOVED']).toContain(states.join())
    }
    const removed = events.filter(({ json }) => json['activationStatus'] === 'REMOVED')
    expect(events.length - removed.length).toBe(byActivation.size)
    await server.end('SIGTERM')
    const listed = await runNode(['bin/pawl.mjs', 'webhook', 'list', '--local'], installation.env)
    expect(listed).toMatchObject({ code: 0, stderr: '' })
    expect(listed.stdout).toMatch(new RegExp(`^ID +APPLICATION .*\\n${id} +app +ACTIVATION +hook +http\\S+ +true +0 `))
    const replayed = await runNode(['bin/pawl.mjs', 'webhook', 'replay', id, events[0]?.id ?? '', '--local'], installation.env)
    expect(replayed).toMatchObject({ code: 0, stdout: '1 replayed\n', stderr: '' })
    expect(await runNode(['bin/pawl.mjs', 'webhook'])).toMatchObject({ code: 2 })
    receiver.take()
    server = await start(installation)
    await waitUntilDelivered(server, id)
    expect(receiver.take().map((one) => one.id)).toEqual([events[0]?.id])
    await receiver.goDown()
  })

  test.runIf(kind === 'postgresql')('every change of an operation does, from two processes of which one is killed', async () => {
    const receiver = await startReceiver()
    const installation = await createInstallation(kind)
    const servers = [await start(installation), await start(installation)] as const
    const { id, secret } = await createHook(servers[0], 'OPERATION', receiver.url)
    const databaseUrl = installation.env['DATABASE_URL'] ?? ''
    const { db, close } = await openDatabase({ databaseUrl, dataDir: '', poolSize: 8 })
    try {
      const run = repeat(OBJECTS, async (i) => {
        const operationId = await insertOperation(db, { applicationId: 'app' })
        await failOperation(db, operationId)
        if (i === OBJECTS / 4) await receiver.goDown()
        if (i === OBJECTS / 2) await servers[0].end('SIGKILL')
        await endOperation(db, operationId, 'APPROVED')
      })
      await run
      await receiver.comeUp()
      await waitUntilDelivered(servers[1], id)
      const events = expectGenuine(receiver.received, secret)
      expect(events).toHaveLength(3 * OBJECTS)
      for (const messages of Map.groupBy(events, ({ json }) => json['operationId']).values()) {
        expect(messages.map(({ json }) => [json['status'], json['failureCount']])).toEqual([
          ['PENDING', 0],
          ['PENDING', 1],
          ['APPROVED', 1],
        ])
      }
      expect(await countUndelivered(databaseUrl)).toBe('0')
    } finally {
      await close()
      await receiver.goDown()
    }
  })
})

async function countUndelivered(databaseUrl: string): Promise<unknown> {
  const client = new Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    const { rows } = await client.query<{ count: string }>(`select count(*) from webhook_delivery where status <> 'DELIVERED'`)
    return rows[0]?.count
  } finally {
    await client.end()
  }
}
