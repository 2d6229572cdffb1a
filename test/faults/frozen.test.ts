// A database that stands still for longer than a server waits, and one that takes no writes for a while.
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { NO_BODY, send } from '../../phone/http.ts'
import { signalAll } from '../helpers/children.ts'
import { close, closeAccount, expectNothingLost, kill, meet, openSite, type Site } from './site.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

const FROZEN_MS = 16_000

afterAll(() => closeAccount('frozen'))

describe.each([1, 8])('with a pool of %i', (poolSize) => {
  test('a database that stands still, and a server that is killed then', async () => {
    const site = await openSite(poolSize)
    await meet(site, freeze)
    await kill(site)
    await expectNothingLost(site.load)
    await close(site)
  })
})

test('a database that takes no writes is not ready, and is again when it does', async () => {
  const site = await openSite(2)
  expect(await readiness(site)).toBe(200)
  await setReadOnly(site, true)
  await vi.waitFor(async () => expect(await readiness(site)).toBe(503), { timeout: PATIENCE_MS })
  await meet(site, () => setReadOnly(site, false))
  await vi.waitFor(async () => expect(await readiness(site)).toBe(200), { timeout: PATIENCE_MS })
  await site.load.pause()
  await expectNothingLost(site.load)
  await close(site)
})

/** Stops every process of the database server, as a move of its virtual machine does. */
async function freeze(): Promise<void> {
  const main = Number(process.env['PAWL_TEST_DATABASE_PID'])
  signalAll(main, 'SIGSTOP')
  await sleep(FROZEN_MS)
  signalAll(main, 'SIGCONT')
}

const readiness = async ({ world }: Site): Promise<number> =>
  (await send(world.url, { method: 'GET', path: '/health/ready', headers: {}, body: NO_BODY })).status

/** Makes new connections read-only or not, and ends the present ones. */
async function setReadOnly({ installation }: Site, isReadOnly: boolean): Promise<void> {
  const url = new URL(installation.env['DATABASE_URL'] ?? '')
  const name = url.pathname.slice(1)
  url.pathname = '/postgres'
  const client = new Client(url.toString())
  await client.connect()
  await client.query(`alter database ${name} set default_transaction_read_only = ${isReadOnly ? 'on' : 'off'}`)
  await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
  await client.end()
}
